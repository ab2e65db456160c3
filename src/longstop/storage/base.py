"""The storage seam, in verbs. `matches.db` is capture and store at once; what it returned from is on disk."""

from collections.abc import Collection, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from longstop.clock import Moment
from longstop.model.breaker import BreakerNote
from longstop.model.event import Event, StoredEvent
from longstop.model.match import MatchRef, MatchStatus, MonitoringRecord, Phase, Sport
from longstop.model.rates import Rates
from longstop.model.resources import MatchCost, Resources
from longstop.model.snapshot import Provenance, Snapshot


class MatchRow(Struct, frozen=True, kw_only=True):
    """A match as the store knows it."""

    match_id: int
    ref: MatchRef
    phase: Phase
    status: MatchStatus
    title: str
    start_at: datetime | None
    owner: str | None
    #: +1 at each take-over; whoever writes with an older one is refused.
    epoch: int
    #: The highest event sequence number given out.
    seq: int
    created_at: datetime
    #: The last stored change; the last *poll* is in the hot view.
    updated_at: datetime | None
    completed_at: datetime | None
    sport: Sport = Sport.CRICKET


class FindingKind(StrEnum):
    """What can be wrong with what a source shows."""

    #: Balls that must have been bowled are not shown.
    GAP = "gap"
    #: The events' totals and the scoreboard's disagree.
    MISMATCH = "mismatch"


class Finding(Struct, frozen=True, kw_only=True):
    """An open question about a match's data: recorded, shown, and closed when it is answered."""

    kind: FindingKind
    #: Which innings and place, e.g. `2:14` for over 14 of the second innings, `1` for a whole innings; in football
    #: `home` or `away`.
    place: str
    detail: str


class StoredFinding(Struct, frozen=True, kw_only=True):
    finding: Finding
    opened_at: datetime
    closed_at: datetime | None


class MatchBase(Struct, frozen=True, kw_only=True):
    """All that is needed to go on with a match: what the next view is compared with."""

    match: MatchRow
    #: The latest version of every key, void ones included.
    events: tuple[StoredEvent, ...]
    snapshot: Snapshot | None
    open_findings: tuple[Finding, ...]
    #: Names of players and teams learnt so far.
    players: dict[str, str]
    teams: dict[str, str]


class SnapshotDraft(Struct, frozen=True, kw_only=True):
    """A new payload; the store gives it its sequence number."""

    checksum: str
    payload: bytes
    provenance: dict[str, Provenance]
    update_latency_ms: int


class MatchUpdate(Struct, frozen=True, kw_only=True):
    """Everything one accepted poll changed: stored together or not at all."""

    match_id: int
    epoch: int
    scraper_id: str
    captured_at: datetime
    phase: Phase
    status: MatchStatus
    title: str
    start_at: datetime | None
    events: tuple[Event, ...]
    #: `None` when the payload is the one already stored.
    snapshot: SnapshotDraft | None
    #: The findings that are open now; those stored and not named here are closed.
    findings: tuple[Finding, ...]
    #: Newly learnt names.
    players: dict[str, str]
    teams: dict[str, str]


class Receipt(Struct, frozen=True, kw_only=True):
    """Proof that an update is durable."""

    match: MatchRow
    #: The events as stored, with their sequence numbers.
    events: tuple[StoredEvent, ...]
    snapshot: Snapshot | None


class MatchFilter(Struct, frozen=True, kw_only=True):
    """Which matches to list, a page at a time."""

    status: MatchStatus | None = None
    phase: Phase | None = None
    source: str | None = None
    sport: Sport | None = None
    #: Only ids greater than this.
    after_id: int = 0
    limit: int = 100


class MatchReader(Protocol):
    """The reading side: what the API needs. Calls are short and never wait for a writer."""

    def find(self, ref: MatchRef) -> MatchRow | None: ...

    def match(self, match_id: int) -> MatchRow | None: ...

    def matches(self, wanted: MatchFilter) -> list[MatchRow]:
        """Return matches in the order of their ids."""
        ...

    def events_after(self, match_id: int, seq: int, limit: int) -> list[StoredEvent]:
        """Return event versions in the order of their sequence numbers."""
        ...

    def current_events(self, match_id: int) -> list[StoredEvent]:
        """Return the latest version of every key, void ones included."""
        ...

    def snapshots(self, match_id: int) -> list[Snapshot]:
        """Return the kept snapshots, newest first."""
        ...

    def findings(self, match_id: int) -> list[StoredFinding]:
        """Return gaps and mismatches, open ones first."""
        ...

    def close(self) -> None: ...


class MatchStore(Protocol):
    """The writing side: one process, one writer."""

    async def register(
        self, ref: MatchRef, title: str, start_at: datetime | None, now: datetime, *, sport: Sport = Sport.CRICKET
    ) -> MatchRow:
        """Return the match of this reference, created as DISCOVERED when it is new."""
        ...

    async def claim(self, match_id: int, node: str) -> MatchRow:
        """Take the match: owner set, epoch + 1."""
        ...

    async def load(self, match_id: int) -> MatchBase: ...

    async def unfinished(self) -> list[MatchRow]:
        """Return the matches that are not archived: what a restarted node goes on with."""
        ...

    async def save_update(self, update: MatchUpdate) -> Receipt:
        """Store an update in one transaction; durable on return. Raise `EpochLost` for an old epoch."""
        ...

    async def aclose(self) -> None: ...


#: The greatest number that SQLite and PostgreSQL can give to a match.
MAX_MATCH_ID = 2**63 - 1


class HotRow(Struct, frozen=True, kw_only=True):
    """The live view of one match."""

    record: MonitoringRecord
    #: Sequence number and bytes of the newest snapshot; `None` before the first.
    sequence: int | None
    checksum: str | None
    payload: bytes | None
    captured_at: datetime | None
    scraper_id: str


class NodeBeat(Struct, frozen=True, kw_only=True):
    """A scraper's sign of life, and how it says it is."""

    node: str
    pid: int
    started_at: datetime
    beat_at: datetime
    #: The same, by the clock that never jumps and that all processes of a machine share; `None` of an earlier boot.
    beat_monotonic: float | None = None
    uptime_seconds: float = 0.0
    rss_bytes: int
    #: Failures of the last minute, over all matches.
    errors_last_minute: int
    #: When each source's listing was last read; `None` before the first time.
    listed_at: dict[str, datetime | None] = {}
    #: How long ago that was at the time of the beat; before the first time, how long it has been waited for.
    unlisted_seconds: dict[str, float] = {}
    #: `healthy`, `degraded`, `failing` or `recovering`, since when, and why.
    grade: str = "healthy"
    graded_at: datetime | None = None
    grade_reason: str = ""
    #: The worst of the last ten seconds.
    loop_lag_seconds: float | None = None
    #: Of the process and all that it has started; `None` before the first measurement.
    resources: Resources | None = None
    rates: Rates = Rates()
    #: Looks that wait for a slot, and those under way.
    waiting: int | None = None
    looking: int | None = None
    breakers: tuple[BreakerNote, ...] = ()
    #: Sources that somebody has paused.
    paused_sources: tuple[str, ...] = ()
    #: What each match takes, by its number.
    costs: dict[int, MatchCost] = {}
    #: Whether it is the last one: the scraper was asked to stop, has done so, and nobody starts it again by himself.
    is_over: bool = False

    def silence_at(self, now: Moment) -> float:
        """Return the seconds since this beat; below zero, it is of a wall clock that was set back since."""
        return now.seconds_since(self.beat_at, self.beat_monotonic)


class HotWriter(Protocol):
    """The scraper's side of the hot view. It never waits; what it holds can be built again from the store."""

    def put(self, row: HotRow) -> None: ...

    def forget(self, match_id: int) -> None:
        """Take a match out of the view: from here on the store alone speaks for it."""
        ...

    def keep_only(self, match_ids: Collection[int]) -> None:
        """Take every other match out of the view."""
        ...

    def beat(self, beat: NodeBeat) -> None: ...


class HotReader(Protocol):
    """The API's side of the hot view."""

    def row(self, match_id: int) -> HotRow | None: ...

    def records(self, first: int = 1, last: int = MAX_MATCH_ID) -> Sequence[MonitoringRecord]:
        """Return how the watching goes of the matches from `first` to `last`, in the order of their ids."""
        ...

    def beats(self) -> Sequence[NodeBeat]: ...

    def close(self) -> None: ...
