"""Keys of events, and what makes two contents the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.model.event import EventKey, Op, content_hash
from longstop.sports.cricket.model import CricketKind, Result, ResultKind
from longstop.sports.football.model import FootballKind
from tests.builders import delivery, event, over_summary

RESULT = Result(outcome=ResultKind.TIE, text="Match tied")
NUMBERS = st.integers(min_value=0, max_value=500)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (EventKey(CricketKind.DELIVERY, (2, 14, 3)), "delivery:2:14:3"),
        (EventKey(CricketKind.OVER, (1, 0)), "over:1:0"),
        (EventKey(CricketKind.INNINGS, (2,)), "innings:2"),
        (EventKey("result"), "result"),
        (EventKey(FootballKind.GOAL, (2,), "home"), "goal:home:2"),
        (EventKey(FootballKind.MISSED_PENALTY, (1,), "away"), "missed_penalty:away:1"),
        (EventKey(FootballKind.PERIOD, (3,)), "period:3"),
        (EventKey("card", (1,), "home_bench"), "card:home_bench:1"),
    ],
)
def test_a_key_has_a_text_form_that_is_read_back(key: EventKey, text: str) -> None:
    assert (str(key), EventKey.parse(text)) == (text, key)


@given(innings=NUMBERS, over=NUMBERS, nth=NUMBERS)
def test_different_deliveries_have_different_texts(innings: int, over: int, nth: int) -> None:
    key = EventKey(CricketKind.DELIVERY, (innings, over, nth))

    assert EventKey.parse(str(key)) == key


@pytest.mark.parametrize(
    "text",
    ["", ":1", "1:0:1", "Delivery:1", "delivery:1:x:1", "delivery:1:", "delivery::1", "goal:home:away:1", "result\n"],
)
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an event key"):
        EventKey.parse(text)


@pytest.mark.parametrize(("op", "is_live"), [(Op.INSERT, True), (Op.UPDATE, True), (Op.VOID, False)])
def test_only_a_void_version_is_not_live(op: Op, is_live: bool) -> None:
    assert event("delivery:1:0:1", "1", op=op).is_live is is_live


def test_a_digest_tells_contents_and_places_apart() -> None:
    one = content_hash(delivery("0.1", 1), 1)

    assert one == content_hash(delivery("0.1", 1), 1)
    assert len({one, content_hash(delivery("0.1", 2), 1), content_hash(delivery("0.1", 1), 2)}) == 3
    assert content_hash(RESULT, None) != content_hash(over_summary(), None)
