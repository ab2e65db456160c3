"""One innings as a line, for a source that numbers its deliveries and shows the newest of them only."""

from collections.abc import Mapping, Sequence

from longstop.model.event import Event, EventKey
from longstop.pipeline.assemble import SeenEvent
from longstop.pipeline.slots import Held, New, Shown, Slot, Vanished

#: Over, number in it, position: what is behind the window comes before what the window shows of the same over.
_Place = tuple[int, int, int]
_BEHIND = 0


def lay_out_window(
    mine: Mapping[EventKey, Event], seen: Sequence[SeenEvent], window_from: tuple[int, int, int], innings: int
) -> tuple[Slot, ...]:
    """Return the line of an innings' deliveries, in the order of their numbers; holes stay holes."""
    by_id = {event.source_event_id: event for event in mine.values()}
    shown = {event.source_event_id for event in seen}
    newest = max((_place_of(event) for event in seen), default=(0, 0, 0))
    line: list[tuple[_Place, Slot]] = []
    for event in seen:
        known = by_id.get(event.source_event_id)
        line.append((_place_of(event), Shown(known, event) if known else New(event)))
    for key, known in mine.items():
        if known.is_live and known.source_event_id not in shown:
            place = (key.over, key.nth, 0)
            if (innings, key.over, key.nth) > window_from:
                line.append((place, Vanished(known, is_tail=place > newest)))
            else:
                line.append(((key.over, _BEHIND, known.position or 0), Held(known)))
    return tuple(slot for _, slot in sorted(line, key=lambda entry: entry[0]))


def _place_of(event: SeenEvent) -> _Place:
    return event.over, event.nth or 0, 0
