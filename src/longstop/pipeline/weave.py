"""Two lines of balls laid beside each other, ours and the source's: what is new, what is known, what has vanished."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from longstop.model.event import Event
from longstop.pipeline.assemble import SeenEvent
from longstop.pipeline.slots import New, Shown, Slot, Vanished


def weave(live: Sequence[Event], seen: Sequence[SeenEvent], by_id: Mapping[str, Event]) -> Iterable[Slot]:
    """Return the line of a stretch that the source shows all of; both are in the order of play."""
    return _pair_replaced(_woven(live, seen, by_id))


def _woven(live: Sequence[Event], seen: Sequence[SeenEvent], by_id: Mapping[str, Event]) -> Iterable[Slot]:
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
