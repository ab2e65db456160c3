"""One innings as a line: what we know and what we see, laid beside each other in the order of play."""

from collections.abc import Iterable, Mapping, Sequence

from longstop.model.cricket import Delivery
from longstop.model.event import Event, EventKey, EventKind
from longstop.pipeline.assemble import SeenEvent, Sighting
from longstop.pipeline.slots import Held, Slot, Vanished
from longstop.pipeline.weave import weave
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
    return (*(Held(event) for event in live[:first]), *weave(live[first:], seen, by_id))


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
