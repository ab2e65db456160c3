"""The storage seams: async protocols for matches, the hot view and the operations tables, and their records."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from longstop.model.command_and_standing_order import Command, CommandKind, Reply, StandingKind, StandingOrder
from longstop.model.data_finding import Finding, StoredFinding
from longstop.model.episode import Episode, EpisodeChange, StoredError
from longstop.model.event import Event, EventKey, StoredEvent
from longstop.model.match import MatchRef, MatchRow, MatchStatus, Phase
from longstop.model.polling_status import MonitoringRecord
from longstop.model.recovery import Recovery
from longstop.model.request_pause import RequestPause
from longstop.model.scraper_report import NodeBeat
from longstop.model.snapshot import Provenance, Snapshot
from longstop.model.source_queries_and_answers import Keys


class MatchBase(Struct, frozen=True, kw_only=True):
    """Everything needed to continue a match: the next view is compared with it."""

    match: MatchRow
    #: The latest version of every key, including void ones.
    events: tuple[StoredEvent, ...]
    snapshot: Snapshot | None
    open_findings: tuple[Finding, ...]
    #: Names of players and teams by key.
    players: dict[str, str]
    teams: dict[str, str]
    #: The feeds of the match, one per source.
    feeds: tuple[MatchRef, ...] = ()
    #: By source, its ids of events that another source introduced.
    ids: Mapping[str, Mapping[EventKey, str]] = {}
    #: By source, the mapping of its keys to the stored ones.
    keys: Mapping[str, Keys] = {}


class SnapshotDraft(Struct, frozen=True, kw_only=True):
    """A new payload; the store assigns its sequence number."""

    checksum: str
    payload: bytes
    provenance: dict[str, Provenance]
    update_latency_ms: int


class MatchUpdate(Struct, frozen=True, kw_only=True):
    """All changes of one accepted poll, or a change of our own, stored in one transaction."""

    match_id: int
    epoch: int
    scraper_id: str
    captured_at: datetime
    phase: Phase
    status: MatchStatus
    title: str
    start_at: datetime | None
    events: tuple[Event, ...] = ()
    #: `None` if the payload is unchanged.
    snapshot: SnapshotDraft | None = None
    #: The open findings; stored ones that are not listed here are closed.
    findings: tuple[Finding, ...]
    #: New names.
    players: dict[str, str] = {}
    teams: dict[str, str] = {}
    #: The source that was polled; empty for a change of our own, such as a pause.
    source: str = ""
    #: Its new ids for events of other sources, and new key mappings.
    ids: Mapping[EventKey, str] = {}
    keys: Keys = Keys()


class Receipt(Struct, frozen=True, kw_only=True):
    """Proof that an update is durable."""

    match: MatchRow
    #: The events as stored, with their sequence numbers.
    events: tuple[StoredEvent, ...]
    snapshot: Snapshot | None


class MatchFilter(Struct, frozen=True, kw_only=True):
    """Selects one page of matches."""

    status: MatchStatus | None = None
    phase: Phase | None = None
    source: str | None = None
    sport: str | None = None
    #: Only ids greater than this.
    after_id: int = 0
    limit: int = 100


#: As a limit: all rows.
UNLIMITED = 2**63 - 1


class MatchReader(Protocol):
    """Reads matches for the API. Calls are short and never wait for a writer."""

    async def find(self, ref: MatchRef) -> MatchRow | None: ...

    async def match(self, match_id: int) -> MatchRow | None: ...

    async def matches(self, wanted: MatchFilter) -> list[MatchRow]:
        """Return matches in the order of their ids."""

    async def events_after(self, match_id: int, seq: int, limit: int) -> list[StoredEvent]:
        """Return event versions in the order of their sequence numbers."""

    async def current_events(self, match_id: int, seq: int = 0, limit: int = UNLIMITED) -> list[StoredEvent]:
        """Return the latest version of every key, including void ones, in the order of their sequence numbers.

        Only those after `seq`, and at most `limit`.
        """

    async def snapshots(self, match_id: int, limit: int = UNLIMITED) -> list[Snapshot]:
        """Return the stored snapshots, newest first."""

    async def snapshot_bytes(self, match_id: int) -> int:
        """Return how large the payloads of the stored snapshots are, without reading them."""

    async def findings(self, match_id: int, limit: int = UNLIMITED) -> list[StoredFinding]:
        """Return gaps and mismatches, open ones first."""

    async def count_findings(self, match_id: int) -> int:
        """Return the number of all gaps and mismatches."""

    async def count_open_findings(self, match_id: int) -> int:
        """Return the number of the open ones; however many are closed, this is a point read."""

    async def with_open_findings(self, first_id: int, last_id: int) -> set[int]:
        """Return which matches in this range of ids have open findings."""

    async def aclose(self) -> None: ...


class MatchStore(Protocol):
    """Writes matches: one process, one writer."""

    async def register(
        self, ref: MatchRef, title: str, start_at: datetime | None, now: datetime, *, sport: str
    ) -> MatchRow:
        """Return the match of this reference; create it as DISCOVERED if it is new."""

    async def link(self, ref: MatchRef, match_id: int) -> None:
        """Add a feed to this match; raise if it already belongs to another match."""

    async def claim(self, match_id: int, node: str) -> MatchRow:
        """Claim the match: set its owner and increment its epoch."""

    async def load(self, match_id: int) -> MatchBase: ...

    async def unfinished(self) -> Mapping[int, tuple[MatchRef, ...]]:
        """Return the numbers and feeds of matches that are not archived: a restarted node continues them.

        Nothing else is read: a match with a value that this version does not know stops none of the others.
        """

    async def save_update(self, update: MatchUpdate) -> Receipt:
        """Store an update in one transaction; durable on return. Raise `EpochLost` for an old epoch."""

    async def check(self) -> None:
        """Raise if nothing can be stored now: the disk is full, or the file is not the one that was opened."""

    async def aclose(self) -> None: ...


#: The greatest match number of SQLite and PostgreSQL.
MAX_MATCH_ID = 2**63 - 1


class HotRow(Struct, frozen=True, kw_only=True):
    """The live view of one match."""

    record: MonitoringRecord
    #: Sequence number and bytes of the newest snapshot; `None` if there is none.
    sequence: int | None
    checksum: str | None
    payload: bytes | None
    captured_at: datetime | None
    scraper_id: str


class HotWriter(Protocol):
    """Writes the hot view. Only closing waits; the content can be rebuilt from the store."""

    def put(self, row: HotRow) -> None: ...

    def forget(self, match_id: int) -> None:
        """Remove a match from the view; the store serves it from now on."""

    def keep_only(self, match_ids: Collection[int]) -> None:
        """Remove every other match from the view."""

    def beat(self, beat: NodeBeat) -> None: ...

    async def aclose(self) -> None:
        """Write pending rows, and close."""


class HotReader(Protocol):
    async def row(self, match_id: int) -> HotRow | None: ...

    async def records(self, first: int = 1, last: int = MAX_MATCH_ID) -> Sequence[MonitoringRecord]:
        """Return the monitoring records of matches `first` to `last`, in the order of their ids."""

    async def beats(self) -> Sequence[NodeBeat]: ...

    async def aclose(self) -> None: ...


# --- operations -------------------------------------------------------------------------------------------------------

#: Retention of resolved errors, after they were last seen, and of the health log (NFR-017).
KEEP_FOR = timedelta(days=30)
#: An error that returns within this time continues its episode: a flapping match makes one row, not thousands.
BACK_WITHIN = timedelta(seconds=60)
#: Audit entries kept per kind, so that a storm of one kind does not push out the others.
RECOVERIES_KEPT = 100
#: Of these, entries per kind and subject; the last one counts the older ones.
RECOVERIES_KEPT_OF_THE_SAME = 10
#: Errors kept at most.
MAX_ERRORS = 100_000
#: Rows of the health log kept at most: a month of minutes of a node, and ten times as many changes of matches.
MAX_HEALTH_ROWS = 500_000
#: Answered commands that are kept.
COMMANDS_KEPT = 1_000
#: Pending commands at most: a client that sends a thousand has a bug, or no scraper.
MAX_COMMANDS_WAITING = 100
#: Longer than any match URL.
MAX_ARGUMENT_CHARACTERS = 2_000


class ErrorFilter(Struct, frozen=True, kw_only=True):
    """Selects errors; `None` selects all."""

    match_id: int | None = None
    ref: str | None = None
    is_open: bool = False
    limit: int = 20


class HealthRow(Struct, frozen=True, kw_only=True):
    """The health of a node or a match at one time. A value that was not measured is `None`."""

    scraper_id: str
    timestamp: datetime
    health_status: str
    #: For a match, failures in a row; for a node, errors of the last minute.
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


class ErrorStore(Protocol):
    """Errors: one row per episode, however often the error occurs."""

    async def open_episodes(self) -> list[Episode]:
        """Return the unresolved episodes."""

    async def write(self, changes: Mapping[Episode, EpisodeChange]) -> None:
        """Store all changes or none. An error that is back within `BACK_WITHIN` continues its episode."""

    async def resolve(self, error_id: int, now: datetime) -> bool:
        """Mark an error as resolved by an operator; return whether it was open."""

    async def recent(self, wanted: ErrorFilter) -> list[StoredError]:
        """Return errors, most recently seen first."""

    async def prune(self, now: datetime, max_rows: int = MAX_ERRORS) -> None:
        """Remove errors resolved longer ago than `KEEP_FOR`, and those beyond the limit."""

    async def aclose(self) -> None: ...


class AuditReader(Protocol):
    async def recent(self, limit: int = RECOVERIES_KEPT) -> list[Recovery]:
        """Return entries, newest first."""

    async def aclose(self) -> None: ...


class AuditStore(AuditReader, Protocol):
    """Automatic recoveries and their outcomes."""

    async def write(self, recoveries: Iterable[Recovery]) -> None:
        """Store all entries in one transaction, replace entries with the same id, and remove those beyond the limit."""

    async def give_up(self, process: str, observed: str) -> None:
        """Close entries that a process started without recording an outcome."""


class CommandStore(Protocol):
    """Commands to a running scraper, and standing orders. A call that has returned is durable.

    A command expires by its age (`age_of`), on every process and machine; a standing order does not expire.
    """

    async def place(self, kind: CommandKind, argument: str, asked_by: str) -> Command:
        """Store a command; raise `UsageError` if too many are pending."""

    async def find(self, command_id: int) -> Command | None:
        """Return the current state of a command; an expired one is answered first."""

    async def take(self, limit: int) -> list[Command]:
        """Return pending commands, oldest first; no other caller gets them afterwards."""

    async def answer(self, command: Command, reply: Reply) -> None:
        """Store the answer to a command that was taken; only the first answer counts."""

    async def give_up_taken(self) -> None:
        """Answer commands that an earlier process took and did not answer; their progress is unknown."""

    async def put_order(self, kind: StandingKind, subject: str, asked_by: str) -> bool:
        """Set an order; return whether it is new."""

    async def lift_order(self, kind: StandingKind, subject: str) -> bool:
        """Remove an order; return whether it was set."""

    async def standing(self) -> list[StandingOrder]:
        """Return the orders in force; creates no file."""

    async def protect_orders(self) -> None:
        """Add the checksum to orders of an earlier version."""

    async def aclose(self) -> None: ...


class HealthLogStore(Protocol):
    """The health of nodes and matches over time."""

    async def write(self, rows: Iterable[HealthRow]) -> None:
        """Store all rows in one transaction."""

    async def prune(self, now: datetime, max_rows: int = MAX_HEALTH_ROWS) -> None:
        """Remove rows older than `KEEP_FOR`, and those beyond the limit."""

    async def recent(
        self, *, match_id: int | None = None, ref: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[HealthRow]:
        """Return rows of one match or of all, newest first."""

    async def aclose(self) -> None: ...


class PauseStore(Protocol):
    """The pauses of requests; only the scraper reads and writes them."""

    async def read(self) -> list[RequestPause]: ...

    async def replace(self, pauses: Iterable[RequestPause]) -> None:
        """Store these pauses and no others, in one transaction; durable on return."""

    async def aclose(self) -> None: ...


class Operations(Struct, frozen=True, kw_only=True):
    errors: ErrorStore
    audit: AuditStore
    commands: CommandStore
    health_log: HealthLogStore
    pauses: PauseStore

    async def aclose(self) -> None:
        stores = (self.errors, self.audit, self.commands, self.health_log, self.pauses)
        await asyncio.gather(*(each.aclose() for each in stores))
