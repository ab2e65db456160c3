"""What a scraper did lately, counted."""

from datetime import datetime

from msgspec import Struct


class Rates(Struct, frozen=True, kw_only=True):
    """Counts of the last minute and hour, or of the whole life of a younger scraper."""

    errors_last_minute: int = 0
    errors_last_hour: int = 0
    polls_last_minute: int = 0
    updates_last_minute: int = 0
    #: Of the latest stored updates; `None` before the first.
    average_latency_ms: float | None = None
    p95_latency_ms: float | None = None
    last_success_at: datetime | None = None
    #: How long ago that was, when the counts were made.
    last_success_seconds: float | None = None

    @property
    def failure_ratio(self) -> float | None:
        """Return the share of failures among the last minute's tries; `None` when there were none."""
        tries = self.errors_last_minute + self.polls_last_minute
        return round(self.errors_last_minute / tries, 3) if tries else None
