"""One innings as a line: what we know and what we see, laid beside each other in the order of play."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from longstop.model.cricket import Delivery
from longstop.model.event import Event, EventKey, EventKind
from longstop.pipeline.assemble import SeenEvent, Sighting
from longstop.pipeline.slots import Held, New, Shown, Slot, Vanished
from longstop.pipeline.window import lay_out_window


def lay_out(known: Mapping[EventKey, Event], sighting: Sighting, innings: int) -> tuple[Slot, ...]:
    """Return the line of an innings' deliveries."""
    mine = {key: event for key, event in known.items() if key.kind is EventKind.DELIVERY and key.innings == innings}
    seen = [event for event in sighting.events if event.kind is EventKind.DELIVERY and event.innings == innings]
    if sighting.window_from is not None:
        return lay_out_window(mine, seen, sighting.window_from, innings)
    live = sorted((event for event in mine.values() if event.is_live), key=lambda event: event.position or 0)
    # Void ones too: an event that comes back is the old one, not a new one.
    by_id = {event.source_event_id: event for event in mine.values()}
    first = _first_covered(live, seen, sighting, innings)
    return (*(Held(event) for event in live[:first]), *_pair_replaced(_weave(live[first:], seen, by_id)))


def proposed(slots: Iterable[Slot]) -> list[Delivery]:
    """Return the deliveries of a line if everything shown is taken at its word."""
    contents = (
        slot.known.content if isinstance(slot, Held) else slot.seen.content
        for slot in slots
        if not isinstance(slot, Vanished)
    )
    return [content for content in contents if isinstance(content, Delivery)]


def _first_covered(live: Sequence[Event], seen: Sequence[SeenEvent], sighting: Sighting, innings: int) -> int:
    """Return the index from which on the walk shows everything; nothing before it can be called vanished."""
    if sighting.is_whole or (sighting.events and sighting.events[0].innings < innings):
        return 0
    shown = {event.source_event_id for event in seen}
    return next((index for index, event in enumerate(live) if event.source_event_id in shown), len(live))


def _weave(live: Sequence[Event], seen: Sequence[SeenEvent], by_id: Mapping[str, Event]) -> Iterable[Slot]:
    place = {event.source_event_id: index for index, event in enumerate(live)}
    shown = {event.source_event_id for event in seen}
    passed = 0
    for event in seen:
        index = place.get(event.source_event_id, -1)
        if index >= passed:
            yield from (Vanished(old, is_tail=False) for old in live[passed:index] if old.source_event_id not in shown)
            passed = index + 1
        known = by_id.get(event.source_event_id)
        yield Shown(known, event) if known else New(event)
    yield from (Vanished(old, is_tail=True) for old in live[passed:] if old.source_event_id not in shown)


def _pair_replaced(slots: Iterable[Slot]) -> Iterable[Slot]:
    """Join a vanished ball and a new one that stand at the same place: it is one ball under another id."""
    vanished: list[Vanished] = []
    new: list[New] = []
    for slot in slots:
        match slot:
            case Vanished():
                vanished.append(slot)
            case New():
                new.append(slot)
            case _:
                yield from _paired(vanished, new)
                vanished.clear()
                new.clear()
                yield slot
    yield from _paired(vanished, new)


def _paired(vanished: Sequence[Vanished], new: Sequence[New]) -> Iterable[Slot]:
    for over in sorted({slot.known.key.over for slot in vanished} | {slot.seen.over for slot in new}):
        olds = [slot for slot in vanished if slot.known.key.over == over]
        freshes = [slot for slot in new if slot.seen.over == over]
        for old, fresh in zip_longest(olds, freshes):
            if old and fresh:
                yield Shown(old.known, fresh.seen)
            else:
                yield from (slot for slot in (old, fresh) if slot)
