"""Aligns the events that a source shows with the stored ones. Pure.

An innings is a sequence of slots: each is a stored delivery, a shown one, or both. They are matched by the source's
id first, then by their place in the over.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from math import inf

import msgspec
from msgspec import Struct

from longstop.errors import LayoutSuspected
from longstop.matches.event_versions_and_confirmation import Versions
from longstop.model.event import RESULT, Event, EventKey, content_hash
from longstop.sports.cricket.model import (
    CricketKind,
    Delivery,
    InningsSummary,
    OverSummary,
    SeenEvent,
    SeenEvents,
    innings_of,
    over_of,
)

#: More events gone at once than an over has is a broken list, not a correction by the scorer.
MAX_VANISHED = 8
#: Polls in a row that must show the end of an innings whose total contradicts its events.
POLLS_AGAINST_EVENTS = 5


class Milestones(Struct, frozen=True, kw_only=True):
    """Events that no list shows: those reached by now, and those that the source withdraws."""

    reached: tuple[SeenEvent, ...] = ()
    withdrawn: tuple[EventKey, ...] = ()


NO_MILESTONES = Milestones()


# --- the slots of an innings ---------------------------------------------------------------------------------


class Unreached(Struct, frozen=True):
    """A stored delivery that this poll did not reach: it stays as it is."""

    known: Event


class Matched(Struct, frozen=True):
    """A delivery that is stored and shown; `known` is void if the source had removed it and shows it again."""

    known: Event
    seen: SeenEvent


class New(Struct, frozen=True):
    """A delivery that is shown for the first time."""

    seen: SeenEvent


class Vanished(Struct, frozen=True):
    """A stored delivery that the source should show and does not."""

    known: Event
    #: Whether it is at the end of the innings, which a list that lags may not show yet.
    is_tail: bool


Slot = Unreached | Matched | New | Vanished


# --- one innings ------------------------------------------------------------------------------------------------


def lay_out(known: Mapping[EventKey, Event], listed: SeenEvents, innings: int) -> tuple[Slot, ...]:
    mine = {
        key: event for key, event in known.items() if key.kind == CricketKind.DELIVERY and innings_of(key) == innings
    }
    seen = [event for event in listed.events if event.kind == CricketKind.DELIVERY and event.innings == innings]
    start = (0, 0, 0) if listed.window_from is None else listed.window_from
    if listed.window_from is not None:
        mine = _named_by_place(mine, seen)
    apart = [event for event in seen if (innings, event.over, event.nth or 0) < start]
    recent = [event for event in seen if (innings, event.over, event.nth or 0) >= start]
    # The source renumbers the balls of an over when one is added or removed; our keys keep the first number. So the
    # order is that of the positions, never that of the keys.
    live = sorted((event for event in mine.values() if event.is_live), key=lambda event: event.position or 0)
    # Including void ones: an event that comes back keeps its key.
    by_id = {event.source_event_id: event for event in mine.values()}
    first = _first_covered(live, recent, listed, innings)
    return (*_behind(live[:first], apart, by_id), *interleave(live[first:], recent, by_id))


def proposed(slots: Iterable[Slot]) -> list[Delivery]:
    """Return the deliveries of an innings if everything shown is accepted."""
    contents = (
        slot.known.content if isinstance(slot, Unreached) else slot.seen.content
        for slot in slots
        if not isinstance(slot, Vanished)
    )
    return [content for content in contents if isinstance(content, Delivery)]


def _first_covered(live: Sequence[Event], recent: Sequence[SeenEvent], listed: SeenEvents, innings: int) -> int:
    """Return the index from which list or window is complete; deliveries before it cannot have vanished."""
    window = listed.window_from
    if listed.is_whole or (window is None and listed.events and listed.events[0].innings < innings):
        return 0
    shown = {event.source_event_id for event in recent}
    # A window that starts inside an over does not show the first balls of that over.
    first_whole = window if window is None or window[2] <= 1 else (window[0], window[1] + 1, 1)
    return next(
        (
            index
            for index, event in enumerate(live)
            if event.source_event_id in shown or (first_whole and (innings, over_of(event.key), 1) >= first_whole)
        ),
        len(live),
    )


def _named_by_place(mine: Mapping[EventKey, Event], seen: Sequence[SeenEvent]) -> dict[EventKey, Event]:
    """Give balls of another feed the ids that this feed uses at the same place."""
    ids = {(event.over, event.nth): event.source_event_id for event in seen}
    known = {event.source_event_id for event in mine.values()}
    return {
        key: msgspec.structs.replace(event, source_event_id=name)
        if event.source and (name := ids.get((over_of(key), key.numbers[-1]))) and name not in known
        else event
        for key, event in mine.items()
    }


def _behind(live: Sequence[Event], apart: Sequence[SeenEvent], by_id: Mapping[str, Event]) -> list[Slot]:
    """Return the slots before the list or window, where only single balls are shown."""
    if not apart:
        return [Unreached(event) for event in live]
    shown = {event.source_event_id for event in apart}
    line: list[tuple[int, int, Slot]] = [
        (over_of(event.key), event.position or 0, Unreached(event))
        for event in live
        if event.source_event_id not in shown
    ]
    for event in apart:
        known = by_id.get(event.source_event_id)
        line.append((event.over, event.nth or 0, Matched(known, event) if known else New(event)))
    return [slot for _, _, slot in sorted(line, key=lambda entry: entry[:2])]


def interleave(live: Sequence[Event], seen: Sequence[SeenEvent], by_id: Mapping[str, Event]) -> Iterable[Slot]:
    """Return the slots of a range that the source shows completely; both inputs are in the order of play."""
    return _join_replaced(_interleaved(live, seen, by_id))


def _interleaved(live: Sequence[Event], seen: Sequence[SeenEvent], by_id: Mapping[str, Event]) -> Iterable[Slot]:
    place = {event.source_event_id: index for index, event in enumerate(live)}
    shown = {event.source_event_id for event in seen}
    passed = 0
    for event in seen:
        index = place.get(event.source_event_id, -1)
        if index >= passed:
            yield from (Vanished(old, is_tail=False) for old in live[passed:index] if old.source_event_id not in shown)
            passed = index + 1
        known = by_id.get(event.source_event_id)
        yield Matched(known, event) if known else New(event)
    yield from (Vanished(old, is_tail=True) for old in live[passed:] if old.source_event_id not in shown)


def _join_replaced(slots: Iterable[Slot]) -> Iterable[Slot]:
    """Join a vanished ball and a new one at the same place: it is one ball under a new id."""
    vanished: list[Vanished] = []
    new: list[New] = []
    for slot in slots:
        match slot:
            case Vanished():
                vanished.append(slot)
            case New():
                new.append(slot)
            case _:
                yield from _joined(vanished, new)
                vanished.clear()
                new.clear()
                yield slot
    yield from _joined(vanished, new)


def _joined(vanished: Sequence[Vanished], new: Sequence[New]) -> Iterable[Slot]:
    for over in sorted({over_of(slot.known.key) for slot in vanished} | {slot.seen.over for slot in new}):
        olds = [slot for slot in vanished if over_of(slot.known.key) == over]
        freshes = [slot for slot in new if slot.seen.over == over]
        for old, fresh in zip_longest(olds, freshes):
            if old and fresh:
                yield Matched(old.known, fresh.seen)
            else:
                yield from (slot for slot in (old, fresh) if slot)


# --- what to store ---------------------------------------------------------------------------------------------


def order_of_play(event: Event) -> tuple[float, float, int, int]:
    """Return a sort key: deliveries by position, then their over's end, the innings' end, the result."""
    key = event.key
    match key.kind:
        case CricketKind.DELIVERY:
            return (innings_of(key), over_of(key), 0, event.position or 0)
        case CricketKind.INFERRED:
            return (innings_of(key), over_of(key), 1, 0)
        case CricketKind.OVER:
            return (innings_of(key), over_of(key), 2, 0)
        case CricketKind.INNINGS:
            return (innings_of(key), inf, 0, 0)
        case _:
            return (inf, inf, 1, 0)


def suspected(suspects: Iterable[str]) -> list[EventKey]:
    """Return the deliveries and overs with a step back that awaits a second poll."""
    names = (token.partition(" ")[0] for token in suspects)
    return [EventKey.parse(name) for name in names if name.startswith(("delivery:", "over:"))]


def align(
    known: Mapping[EventKey, Event],
    listed: SeenEvents,
    milestones: Milestones = NO_MILESTONES,
    *,
    confirmed: Collection[str] = (),
    settled: Collection[int] = (),
    contradicted: Collection[int] = (),
) -> Versions:
    """Return the versions that turn the stored events into the shown ones.

    `confirmed` are the suspects of the last poll, `settled` the innings whose totals agree with the scoreboard,
    `contradicted` those whose totals do not, `milestones` the innings and result events, which no list shows.
    """
    versions = Versions(known, confirmed)
    for innings in _innings_touched(known, listed):
        slots = lay_out(known, listed, innings)
        _refuse_mass_vanishing(slots)
        _align_deliveries(versions, slots, innings, is_settled=innings in settled)
    _align_overs(versions, listed, settled)
    _align_milestones(versions, milestones, settled, contradicted)
    versions.events.sort(key=order_of_play)
    return versions


def _innings_touched(known: Mapping[EventKey, Event], listed: SeenEvents) -> list[int]:
    touched = {event.innings for event in listed.events}
    if listed.is_whole:
        touched |= {innings_of(key) for key in known if key.kind == CricketKind.DELIVERY}
    return sorted(touched)


def _refuse_mass_vanishing(slots: Iterable[Slot]) -> None:
    vanished = sum(isinstance(slot, Vanished) for slot in slots)
    if vanished > MAX_VANISHED:
        raise LayoutSuspected(f"{vanished} deliveries of an innings vanished from the event list at once")


def _align_deliveries(versions: Versions, slots: Sequence[Slot], innings: int, *, is_settled: bool) -> None:
    position = 0
    newest = next((slot for slot in reversed(slots) if isinstance(slot, Matched | New)), None)
    for slot in slots:
        if isinstance(slot, Vanished) and _may_void(versions, slot, is_settled):
            versions.void(slot.known)
            continue
        position += 1
        match slot:
            case Unreached(known) | Vanished(known):
                versions.put(known.key, known.content, known.source_event_id, position)
            case New(seen):
                key = versions.allot(CricketKind.DELIVERY, (innings, seen.over), wanted=seen.nth or 0)
                versions.put(key, seen.content, seen.source_event_id, position)
            case Matched(known, seen):
                # A list that lags may show the newest ball without its wicket: the scoreboard decides.
                is_late = slot is newest and not is_settled and has_lost_wicket(known.content, seen.content)
                if is_late and known.is_live:
                    versions.put(known.key, known.content, known.source_event_id, position)
                else:
                    _replace(versions, known, seen, position)


def _replace(versions: Versions, old: Event, seen: SeenEvent, position: int | None = None) -> None:
    is_back = is_step_back(old.content, seen.content)
    versions.replace(old, seen.content, seen.source_event_id, position, is_back=is_back)


def _may_void(versions: Versions, slot: Vanished, is_settled: bool) -> bool:
    # A list that lags misses the newest ball, too: the scoreboard decides.
    return (is_settled or not slot.is_tail) and versions.may_step_back(slot.known.key, "void")


def is_step_back(old: Struct, new: Struct) -> bool:
    """Return whether an event shows less than before: fewer runs or wickets."""
    if isinstance(old, Delivery) and isinstance(new, Delivery):
        return new.runs.total < old.runs.total or has_lost_wicket(old, new)
    if isinstance(old, OverSummary) and isinstance(new, OverSummary):
        return new.runs < old.runs
    if isinstance(old, InningsSummary) and isinstance(new, InningsSummary):
        return new.runs < old.runs or new.wickets < old.wickets or new.overs.balls < old.overs.balls
    return False


def has_lost_wicket(old: Struct, new: Struct) -> bool:
    return isinstance(old, Delivery) and isinstance(new, Delivery) and len(new.wickets) < len(old.wickets)


def _align_overs(versions: Versions, listed: SeenEvents, settled: Collection[int]) -> None:
    seen = {
        EventKey(CricketKind.OVER, (event.innings, event.over)): event
        for event in listed.events
        if event.kind == CricketKind.OVER
    }
    for key, event in seen.items():
        old = versions.known.get(key)
        if old is None:
            versions.put(key, event.content, event.source_event_id)
        else:
            _replace(versions, old, event)
    for key, old in versions.known.items():
        is_missed = key.kind == CricketKind.OVER and key not in seen and old.is_live
        is_gone = is_missed and _covers(listed, key, is_settled=innings_of(key) in settled)
        if is_gone and versions.may_step_back(key, "void"):
            versions.void(old)


def _covers(listed: SeenEvents, key: EventKey, *, is_settled: bool) -> bool:
    """Return whether the list would show the end of this over: it reaches back to it, and does not lag."""
    if not listed.events:
        return False
    oldest, newest = listed.events[0], listed.events[-1]
    place = (innings_of(key), over_of(key))
    if (newest.innings, newest.over) < place and not is_settled:
        return False
    return listed.is_whole or (oldest.innings, oldest.over) <= place


def _wants_two_polls(old: Event | None, seen: SeenEvent, settled: Collection[int]) -> bool:
    # Clients treat a result as final, so even the first one needs two polls. A scoreboard that contradicts the events
    # may show other innings than assumed.
    is_grave = seen.kind == CricketKind.RESULT or (seen.kind == CricketKind.INNINGS and seen.innings not in settled)
    if old is None or not old.is_live:
        return is_grave
    return old.content != seen.content and (is_grave or is_step_back(old.content, seen.content))


def _align_milestones(
    versions: Versions, milestones: Milestones, settled: Collection[int], contradicted: Collection[int]
) -> None:
    for seen in milestones.reached:
        key = _milestone_key(seen)
        old = versions.known.get(key)
        is_doubtful = _wants_two_polls(old, seen, settled)
        is_against = seen.kind == CricketKind.INNINGS and seen.innings in contradicted
        polls = POLLS_AGAINST_EVENTS if is_against else 2
        if not is_doubtful or versions.may_step_back(key, content_hash(seen.content, None), polls=polls):
            versions.put(key, seen.content, seen.source_event_id)
    for key in milestones.withdrawn:
        old = versions.known.get(key)
        if old and old.is_live and versions.may_step_back(key, "void"):
            versions.void(old)


def _milestone_key(seen: SeenEvent) -> EventKey:
    match seen.kind:
        case CricketKind.RESULT:
            return RESULT
        case CricketKind.INNINGS:
            return EventKey(seen.kind, (seen.innings,))
        case _:
            return EventKey(seen.kind, (seen.innings, seen.over))
