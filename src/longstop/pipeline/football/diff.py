"""Events are differences: what the source shows now against what we hold. Pure.

Keys are allotted once and never used again; alignment is by kind and the source's id first. A step back (a goal less, a
milder card, an event gone) counts only when two looks in a row agree on it, because caches serve yesterday's copy too.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from longstop.errors import LayoutSuspected
from longstop.model.event import Content, Event, EventKey, EventKind, Op, content_hash, order_of_play
from longstop.model.football import (
    Card,
    FootballResult,
    Goal,
    Kick,
    MissedPenalty,
    PeriodEnd,
    Side,
    Substitution,
    VarDecision,
    is_step_back,
)
from longstop.pipeline.football.state import INCIDENT_KINDS
from longstop.sources.base import SeenIncident

#: More events gone at once than a referee takes back is a broken list.
MAX_VANISHED = 4
RESULT = EventKey(EventKind.RESULT)

_KINDS: dict[type, EventKind] = {
    Goal: EventKind.GOAL,
    Card: EventKind.CARD,
    Substitution: EventKind.SUBSTITUTION,
    VarDecision: EventKind.VAR,
    MissedPenalty: EventKind.MISSED_PENALTY,
    PeriodEnd: EventKind.PERIOD,
    Kick: EventKind.KICK,
}


class Diff(Struct, frozen=True, kw_only=True):
    """What to store now, and what to store if the next look says the same."""

    events: tuple[Event, ...]
    #: Steps back seen for the first time, as tokens to hand to the next `diff`.
    suspects: frozenset[str]


def kind_of(incident: SeenIncident) -> EventKind:
    return _KINDS[type(incident.content)]


class _Builder:
    """Collects changes; knows which steps back were already suspected."""

    def __init__(self, known: Mapping[EventKey, Event], confirmed: Collection[str]) -> None:
        self.known = known
        self.events: list[Event] = []
        self.suspects: set[str] = set()
        self._confirmed = confirmed
        self._used: Counter[tuple[EventKind, str]] = Counter()
        for key in known:
            self._used[key.kind, key.side] = max(self._used[key.kind, key.side], key.nth)

    def may_step_back(self, key: EventKey, what: str) -> bool:
        token = f"{key} {what}"
        if token in self._confirmed:
            return True
        self.suspects.add(token)
        return False

    def add(self, seen: SeenIncident) -> None:
        """Insert what is new, under a key that was never used."""
        kind, side = kind_of(seen), seen.side or ""
        self._used[kind, side] += 1
        self.put(EventKey(kind, nth=self._used[kind, side], side=side), seen.content, seen.source_event_id)

    def put(self, key: EventKey, content: Content, source_event_id: str) -> None:
        """Add an insert or an update, or nothing when nothing changed."""
        old = self.known.get(key)
        if old and old.is_live and (old.content, old.source_event_id) == (content, source_event_id):
            return
        rev, op = (old.rev + 1, Op.UPDATE) if old else (1, Op.INSERT)
        self.events.append(Event(key=key, rev=rev, op=op, content=content, source_event_id=source_event_id))

    def replace(self, old: Event, seen: SeenIncident) -> None:
        """Put what is seen over what we hold; while that is a step back only suspected, the old stands."""
        is_back = old.is_live and is_step_back(old.content, seen.content)
        if not is_back or self.may_step_back(old.key, content_hash(seen.content, None)):
            self.put(old.key, seen.content, seen.source_event_id)

    def move(self, old: Event, seen: SeenIncident) -> None:
        """Give the other side what was written down for one: the side is part of the key."""
        if not old.is_live:
            self.add(seen)
        elif self.may_step_back(old.key, f"to {seen.side}"):
            self.void(old)
            self.add(seen)

    def void(self, old: Event) -> None:
        self.events.append(msgspec.structs.replace(old, rev=old.rev + 1, op=Op.VOID))


def diff(
    known: Mapping[EventKey, Event],
    shown: Sequence[SeenIncident] | None,
    result: FootballResult | None,
    *,
    confirmed: Collection[str] = (),
    settled: Collection[Side] = (),
) -> Diff:
    """Return the changes that turn what we hold into what is seen.

    `shown` is the whole list, `None` when there is none; `confirmed` are the suspects of the last look; `settled` the
    sides whose goals on the board are as many as in the list.
    """
    builder = _Builder(known, confirmed)
    if shown is not None:
        _diff_incidents(builder, shown, settled)
    _diff_result(builder, result)
    return Diff(events=tuple(sorted(builder.events, key=order_of_play)), suspects=frozenset(builder.suspects))


def _diff_incidents(builder: _Builder, shown: Sequence[SeenIncident], settled: Collection[Side]) -> None:
    by_id = _by_id(builder.known.values())
    ids = {(kind_of(seen), seen.source_event_id) for seen in shown}
    vanished = [event for name, event in by_id.items() if event.is_live and name not in ids]
    unknown = [seen for seen in shown if (kind_of(seen), seen.source_event_id) not in by_id]
    renamed = _renamed(vanished, unknown)
    gone = [event for event in vanished if event not in renamed.values()]
    if len(gone) > MAX_VANISHED:
        raise LayoutSuspected(f"{len(gone)} events are gone from the list at once")
    for seen in shown:
        old = by_id.get((kind_of(seen), seen.source_event_id)) or renamed.get(seen.source_event_id)
        if old is None:
            builder.add(seen)
        elif old.key.side != (seen.side or ""):
            builder.move(old, seen)
        else:
            builder.replace(old, seen)
    for event in gone:
        # A list that lags lacks the newest goals too: there the board has the word.
        is_counted = event.key.kind is EventKind.GOAL and Side(event.key.side) not in settled
        if not is_counted and builder.may_step_back(event.key, "void"):
            builder.void(event)


def _by_id(events: Iterable[Event]) -> dict[tuple[EventKind, str], Event]:
    """Return the events by the source's names of them, void ones too: one that comes back is the old one."""
    mine = [event for event in events if event.key.kind in INCIDENT_KINDS]
    # What went over to the other side has left a void behind under the same name.
    return {(event.key.kind, event.source_event_id): event for event in sorted(mine, key=lambda event: event.is_live)}


def _renamed(vanished: Iterable[Event], unknown: Iterable[SeenIncident]) -> dict[str, Event]:
    """Return, by the new id, the events that the source now calls by another one: same kind, side, time and people."""
    left = list(vanished)
    found: dict[str, Event] = {}
    for seen in unknown:
        traits = (kind_of(seen), seen.side or "", _traits(seen.content))
        twin = next((old for old in left if (old.key.kind, old.key.side, _traits(old.content)) == traits), None)
        if twin is not None:
            left.remove(twin)
            found[seen.source_event_id] = twin
    return found


def _traits(content: Content) -> tuple[object, ...]:
    """Return what an event keeps when it gets another id."""
    match content:
        case Goal():
            return content.minute, content.scorer
        case Card() | VarDecision() | MissedPenalty():
            return content.minute, content.player
        case Substitution():
            return content.minute, content.player_in, content.player_out
        case Kick():
            return (content.sequence,)
    return (content,)


def _diff_result(builder: _Builder, result: FootballResult | None) -> None:
    """Compare the result. It is final for everybody who reads it, so every change of it is looked at twice."""
    old = builder.known.get(RESULT)
    held = old.content if old and old.is_live else None
    if result == held:
        return
    if result is None:
        if old and builder.may_step_back(RESULT, "void"):
            builder.void(old)
    elif builder.may_step_back(RESULT, content_hash(result, None)):
        builder.put(RESULT, result, "result")
