"""From feed items to events as seen: wickets joined to their balls, oldest first."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from longstop.model.cricket import Overs
from longstop.model.event import Content, EventKind
from longstop.sources.base import BallItem, FeedItem, OverItem, WicketItem


class SeenEvent(Struct, frozen=True, kw_only=True):
    """An event as a source shows it now, before we know whether we have it already."""

    kind: EventKind
    innings: int
    over: int
    source_event_id: str
    content: Content
    #: Its number in the over, where the source numbers its deliveries.
    nth: int | None = None


class Sighting(Struct, frozen=True, kw_only=True):
    """What one walk through the event list showed."""

    #: Oldest first.
    events: tuple[SeenEvent, ...]
    #: Whether the walk reached the beginning; else nothing is known of what lies before the oldest event seen.
    is_whole: bool
    #: Wickets whose ball was not in the walk: a reason to walk on.
    orphans: int = 0
    #: For a list that shows its newest items only: the (innings, over, nth) from which on it shows all; else `None`.
    window_from: tuple[int, int, int] | None = None

    @property
    def is_window(self) -> bool:
        return self.window_from is not None


def assemble(items: Iterable[FeedItem], *, is_whole: bool) -> Sighting:
    """Return the events that these items amount to; an item shown twice, on two pages, counts once."""
    ordered = sorted({item.id: item for item in items}.values(), key=lambda item: item.id)
    wickets, orphans = _wickets_by_ball(ordered)
    events = tuple(_seen(item, wickets) for item in ordered if not isinstance(item, WicketItem))
    return Sighting(events=events, is_whole=is_whole, orphans=orphans)


def assemble_window(items: Iterable[FeedItem], detached: Iterable[FeedItem]) -> Sighting:
    """Return the events of a list that shows its newest items only, and of what is shown apart from it."""
    recent = [item for item in items if isinstance(item, BallItem)]
    others = {item.id: item for item in detached if isinstance(item, BallItem)}
    balls = {**others, **{item.id: item for item in recent}}
    overs = {(item.innings, item.over): item for item in detached if isinstance(item, OverItem)}
    shown: list[BallItem | OverItem] = [*balls.values(), *overs.values()]
    events = [_seen(item, {}) for item in shown]
    places = [(item.innings, item.over, item.nth or 0) for item in recent]
    return Sighting(
        events=tuple(sorted(events, key=_place)), is_whole=False, window_from=min(places, default=NOTHING_SHOWN)
    )


#: The window of a list that is empty: it begins after everything.
NOTHING_SHOWN = (1_000_000, 0, 0)


def _place(event: SeenEvent) -> tuple[int, int, bool, int]:
    return event.innings, event.over, event.kind is EventKind.OVER, event.nth or 0


def _seen(item: BallItem | OverItem, wickets: dict[int, list[WicketItem]]) -> SeenEvent:
    if isinstance(item, OverItem):
        return SeenEvent(
            kind=EventKind.OVER,
            innings=item.innings,
            over=item.over,
            source_event_id=item.source_event_id or str(item.id),
            content=item.summary,
        )
    fallen = tuple(each.wicket for each in wickets.get(item.id, ()))
    return SeenEvent(
        kind=EventKind.DELIVERY,
        innings=item.innings,
        over=item.over,
        source_event_id=str(item.id),
        content=msgspec.structs.replace(item.delivery, wickets=(*item.delivery.wickets, *fallen)),
        nth=item.nth,
    )


def _wickets_by_ball(ordered: Sequence[FeedItem]) -> tuple[dict[int, list[WicketItem]], int]:
    """Join each wicket to the latest ball before it with its label.

    A label alone is not enough: a wide carries the label of the ball to come, and either may take a wicket.
    """
    latest: dict[tuple[int, Overs], int] = {}
    joined: dict[int, list[WicketItem]] = {}
    orphans = 0
    for item in ordered:
        if isinstance(item, BallItem):
            latest[item.innings, item.delivery.label] = item.id
        elif isinstance(item, WicketItem):
            ball = latest.get((item.innings, item.label))
            if ball is None:
                orphans += 1
            else:
                joined.setdefault(ball, []).append(item)
    return joined, orphans
