"""One innings as a line, for a source that numbers its deliveries and shows the newest of them only."""

from collections.abc import Mapping, Sequence

from longstop.model.event import Event, EventKey
from longstop.pipeline.assemble import SeenEvent
from longstop.pipeline.slots import Held, New, Shown, Slot
from longstop.pipeline.weave import weave


def lay_out_window(
    mine: Mapping[EventKey, Event], seen: Sequence[SeenEvent], window_from: tuple[int, int, int], innings: int
) -> tuple[Slot, ...]:
    """Return the line of an innings' deliveries: what is behind the window, then what it shows; holes stay holes.

    The source numbers an over's balls afresh when one comes or goes, and our keys keep the first number: the order is
    that of the places, never that of the keys.
    """
    by_id = {event.source_event_id: event for event in mine.values()}
    live = sorted((event for event in mine.values() if event.is_live), key=lambda event: event.position or 0)
    apart = [event for event in seen if (innings, event.over, event.nth or 0) < window_from]
    recent = [event for event in seen if (innings, event.over, event.nth or 0) >= window_from]
    first = _first_inside(live, recent, window_from, innings)
    return (*_behind(live[:first], apart, by_id), *weave(live[first:], recent, by_id))


def _first_inside(
    live: Sequence[Event], recent: Sequence[SeenEvent], window_from: tuple[int, int, int], innings: int
) -> int:
    """Return the index from which on the window shows everything; nothing before it can be called vanished."""
    shown = {event.source_event_id for event in recent}
    # A window that begins inside an over says nothing of that over's first balls.
    first_whole = window_from if window_from[2] <= 1 else (window_from[0], window_from[1] + 1, 1)
    return next(
        (
            index
            for index, event in enumerate(live)
            if event.source_event_id in shown or (innings, event.key.over, 1) >= first_whole
        ),
        len(live),
    )


def _behind(live: Sequence[Event], apart: Sequence[SeenEvent], by_id: Mapping[str, Event]) -> list[Slot]:
    """Return what lies before the window, where only single balls are shown."""
    shown = {event.source_event_id for event in apart}
    line: list[tuple[int, int, Slot]] = [
        (event.key.over, event.position or 0, Held(event)) for event in live if event.source_event_id not in shown
    ]
    for event in apart:
        known = by_id.get(event.source_event_id)
        line.append((event.over, event.nth or 0, Shown(known, event) if known else New(event)))
    return [slot for _, _, slot in sorted(line, key=lambda entry: entry[:2])]
