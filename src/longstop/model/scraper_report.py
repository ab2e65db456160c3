"""What a scraper reports about itself in its heartbeat: open breakers, counters, resources."""

from datetime import datetime

from msgspec import Struct


class BreakerNote(Struct, frozen=True, kw_only=True):
    """A breaker that is not closed, a kind of page that cannot be parsed, or a rate-limited site."""

    #: What it guards: `target`, `match`, `source`, `layout` or `rest`.
    scope: str
    subject: str
    state: str
    since: datetime
    #: When the next attempt is due; `None` when unknown.
    until: datetime | None = None
    #: The seconds until then, from when this was reported.
    left_seconds: float | None = None
    reason: str = ""


class Rates(Struct, frozen=True, kw_only=True):
    """Counts of the last minute and hour, or since the start of a younger scraper."""

    errors_last_minute: int = 0
    errors_last_hour: int = 0
    polls_last_minute: int = 0
    updates_last_minute: int = 0
    #: Of the latest stored updates; `None` before the first.
    average_latency_ms: float | None = None
    p95_latency_ms: float | None = None
    last_success_at: datetime | None = None
    #: The seconds since then, when the counts were taken.
    last_success_seconds: float | None = None

    @property
    def failure_ratio(self) -> float | None:
        """Return the share of failures among the attempts of the last minute; `None` without attempts."""
        attempts = self.errors_last_minute + self.polls_last_minute
        return round(self.errors_last_minute / attempts, 3) if attempts else None


class Usage(Struct, frozen=True, kw_only=True):
    """What a process tree uses. `None` stands for unknown and is never replaced by zero."""

    processes: int
    #: Shared pages count once for each process.
    rss_bytes: int | None
    #: Shared pages count once in all: what would be free without the tree.
    pss_bytes: int | None
    cpu_seconds: float

    @property
    def held_bytes(self) -> int:
        """How much memory would be free without the process tree, as closely as is known."""
        return self.rss_bytes or 0 if self.pss_bytes is None else self.pss_bytes


class ProcessResources(Struct, frozen=True, kw_only=True):
    """The resources of a process and its descendants. A value that could not be measured is `None`, never 0."""

    pids: tuple[int, ...]
    rss_bytes: int | None = None
    #: Pages that several processes share count once.
    pss_bytes: int | None = None
    peak_rss_bytes: int | None = None
    #: Of one core, since the measurement before; `None` at the first.
    cpu_percent: float | None = None
    #: Of the process alone, without its descendants.
    own_pss_bytes: int | None = None
    own_cpu_percent: float | None = None


class MatchCost(Struct, frozen=True, kw_only=True):
    """The share of one match in the measured resources."""

    pss_bytes: int | None = None
    cpu_percent: float | None = None
