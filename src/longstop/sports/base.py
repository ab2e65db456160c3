"""The sport seam. A new sport is one folder and an entry point in the group `longstop.sports`.

A sport reads what a source shows of a match (`read`), and decides what to store (`diff`). Polling, versions,
confirmation, commit, finish and pause are the same for all sports and live in `matches/`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import msgspec
from msgspec import Struct

from longstop.errors import LimitExceeded, PageNotFound, SourceError, UsageError, WrongMatch, without_frames
from longstop.model.data_finding import Finding, FindingKind
from longstop.model.event import RESULT, Event, EventKey
from longstop.model.match import MatchRef, MatchRow, MatchStatus, Priority, priority_of
from longstop.model.polling_status import SyncState
from longstop.model.snapshot import Snapshot
from longstop.model.source_queries_and_answers import LIVE, Keys, ListingEntry, Observation, Query
from longstop.storage.base import MatchBase, Receipt

View = TypeVar("View")
Value = TypeVar("Value")
Board = TypeVar("Board", bound=ListingEntry)


class EventKind(Struct, frozen=True, kw_only=True):
    content: type[Struct]
    #: Names of the numbers in its key.
    fields: tuple[str, ...] = ()
    #: Whether it is stored even when disk space is short.
    is_critical: bool = True


class MatchState(Struct, frozen=True, kw_only=True):
    """The durable base of a match, and what this run has learnt from one feed. Sports add their own fields."""

    row: MatchRow
    #: The latest version of every key, including void ones.
    events: Mapping[EventKey, Event]
    #: The newest stored snapshot.
    snapshot: Snapshot | None
    findings: tuple[Finding, ...]
    players: Mapping[str, str]
    teams: Mapping[str, str]
    # The rest is in memory only. After a restart a full sync replaces it.
    sync: SyncState = SyncState.RECOVERING
    board: ListingEntry | None = None
    #: Step-back tokens of the last poll; the next poll confirms or drops them.
    suspects: frozenset[str] = frozenset()
    #: Digests of the head bodies of the last stored poll.
    digests: Mapping[str, bytes] = {}
    # How a feed other than the one that named the match sees it: see `matches/map_ids_and_keys_between_feeds.py`.
    #: This source's reference of the match; `None` if it is the match's own.
    ref: MatchRef | None = None
    #: From this source's keys of players and teams to those stored.
    keys: Keys = Keys()
    #: The events as stored; `None` if this feed uses the same ids.
    stored: Mapping[EventKey, Event] | None = None

    @classmethod
    def from_base(cls, base: MatchBase) -> Self:
        return cls(
            row=base.match,
            events={stored.event.key: stored.event for stored in base.events},
            snapshot=base.snapshot,
            findings=base.open_findings,
            players=base.players,
            teams=base.teams,
        )

    def after(self, receipt: Receipt) -> Self:
        """Return the base after an update is durable. Never call it earlier."""
        return msgspec.structs.replace(
            self,
            row=receipt.match,
            events={**self.events, **{stored.event.key: stored.event for stored in receipt.events}},
            snapshot=receipt.snapshot or self.snapshot,
        )

    @property
    def feed(self) -> MatchRef:
        """Return the reference of the match at the polled source."""
        return self.ref or self.row.ref

    @property
    def known_teams(self) -> tuple[str, ...]:
        """Return the teams of the last poll, in the order of `ListingEntry.teams`; sports add those that are served."""
        return self.board.teams if self.board else ()

    @property
    def served_teams(self) -> Mapping[str, str]:
        """Return the keys of the teams in the stored payload, by their names there."""
        served = msgspec.json.decode(self.snapshot.payload).get("teams") if self.snapshot else None
        return {name: team["key"] for name, team in (served or {}).items()}

    @property
    def is_contradicted(self) -> bool:
        """Return whether scoreboard and event list disagreed in the last poll."""
        return False

    def is_check_due(self, now: float) -> bool:
        """Return whether the match must be polled although nothing changes, to check what one answer showed."""
        return False

    @property
    def has_unnamed(self) -> bool:
        """Return whether a name is still missing, which the site may publish late."""
        return False

    def priority(self, now: datetime) -> Priority:
        """Return how urgent a poll is; a match far in the future is as urgent as a completed one."""
        priority = priority_of(self.row.status, self.row.start_at, now)
        return Priority.COMPLETED if priority is None else priority

    @property
    def result(self) -> Any:
        """Return the stored result; `None` if there is none."""
        event = self.events.get(RESULT)
        return event.content if event and event.is_live else None


class Draft(Struct, frozen=True, kw_only=True):
    """What to store after an observation."""

    #: The state after it is stored.
    state: MatchState
    status: MatchStatus
    title: str
    start_at: datetime | None
    #: Canonical JSON; `None` if the observation has nothing to serve.
    payload: bytes | None
    events: tuple[Event, ...] = ()
    #: New ids of this source for events that another source introduced.
    ids: Mapping[EventKey, str] = {}
    #: Whether scoreboard and event list agree; `None` if the source shows only one of them.
    agree: bool | None = None


class Client(Protocol):
    """Requests to the source of a feed during one poll. A page that several queries need is fetched once."""

    async def ask(self, query: Query, kind: type[View]) -> View:
        """Return the parsed response, or raise a `SourceError`."""
        ...

    async def ask_if_there(self, query: Query, kind: type[View]) -> View | None:
        """Return the parsed response; `None` if the site has no such page."""
        ...

    async def are_unchanged(self, *queries: Query) -> bool:
        """Return whether all responses have the digests of the last stored poll, and record their digests.

        Always false while the state is not in sync or has suspects, and during a full poll.
        """
        ...

    def forget(self) -> None:
        """Drop cached pages: later queries fetch again."""
        ...

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...


State = TypeVar("State", bound=MatchState)


class Sport(ABC, Generic[State]):
    """One sport. Everything except `read` is pure."""

    name: ClassVar[str]
    kinds: ClassVar[Mapping[str, EventKind]]
    #: How the API shows the place of an event: `side`, `position`, or a field of its key.
    place: ClassVar[tuple[str, ...]]
    #: Resources of a source of this sport, in addition to list, live state and rendered page.
    resources: ClassVar[tuple[str, ...]] = ()
    #: An event that the documentation of the API shows.
    example: ClassVar[Event | None] = None
    state: type[State]
    #: The fields that hold keys of players and of teams, by record. A field holds a key, or names by key.
    player_keys: ClassVar[Mapping[type, tuple[str, ...]]] = {}
    team_keys: ClassVar[Mapping[type, tuple[str, ...]]] = {}
    #: The view of a rendered page; `None` if the sport does not support it.
    dom_board: ClassVar[type[ListingEntry] | None] = None

    @abstractmethod
    async def read(
        self, client: Client, state: State, *, is_full: bool = False, stand_in: ListingEntry | None = None
    ) -> Observation:
        """Poll a source: the whole event list if `is_full`, else as far back as needed.

        If nothing has changed (`Client.are_unchanged`), the observation has no view and the poll ends.
        `stand_in` replaces the live state if the site no longer has one.
        """

    @abstractmethod
    def diff(self, state: State, observation: Observation) -> Draft:
        """Return what to store for an observation; raise an `ObservationError` if it is impossible.

        The draft's state is the base of the next poll: `board`, whose fingerprint is compared with the listing;
        `suspects` and `findings`; `sync`, which is in sync after the whole list was compared without open suspects.
        """

    def teams(self, view: Any) -> tuple[str, ...]:
        """Return the teams of a view, in the order of `ListingEntry.teams`."""
        return ()

    def shown(self, view: Any) -> frozenset[object]:
        """Return the events of a view, to compare two polls; empty if they cannot be compared."""
        return frozenset()

    def extent(self, view: Any) -> Mapping[str, int]:
        """Return how much a view shows of what `matches/limits.py` limits, such as its newest innings, cheaply."""
        return {}

    @abstractmethod
    def order(self, event: Event) -> tuple[float, ...]:
        """Return a sort key: the order of play."""

    @abstractmethod
    def describe(self, event: Event) -> str:
        """Return an event in a few words."""

    def diff_dom(self, state: State, board: Any) -> Draft:
        """Return what to store for a rendered page: a score and a status, no events."""
        raise UsageError(f"{self.name} does not support rendered pages")

    async def introduce(self, client: Client, state: State) -> Keys:
        """Return names by the source's own keys, before its first poll is compared with stored events."""
        return Keys()

    def names(self, view: Any) -> Keys:
        """Return the names that an observation shows, by the source's keys."""
        return Keys()

    def rekey(self, view: Any, keys: Keys) -> Any:
        """Return a view with the source's player and team keys replaced by the stored ones, wherever they are in it."""
        if isinstance(view, tuple):
            return tuple(self.rekey(each, keys) for each in view)
        if not isinstance(view, Struct):
            return view
        fields = {name: self.rekey(getattr(view, name), keys) for name in view.__struct_fields__}
        for table, stored in ((self.player_keys, keys.players), (self.team_keys, keys.teams)):
            for name in table.get(type(view), ()):
                fields[name] = _rekeyed(fields[name], stored)
        return msgspec.structs.replace(view, **fields)

    def stand_in(self, state: State) -> ListingEntry | None:
        """Return the entry to use if the site no longer shows one; `None` if there is nothing left to read."""
        return state.board


def keys_in(records: Iterable[object], fields: Mapping[type, tuple[str, ...]]) -> set[str]:
    """Return the keys that these records hold in the fields of a table, such as `Sport.player_keys`."""
    return {
        key for record in records for name in fields.get(type(record), ()) if (key := getattr(record, name)) is not None
    }


def _rekeyed(shown: Any, stored: Mapping[str, str]) -> Any:
    if isinstance(shown, Mapping):
        return {stored.get(key, key): name for key, name in shown.items()}
    return stored.get(shown, shown)


# --- queries of a poll ------------------------------------------------------------------------------------------------

#: Why a resource could not be read, by its name.
Absent = dict[str, SourceError]


async def ask_live(client: Client, source_id: str, kind: type[Board], stand_in: ListingEntry | None) -> Board:
    """Return the live state of a match, or the stand-in if the site no longer has one."""
    try:
        return await client.ask(Query(resource=LIVE, source_id=source_id), kind)
    except PageNotFound:
        if not isinstance(stand_in, kind):
            raise
        return stand_in


async def ask_optional(
    client: Client, query: Query, kind: type[View], absent: Absent, check: Callable[[View], None] | None = None
) -> View | None:
    """Return an optional resource; `None` if the site has none, or it cannot be read, which is recorded."""
    try:
        view = await client.ask_if_there(query, kind)
        if view is not None and check is not None:
            check(view)
    except LimitExceeded:  # the match is refused
        raise
    except SourceError as error:
        absent[query.resource] = without_frames(error)
        return None
    return view


# --- shared by sports that support rendered pages ---------------------------------------------------------------------

#: Open while a match is read from its rendered page only. The text is stored and compared: do not change it.
DOM_ONLY = Finding(kind=FindingKind.GAP, place="events", detail="only the drawn page could be read")
#: Shorter texts are ambiguous.
MIN_NAME_CHARACTERS = 2


def is_dom_only(state: MatchState) -> bool:
    """Return whether the last poll had only the rendered page: it must not create events."""
    return DOM_ONLY in state.findings


def with_dom_gap(state: MatchState) -> tuple[Finding, ...]:
    """Return the findings, plus the gap of a poll that saw no events."""
    return tuple(dict.fromkeys((*state.findings, DOM_ONLY)))


def stored_payload(state: MatchState, kind: type[Value]) -> Value:
    """Return the served payload. A rendered page cannot start a match that has none."""
    if state.snapshot is None:
        raise WrongMatch("nothing is stored to compare the rendered page with")
    return msgspec.json.decode(state.snapshot.payload, type=kind)


def is_name_of(name: str, shown: str) -> bool:
    """Return whether a shown text can be a side's name: the name, its beginning (NEP) or its initials (NZ)."""
    known, short = name.casefold(), shown.casefold()
    initials = "".join(word[0] for word in known.split())
    return known == short or (len(short) >= MIN_NAME_CHARACTERS and (known.startswith(short) or initials == short))
