"""What a scraper reports about itself in its heartbeat: open breakers, counters, resources."""

from datetime import datetime

from msgspec import Struct

from longstop.clock import Moment


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


class NodeBeat(Struct, frozen=True, kw_only=True):
    """A scraper's heartbeat, with its health."""

    node: str
    pid: int
    started_at: datetime
    beat_at: datetime
    #: The same on the monotonic clock of the machine; `None` if it is from an earlier boot.
    beat_monotonic: float | None = None
    uptime_seconds: float = 0.0
    rss_bytes: int
    #: Failures of the last minute, across all matches.
    errors_last_minute: int
    #: When the listing of each source was last read; `None` if never.
    listed_at: dict[str, datetime | None] = {}
    #: Its age at the time of the heartbeat; if never read, the time since the start.
    unlisted_seconds: dict[str, float] = {}
    #: `healthy`, `degraded`, `failing` or `recovering`; since when, and why.
    grade: str = "healthy"
    graded_at: datetime | None = None
    grade_reason: str = ""
    #: The maximum of the last ten seconds.
    loop_lag_seconds: float | None = None
    #: Of the process and its children; `None` before the first measurement.
    resources: ProcessResources | None = None
    rates: Rates = Rates()
    #: Polls that wait for a slot, and running ones.
    waiting: int | None = None
    looking: int | None = None
    breakers: tuple[BreakerNote, ...] = ()
    #: Sources that an operator has paused.
    paused_sources: tuple[str, ...] = ()
    #: Why nothing can be stored; empty while it can. Whether the store is not the file that was opened.
    store_problem: str = ""
    is_store_lost: bool = False
    #: Matches that are not polled because what is stored of them cannot be read.
    damaged_matches: tuple[str, ...] = ()
    #: Resource usage by match number.
    costs: dict[int, MatchCost] = {}
    #: Whether it is the last one: the scraper was stopped on request and will not be restarted automatically.
    is_over: bool = False

    def silence_at(self, now: Moment) -> float:
        """Return the seconds since this heartbeat; negative if the wall clock was set back since."""
        return now.seconds_since(self.beat_at, self.beat_monotonic)


def megabytes(count: int | None) -> float | None:
    return None if count is None else round(count / 1024 / 1024, 1)
