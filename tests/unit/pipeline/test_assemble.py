"""From feed items to events as seen."""

from longstop.model.cricket import Delivery
from longstop.model.event import EventKind
from longstop.pipeline.assemble import SeenEvent, assemble
from tests.builders import ball_item, over_item, wicket, wicket_item


def outs(event: SeenEvent) -> list[str]:
    assert isinstance(event.content, Delivery)
    return [each.player_out for each in event.content.wickets]


def test_items_become_events_oldest_first() -> None:
    found = assemble([over_item(30), ball_item(20, "0.2"), ball_item(10, "0.1")], is_whole=True)

    assert [(event.kind, event.source_event_id) for event in found.events] == [
        (EventKind.DELIVERY, "10"),
        (EventKind.DELIVERY, "20"),
        (EventKind.OVER, "30"),
    ]
    assert found.is_whole


def test_an_item_on_two_pages_counts_once() -> None:
    found = assemble([ball_item(10), ball_item(10)], is_whole=False)

    assert len(found.events) == 1


def test_a_wicket_is_inside_its_ball_and_no_event_of_its_own() -> None:
    [event] = assemble([wicket_item(11), ball_item(10)], is_whole=True).events

    assert outs(event) == ["A Batter"]


def test_two_wickets_of_one_ball_are_both_kept() -> None:
    other = wicket_item(12, fallen=wicket(player_out="B Batter"))

    [event] = assemble([ball_item(10), wicket_item(11), other], is_whole=True).events

    assert outs(event) == ["A Batter", "B Batter"]


def test_a_wicket_belongs_to_the_latest_ball_with_its_label() -> None:
    wide, ball = ball_item(10, "0.3", wides=1), ball_item(20, "0.3")

    on_the_wide = assemble([wide, wicket_item(11, "0.3"), ball], is_whole=True).events
    on_the_ball = assemble([wide, ball, wicket_item(21, "0.3")], is_whole=True).events

    assert [outs(event) for event in on_the_wide] == [["A Batter"], []]
    assert [outs(event) for event in on_the_ball] == [[], ["A Batter"]]


def test_the_same_label_in_another_innings_is_another_ball() -> None:
    found = assemble([ball_item(10, "0.1", innings=1), wicket_item(21, "0.1", innings=2)], is_whole=False)

    assert (found.orphans, outs(found.events[0])) == (1, [])


def test_a_wicket_without_its_ball_is_an_orphan() -> None:
    assert assemble([wicket_item(11, "0.1"), ball_item(20, "0.2")], is_whole=False).orphans == 1
