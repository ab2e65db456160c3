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


class Sighting(Struct, frozen=True, kw_only=True):
    """What one walk through the event list showed."""

    #: Oldest first.
    events: tuple[SeenEvent, ...]
    #: Whether the walk reached the beginning; else nothing is known of what lies before the oldest event seen.
    is_whole: bool
    #: Wickets whose ball was not in the walk: a reason to walk on.
    orphans: int = 0


def assemble(items: Iterable[FeedItem], *, is_whole: bool) -> Sighting:
    """Return the events that these items amount to; an item shown twice, on two pages, counts once."""
    ordered = sorted({item.id: item for item in items}.values(), key=lambda item: item.id)
    wickets, orphans = _wickets_by_ball(ordered)
    events = tuple(_seen(item, wickets) for item in ordered if not isinstance(item, WicketItem))
    return Sighting(events=events, is_whole=is_whole, orphans=orphans)


def _seen(item: BallItem | OverItem, wickets: dict[int, list[WicketItem]]) -> SeenEvent:
    content: Content
    if isinstance(item, OverItem):
        kind, content = EventKind.OVER, item.summary
    else:
        fallen = tuple(each.wicket for each in wickets.get(item.id, ()))
        kind, content = EventKind.DELIVERY, msgspec.structs.replace(item.delivery, wickets=fallen)
    return SeenEvent(kind=kind, innings=item.innings, over=item.over, source_event_id=str(item.id), content=content)


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
