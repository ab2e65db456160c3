"""The polling state of a match, as health and the API show it."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from longstop.clock import Moment
from longstop.model.match import MatchRef, MatchStatus, Phase


class SyncState(StrEnum):
    """Whether the stored events were compared with the source's whole event list since the last (re)start."""

    RECOVERING = "recovering"
    IN_SYNC = "in_sync"
    #: Not watched, and so not compared; only a missing record means this.
    UNWATCHED = "unwatched"


class Unreliability(StrEnum):
    """Why a match may not be as it is served."""

    STALE = "stale"
    RECOVERING = "recovering"
    GAP_OPEN = "gap_open"
    #: The source contradicts itself, or what is stored.
    CONTRADICTED = "contradicted"
    #: Only the match's own page says which match it is.
    UNCONFIRMED = "single_unconfirmed_witness"
    #: The source refuses us, cannot be reached, or shows old data.
    SOURCE_DEGRADED = "source_degraded"


class MonitoringRecord(Struct, frozen=True, kw_only=True):
    """The polling state of one match, published in the hot view. It can be rebuilt."""

    match_id: int
    ref: MatchRef
    phase: Phase
    status: MatchStatus
    sync: SyncState
    #: The last accepted poll, with or without news: the age counts from here.
    last_poll_at: datetime | None
    #: The same in monotonic time; `None` for a poll of an earlier run or boot.
    last_poll_monotonic: float | None = None
    start_at: datetime | None = None
    #: The last poll, good or failed.
    last_attempt_at: datetime | None = None
    #: No poll before this time, because of a 404 or an open circuit.
    not_before: datetime | None = None
    #: The last poll that brought news.
    changed_at: datetime | None = None
    #: Since when the site shows old data while play goes on.
    frozen_since: datetime | None = None
    #: The current poll interval, and its reason.
    interval_seconds: float | None = None
    tempo: str | None = None
    is_important: bool = False
    #: Whether an operator paused it.
    is_on_hold: bool = False
    #: How often its watch was restarted.
    restarts: int = 0
    consecutive_failures: int = 0
    total_polls: int = 0
    total_failures: int = 0
    last_error: str | None = None
    sport: str
    #: Whether the last poll was postponed: circuit open, rate-limited, or waiting for our own resources.
    is_held: bool = False
    #: Whether that applies to all matches of its site: circuit open, rate-limited, or refused.
    is_shut_out: bool = False
    #: The exhausted resource of this machine, if that is the reason.
    lacking: str | None = None
    #: Why the data may be wrong or incomplete, except for its age.
    unreliability: tuple[Unreliability, ...] = ()

    @property
    def is_paused(self) -> bool:
        """Whether an operator or its breaker paused it."""
        return self.is_on_hold or self.phase is Phase.PAUSED

    def age_at(self, now: Moment) -> float | None:
        """Return the seconds since the last accepted poll; `None` before the first."""
        if self.last_poll_at is None:
            return None
        return max(0.0, now.seconds_since(self.last_poll_at, self.last_poll_monotonic))
