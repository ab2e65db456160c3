"""The storage seam, in verbs. `matches.db` is capture and store at once; what it returned from is on disk."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from longstop.clock import Moment
from longstop.model.command import Command, CommandKind, Reply, StandingKind, StandingOrder
from longstop.model.episode import Episode, EpisodeChange, StoredError
from longstop.model.event import Event, EventKey, StoredEvent
from longstop.model.match import MatchRef, MatchStatus, MonitoringRecord, Phase
from longstop.model.node import BreakerNote, MatchCost, ProcessResources, Rates
from longstop.model.observation import Keys
from longstop.model.recovery import Recovery
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
    sport: str


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
    #: The match's feeds: how each source calls it.
    feeds: tuple[MatchRef, ...] = ()
    #: By source, its ids of events that came from another one.
    ids: Mapping[str, Mapping[EventKey, str]] = {}
    #: By source, how its keys map onto those stored.
    keys: Mapping[str, Keys] = {}


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
    #: The source that all this comes from, and newly learnt: its ids of others' events, and how its keys map.
    source: str = ""
    ids: Mapping[EventKey, str] = {}
    keys: Keys = Keys()


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
    sport: str | None = None
    #: Only ids greater than this.
    after_id: int = 0
    limit: int = 100


class MatchReader(Protocol):
    """The reading side: what the API needs. Calls are short and never wait for a writer."""

    async def find(self, ref: MatchRef) -> MatchRow | None: ...

    async def match(self, match_id: int) -> MatchRow | None: ...

    async def matches(self, wanted: MatchFilter) -> list[MatchRow]:
        """Return matches in the order of their ids."""
        ...

    async def events_after(self, match_id: int, seq: int, limit: int) -> list[StoredEvent]:
        """Return event versions in the order of their sequence numbers."""
        ...

    async def current_events(self, match_id: int) -> list[StoredEvent]:
        """Return the latest version of every key, void ones included."""
        ...

    async def snapshots(self, match_id: int) -> list[Snapshot]:
        """Return the kept snapshots, newest first."""
        ...

    async def findings(self, match_id: int) -> list[StoredFinding]:
        """Return gaps and mismatches, open ones first."""
        ...

    async def aclose(self) -> None: ...


class MatchStore(Protocol):
    """The writing side: one process, one writer."""

    async def register(
        self, ref: MatchRef, title: str, start_at: datetime | None, now: datetime, *, sport: str
    ) -> MatchRow:
        """Return the match of this reference, created as DISCOVERED when it is new."""
        ...

    async def link(self, ref: MatchRef, match_id: int) -> None:
        """Make a source's match a feed of this one; raise when it is another match already."""
        ...

    async def claim(self, match_id: int, node: str) -> MatchRow:
        """Take the match: owner set, epoch + 1."""
        ...

    async def feeds(self, match_id: int) -> tuple[MatchRef, ...]:
        """Return how the sources call a match."""
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
    resources: ProcessResources | None = None
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
    """The scraper's side of the hot view. Nothing but closing waits; all it holds can be built again from the store."""

    def put(self, row: HotRow) -> None: ...

    def forget(self, match_id: int) -> None:
        """Take a match out of the view: from here on the store alone speaks for it."""
        ...

    def keep_only(self, match_ids: Collection[int]) -> None:
        """Take every other match out of the view."""
        ...

    def beat(self, beat: NodeBeat) -> None: ...

    async def aclose(self) -> None:
        """Write what is left."""
        ...


class HotReader(Protocol):
    """The API's side of the hot view."""

    async def row(self, match_id: int) -> HotRow | None: ...

    async def records(self, first: int = 1, last: int = MAX_MATCH_ID) -> Sequence[MonitoringRecord]:
        """Return how the watching goes of the matches from `first` to `last`, in the order of their ids."""
        ...

    async def beats(self) -> Sequence[NodeBeat]: ...

    async def aclose(self) -> None: ...


# --- operations -------------------------------------------------------------------------------------------------------

#: Resolved errors are kept for this long after they were last seen, the health log from its rows' own time (NFR-017).
KEEP_FOR = timedelta(days=30)
#: An error that is back so soon was never over: a match that fails every other time makes one row, not thousands.
BACK_WITHIN = timedelta(seconds=60)
#: Entries of the audit that are kept, of every kind the newest: a storm of one kind does not push out the others.
RECOVERIES_KEPT = 100
#: Of these, the entries of the same kind and subject; the last of them counts the older ones.
RECOVERIES_KEPT_OF_THE_SAME = 10
#: Answered commands that are kept, the newest.
COMMANDS_KEPT = 1_000
#: More than these do not wait: a client that sends a thousand has a bug, or no scraper.
MAX_COMMANDS_WAITING = 100
#: Longer than any address of a match.
MAX_ARGUMENT_CHARACTERS = 2_000


class ErrorFilter(Struct, frozen=True, kw_only=True):
    """Which errors are wanted; what is `None` asks for all."""

    match_id: int | None = None
    ref: str | None = None
    is_open: bool = False
    limit: int = 20


class HealthRow(Struct, frozen=True, kw_only=True):
    """How a node or a match was, at one moment. What was not measured is `None`."""

    scraper_id: str
    timestamp: datetime
    health_status: str
    #: Of a match: failures in a row. Of a node: errors of the last minute.
    error_count: int
    #: `None` for the node as a whole.
    match_id: int | None = None
    ref: str | None = None
    memory_mb: float | None = None
    cpu_percent: float | None = None
    update_latency_ms: int | None = None
    polling_interval_seconds: float | None = None
    uptime_seconds: float | None = None
    last_update_age_seconds: float | None = None


class CommandRequest(Struct, frozen=True, kw_only=True):
    """A command before it is stored."""

    kind: CommandKind
    argument: str = ""
    asked_by: str


class ErrorStore(Protocol):
    """What went wrong: one row for an episode, however often its error comes back."""

    async def open_episodes(self) -> list[Episode]:
        """Return what is unresolved."""
        ...

    async def write(self, changes: Mapping[Episode, EpisodeChange]) -> None:
        """Store all changes or none. An error that is back within `BACK_WITHIN` continues its episode."""
        ...

    async def resolve(self, error_id: int, now: datetime) -> bool:
        """Mark an error as dealt with by a person; return whether it was open."""
        ...

    async def recent(self, wanted: ErrorFilter) -> list[StoredError]:
        """Return errors, the last seen first."""
        ...

    async def prune(self, now: datetime) -> None:
        """Remove what was resolved longer ago than `KEEP_FOR`, and what is too much."""
        ...

    async def aclose(self) -> None: ...


class AuditReader(Protocol):
    """The reading side of the audit."""

    async def recent(self, limit: int = RECOVERIES_KEPT) -> list[Recovery]:
        """Return entries, the last written first."""
        ...

    async def aclose(self) -> None: ...


class AuditStore(AuditReader, Protocol):
    """Automatic recoveries and their outcomes."""

    async def write(self, recoveries: Iterable[Recovery]) -> None:
        """Store all or none, replace entries of the same id, and remove what is too much."""
        ...

    async def give_up(self, process: str, observed: str) -> None:
        """Close what a process has begun and has seen no outcome of."""
        ...


class StandingReader(Protocol):
    """The reading side of the standing orders."""

    async def standing(self) -> list[StandingOrder]: ...

    async def aclose(self) -> None: ...


class CommandStore(StandingReader, Protocol):
    """Commands to a running scraper, and the standing orders that they leave. What it returned from is durable.

    A command expires by its age (`age_of`), whichever process or machine asks; a standing order never does.
    """

    async def place(self, request: CommandRequest) -> Command:
        """Store a command; raise `UsageError` where too many wait already."""
        ...

    async def find(self, command_id: int) -> Command | None:
        """Return a command as it is now; one that has waited too long is answered first."""
        ...

    async def take(self, limit: int) -> list[Command]:
        """Return pending commands, oldest first; from then on no other caller gets them."""
        ...

    async def answer(self, command: Command, reply: Reply) -> None:
        """Store the answer to a command that was taken; only the first answer counts."""
        ...

    async def give_up_taken(self) -> None:
        """Answer what an earlier process has taken and not answered; how far it came is unknown."""
        ...

    async def put_order(self, kind: StandingKind, subject: str, asked_by: str) -> bool:
        """Put an order in force; return whether it was not in force before."""
        ...

    async def lift_order(self, kind: StandingKind, subject: str) -> bool:
        """Take an order back; return whether it was in force."""
        ...


class HealthLogReader(Protocol):
    """The reading side of the health log."""

    async def recent(
        self, *, match_id: int | None = None, ref: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[HealthRow]:
        """Return rows of one match or of everything, the last written first."""
        ...

    async def aclose(self) -> None: ...


class HealthLogStore(HealthLogReader, Protocol):
    """How nodes and matches were over time."""

    async def write(self, rows: Iterable[HealthRow]) -> None:
        """Store all or none."""
        ...

    async def prune(self, now: datetime) -> None:
        """Remove what is older than `KEEP_FOR`, and what is too much."""
        ...


class Operations(Struct, frozen=True, kw_only=True):
    """The operations tables of one process."""

    errors: ErrorStore
    audit: AuditStore
    commands: CommandStore
    health_log: HealthLogStore

    async def aclose(self) -> None:
        stores = (self.errors, self.audit, self.commands, self.health_log)
        await asyncio.gather(*(each.aclose() for each in stores))
