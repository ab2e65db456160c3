"""Keys of events, and what makes two contents the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.model.cricket import Result, ResultKind
from longstop.model.event import EventKey, EventKind, Op, content_hash, order_of_play
from longstop.model.football import Card, CardKind, FootballResult, Goal, GoalKind, Kick, Outcome, PeriodEnd
from tests.builders import delivery, event, over_summary

RESULT = Result(outcome=ResultKind.TIE, text="Match tied")
NUMBERS = st.integers(min_value=0, max_value=500)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (EventKey(EventKind.DELIVERY, 2, 14, 3), "delivery:2:14:3"),
        (EventKey(EventKind.OVER, 1, 0), "over:1:0"),
        (EventKey(EventKind.INNINGS, 2), "innings:2"),
        (EventKey(EventKind.RESULT), "result"),
        (EventKey(EventKind.GOAL, nth=2, side="home"), "goal:home:2"),
        (EventKey(EventKind.MISSED_PENALTY, nth=1, side="away"), "missed_penalty:away:1"),
        (EventKey(EventKind.PERIOD, nth=3), "period:3"),
    ],
)
def test_a_key_has_a_text_form_that_is_read_back(key: EventKey, text: str) -> None:
    assert (str(key), EventKey.parse(text)) == (text, key)


@given(innings=NUMBERS, over=NUMBERS, nth=NUMBERS)
def test_different_deliveries_have_different_texts(innings: int, over: int, nth: int) -> None:
    key = EventKey(EventKind.DELIVERY, innings, over, nth)

    assert EventKey.parse(str(key)) == key


@pytest.mark.parametrize(
    "text",
    ["", "ball:1:0:1", "delivery:x:0:1", "delivery:1:0:1:7", "goal:1", "goal:both:1", "period:home:1", "result:1"],
)
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        EventKey.parse(text)


@pytest.mark.parametrize(("op", "is_live"), [(Op.INSERT, True), (Op.UPDATE, True), (Op.VOID, False)])
def test_only_a_void_version_is_not_live(op: Op, is_live: bool) -> None:
    assert event("delivery:1:0:1", "1", op=op).is_live is is_live


def test_a_digest_tells_contents_and_places_apart() -> None:
    one = content_hash(delivery("0.1", 1), 1)

    assert one == content_hash(delivery("0.1", 1), 1)
    assert len({one, content_hash(delivery("0.1", 2), 1), content_hash(delivery("0.1", 1), 2)}) == 3
    assert content_hash(RESULT, None) != content_hash(over_summary(), None)


def test_events_sort_in_the_order_of_play() -> None:
    events = [
        event("delivery:1:0:2", "1", position=1),
        event("delivery:1:0:1", "2", position=2),
        event("over:1:0", "3"),
        event("delivery:1:1:1", "4", position=3),
        event("innings:1", "5"),
        event("delivery:2:0:1", "6", position=1),
        event("result", "7"),
    ]

    mixed = [*events[3:], *reversed(events[:3])]

    assert [each.source_event_id for each in sorted(mixed, key=order_of_play)] == list("1234567")


def test_events_of_football_sort_by_the_clock() -> None:
    events = [
        event("goal:home:2", "1", goal(minute=44)),
        event("goal:home:1", "2", goal(minute=45, added=2)),
        event("period:1", "3", PeriodEnd(period="HT", minute=45, home=2, away=0)),
        event("goal:away:1", "4", goal(minute=46)),
        event("card:home:1", "5", Card(minute=None, card=CardKind.YELLOW)),
        event("kick:away:1", "6", kick(1)),
        event("kick:home:1", "7", kick(2)),
        event("period:2", "8", PeriodEnd(period="PEN", minute=None, home=1, away=1)),
        event("result", "9", FootballResult(outcome=Outcome.HOME, after="AP")),
    ]

    mixed = [*events[5:], *reversed(events[:5])]

    assert [each.source_event_id for each in sorted(mixed, key=order_of_play)] == list("123456789")


def goal(minute: int, added: int | None = None) -> Goal:
    return Goal(minute=minute, added=added, how=GoalKind.REGULAR, home=1, away=0)


def kick(sequence: int) -> Kick:
    return Kick(sequence=sequence, is_scored=True, home=1, away=0)
