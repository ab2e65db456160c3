"""Event versions: what is new, changed or gone, for every sport. Pure.

Keys are assigned once and never reused. A step back (fewer runs, a lesser card, a missing event) counts only when two
consecutive polls agree on it, because caches serve old copies.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from longstop.model.data_finding import Finding
from longstop.model.event import Event, EventKey, Op, content_hash
from longstop.model.polling_status import SyncState
from longstop.model.source_queries_and_answers import Keys, ListingEntry
from longstop.sports.base import MatchState

#: An event's place in the numbering: its kind, all its numbers but the last, its side.
Group = tuple[str, tuple[int, ...], str]

Board = TypeVar("Board", bound=ListingEntry)
State = TypeVar("State", bound=MatchState)


def awaited(what: str, confirmed: Collection[str], polls: int = 2) -> str | None:
    """Return the token to note for the next poll; `None` if this many polls in a row, with this one, have shown it."""
    tokens = [what, *(f"{what} in {number} polls" for number in range(2, polls))]
    seen = max((number for number, token in enumerate(tokens, start=1) if token in confirmed), default=0)
    return None if seen + 1 >= polls else tokens[seen]


class Versions:
    """Collects the versions to store; knows which steps back the last poll suspected."""

    def __init__(self, known: Mapping[EventKey, Event], confirmed: Collection[str] = ()) -> None:
        self.known = known
        self.events: list[Event] = []
        #: Steps back seen for the first time, as tokens for the next poll.
        self.suspects: set[str] = set()
        #: The source's ids of events that came from another one, where they are new.
        self.ids: dict[EventKey, str] = {}
        self._confirmed = confirmed
        self._allotted: set[EventKey] = set()
        self._last: dict[Group, int] | None = None

    def may_step_back(self, key: EventKey, what: str, *, polls: int = 2) -> bool:
        """Return whether this many polls in a row saw the same step back; otherwise note it as a suspect."""
        suspect = awaited(f"{key} {what}", self._confirmed, polls)
        self.suspects.update([suspect] if suspect else [])
        return suspect is None

    def allot(self, kind: str, place: tuple[int, ...] = (), side: str = "", *, wanted: int = 0) -> EventKey:
        """Return an unused key, with the source's own number if it has one that is free."""
        last = self._last_numbers()
        group = (str(kind), place, side)
        number = wanted
        if not number or (key := EventKey(group[0], (*place, number), side)) in self.known or key in self._allotted:
            number = last.get(group, 0) + 1
        last[group] = max(last.get(group, 0), number)
        allotted = EventKey(group[0], (*place, number), side)
        self._allotted.add(allotted)
        return allotted

    def _last_numbers(self) -> dict[Group, int]:
        if self._last is None:
            self._last = {}
            for key in self.known:
                group = (key.kind, key.numbers[:-1], key.side)
                self._last[group] = max(self._last.get(group, 0), key.numbers[-1] if key.numbers else 0)
        return self._last

    def put(self, key: EventKey, content: Struct, source_event_id: str, position: int | None = None) -> None:
        """Add an insert or an update, or nothing when nothing changed."""
        old = self.known.get(key)
        if old is not None and old.is_live and old.position == position and old.content == content:
            if old.source_event_id == source_event_id:
                return
            if old.source:  # another feed's event under this feed's id: nothing happened in the match
                self.ids[key] = source_event_id
                return
        self.events.append(
            Event(
                key=key,
                rev=old.rev + 1 if old else 1,
                op=Op.UPDATE if old else Op.INSERT,
                content=content,
                source_event_id=source_event_id,
                position=position,
            )
        )

    def replace(
        self, old: Event, content: Struct, source_event_id: str, position: int | None = None, *, is_back: bool
    ) -> None:
        """Replace the stored content by what was seen; a step back has to be confirmed first."""
        if is_back and old.is_live and not self.may_step_back(old.key, content_hash(content, None)):
            self.put(old.key, old.content, old.source_event_id, position)
        else:
            self.put(old.key, content, source_event_id, position)

    def void(self, old: Event) -> None:
        self.events.append(msgspec.structs.replace(old, rev=old.rev + 1, op=Op.VOID, position=None))


# --- the end of a diff --------------------------------------------------------------------------------------------


def advance(state: State, versions: Versions, names: Keys, **fields: Any) -> State:
    """Return the state with these versions and names, and other fields that have changed."""
    return msgspec.structs.replace(
        state,
        events={**state.events, **{event.key: event for event in versions.events}},
        players={**state.players, **names.players},
        teams={**state.teams, **names.teams},
        **fields,
    )


def settle(
    before: MatchState, after: State, found: Iterable[Finding], doubts: Collection[str], *, is_compared: bool
) -> State:
    """Return the state with its confirmed findings, all that awaits a second poll, and whether it is in sync.

    It is in sync after the whole list was compared (`is_compared`) and nothing awaits a second poll.
    """
    findings, unconfirmed = confirm(found, before.suspects, before.findings)
    suspects = unconfirmed.union(doubts)
    is_in_sync = before.sync is SyncState.IN_SYNC or (is_compared and not suspects)
    sync = SyncState.IN_SYNC if is_in_sync else SyncState.RECOVERING
    return msgspec.structs.replace(after, findings=findings, suspects=suspects, sync=sync)


def confirm(
    found: Iterable[Finding], suspects: Collection[str], is_open: Collection[Finding]
) -> tuple[tuple[Finding, ...], frozenset[str]]:
    """Return the findings that two polls agree on, and the tokens of those that await the second.

    Endpoints are read one after the other and may be out of step. A finding is identified by kind and place: an open
    one stays open, with its new detail.
    """
    found = tuple(found)
    places = {(each.kind, each.place) for each in is_open}
    confirmed = tuple(each for each in found if (each.kind, each.place) in places or _token(each) in suspects)
    return confirmed, frozenset(_token(each) for each in found if each not in confirmed)


#: The suspect token of a scoreboard that goes back together with its events.
BOARD_WITH_EVENTS = "board with its events"


def confirm_board(
    shown: Board, before: Board | None, suspects: Collection[str], *, is_backed: bool = False
) -> tuple[Board, frozenset[str]]:
    """Return the scoreboard to use, and the tokens of one that awaits a second poll.

    A scoreboard that goes back is treated as a cached copy until a second poll shows it again. In play it is another
    one by then: one that the events back (`is_backed`) is used if the last one went back with its events, too.
    """
    tokens = frozenset({f"board {shown.fingerprint}", *([BOARD_WITH_EVENTS] if is_backed else ())})
    if before is None or not shown.shows_less_than(before) or any(token in suspects for token in tokens):
        return shown, frozenset()
    return before, tokens


def _token(finding: Finding) -> str:
    return f"finding {finding.kind} {finding.place} {finding.detail}"
