"""The sport seam: what Longstop asks of a sport. A new sport is one folder and an entry point `longstop.sports`.

A sport reads what a source shows of a match (`read`), and says what to store for it (`diff`). Polling, versions,
confirmation, commit, finish and pause are the same for all sports and live in `matches/`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import msgspec
from msgspec import Struct

from longstop.errors import SourceError, UsageError, WrongMatch
from longstop.model.event import RESULT, Event, EventKey
from longstop.model.match import MatchRef, MatchStatus, Priority, SyncState, priority_of
from longstop.model.observation import Keys, ListingEntry, Observation, Query
from longstop.model.snapshot import Snapshot
from longstop.storage.base import Finding, FindingKind, MatchBase, MatchRow, Receipt

View = TypeVar("View")


class EventKind(Struct, frozen=True, kw_only=True):
    """One kind of event."""

    content: type[Struct]
    #: What the numbers of its key are called.
    fields: tuple[str, ...] = ()
    #: Whether it is never dropped, however little room there is.
    is_critical: bool = True


class MatchState(Struct, frozen=True, kw_only=True):
    """The durable base of a match, and what this run has learnt of it from one feed. Each sport adds its own."""

    row: MatchRow
    #: The latest version of every key, void ones included: the fold of what is stored.
    events: Mapping[EventKey, Event]
    #: The newest stored snapshot.
    snapshot: Snapshot | None
    findings: tuple[Finding, ...]
    players: Mapping[str, str]
    teams: Mapping[str, str]
    # What follows is memory only; a restart begins without it, and a full sync makes that harmless.
    sync: SyncState = SyncState.RECOVERING
    board: ListingEntry | None = None
    #: Steps back that one poll has seen; the next poll confirms or forgets them.
    suspects: frozenset[str] = frozenset()
    #: Whether a name is missing that the site should know, as of the last poll that brought something.
    has_unnamed: bool = False
    #: Digests of the bodies that the last stored poll began with.
    digests: Mapping[str, bytes] = {}
    # What follows says how a feed that the match is not named after sees it: see `matches/reconcile.py`.
    #: How this feed's source calls the match; `None` for the name that the match has.
    ref: MatchRef | None = None
    #: This source's ids of events that came from another one.
    ids: Mapping[EventKey, str] = {}
    #: From this source's keys of players and teams to those stored.
    keys: Keys = Keys()
    #: The events as they are stored; `None` where this feed sees them under the same ids.
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
        """Return the base once an update is durable, and not a moment earlier."""
        return msgspec.structs.replace(
            self,
            row=receipt.match,
            events={**self.events, **{stored.event.key: stored.event for stored in receipt.events}},
            snapshot=receipt.snapshot or self.snapshot,
        )

    @property
    def feed(self) -> MatchRef:
        """Return how the source that is polled calls the match."""
        return self.ref or self.row.ref

    def priority(self, now: datetime) -> Priority:
        """Return how urgent a poll is; what is far off is as little urgent as what is over."""
        priority = priority_of(self.row.status, self.row.start_at, now)
        return Priority.COMPLETED if priority is None else priority

    @property
    def result(self) -> Any:
        """Return how the match ended, where that is stored."""
        event = self.events.get(RESULT)
        return event.content if event and event.is_live else None


class Draft(Struct, frozen=True, kw_only=True):
    """What a match should be stored as after an observation."""

    #: The state once that is stored.
    state: MatchState
    status: MatchStatus
    title: str
    start_at: datetime | None
    #: In canonical spelling; `None` when the observation showed nothing to serve.
    payload: bytes | None
    events: tuple[Event, ...] = ()
    #: Newly learnt names.
    players: Mapping[str, str] = {}
    teams: Mapping[str, str] = {}
    #: Newly learnt: this source's ids of events that came from another one.
    ids: Mapping[EventKey, str] = {}


class Client(Protocol):
    """How a sport asks the source of a feed during one poll. A page that several queries need is fetched once."""

    async def ask(self, query: Query, kind: type[View]) -> View:
        """Return what the source reads in the answer, or raise a `SourceError`."""
        ...

    async def ask_if_there(self, query: Query, kind: type[View]) -> View | None:
        """Return the same; `None` while the site has no such page, which is no error."""
        ...

    async def are_unchanged(self, *queries: Query) -> bool:
        """Return whether all answers are what they were at the last stored poll; remember their digests.

        They never are while the state is not in sync or has suspects, nor when the whole event list is wanted.
        """
        ...

    def forget(self) -> None:
        """Fetch again what is asked from here on."""
        ...

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...


State = TypeVar("State", bound=MatchState)


class Sport(ABC, Generic[State]):
    """One sport. All but `read` is pure."""

    name: ClassVar[str]
    kinds: ClassVar[Mapping[str, EventKind]]
    #: How the API shows the place of an event: `side`, `position`, or a field of its key.
    place: ClassVar[tuple[str, ...]]
    #: Beside the list, the live state and the drawn page: what a source of this sport may be asked for.
    resources: ClassVar[tuple[str, ...]] = ()
    #: A page of events as the API shows them, for its documentation.
    example: ClassVar[Mapping[str, Any]] = {}
    state: type[State]
    #: What a source reads in a drawn page; `None` where that is not supported.
    dom_board: ClassVar[type[ListingEntry] | None] = None

    @abstractmethod
    async def read(
        self, client: Client, state: State, *, is_full: bool = False, stand_in: ListingEntry | None = None
    ) -> Observation:
        """Poll a source: its whole event list if asked to, else as far back as needed.

        Where nothing has changed (`Client.are_unchanged`), the observation has no view, and the poll ends there.
        `stand_in` is the line to go by when the site has no live state of the match any more.
        """

    @abstractmethod
    def diff(self, state: State, observation: Observation) -> Draft:
        """Return what to store for an observation; raise an `ObservationError` when it cannot be true.

        The draft's state carries what the next poll goes on from: `board`, with the fingerprint that the listing is
        compared with; `suspects` and `findings`; `sync`, in sync once the whole list was compared and no doubt is left.
        """

    @abstractmethod
    def order(self, event: Event) -> tuple[float, ...]:
        """Return a sort key: the order of play."""

    @abstractmethod
    def describe(self, event: Event) -> str:
        """Return an event in a few words."""

    def diff_dom(self, state: State, board: Any) -> Draft:
        """Return what to store for a page as its script has drawn it: a score and a status, and no events."""
        raise UsageError(f"{self.name} is not read from drawn pages")

    async def introduce(self, client: Client, state: State) -> Keys:
        """Return the names of both sides by a source's own keys, before its first poll is compared with stored ones."""
        return Keys()

    def names(self, view: Any) -> Keys:
        """Return the names that an observation shows, by the source's keys."""
        return Keys()

    def rekey(self, view: Any, keys: Keys) -> Any:
        """Return what a source has read with its keys of players and teams replaced by those stored."""
        return view

    def stand_in(self, state: State) -> ListingEntry | None:
        """Return the line to go by when the site shows none any more; `None` when nothing is left to read."""
        return state.board


#: Why a resource could not be read, by its name.
Absent = dict[str, SourceError]


# --- what sports share when they read a drawn page --------------------------------------------------------------------

#: Open as long as a match is read by its drawn page alone.
DOM_ONLY = Finding(kind=FindingKind.GAP, place="events", detail="only the drawn page could be read")
#: Fewer letters than these may be anybody's.
MIN_NAME_CHARACTERS = 2


def is_dom_only(state: MatchState) -> bool:
    """Return whether the last poll had nothing but the drawn page: no event may come of what it showed."""
    return DOM_ONLY in state.findings


def with_dom_gap(state: MatchState) -> tuple[Finding, ...]:
    """Return what is open about a match of which a poll has seen no events."""
    return tuple(dict.fromkeys((*state.findings, DOM_ONLY)))


def stored_payload(state: MatchState) -> dict[str, Any]:
    """Return the payload that is served; a match of which none is stored is not begun from a drawn page."""
    if state.snapshot is None:
        raise WrongMatch("nothing is known of this match that a drawn page could be compared with")
    payload: dict[str, Any] = msgspec.json.decode(state.snapshot.payload)
    return payload


def is_name_of(name: str, shown: str) -> bool:
    """Return whether a page may call a side so: by its name, its beginning (NEP) or its initials (NZ)."""
    known, short = name.casefold(), shown.casefold()
    initials = "".join(word[0] for word in known.split())
    return known == short or (len(short) >= MIN_NAME_CHARACTERS and (known.startswith(short) or initials == short))
