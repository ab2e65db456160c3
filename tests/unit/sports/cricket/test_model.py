"""Overs, runs and scores."""

import msgspec
import pytest

from longstop.sports.cricket.model import InningsScore, Overs, Runs
from tests.builders import score


@pytest.mark.req("FLD-2")
def test_overs_sort_as_two_integers_and_not_as_a_fraction() -> None:
    assert sorted([Overs(10, 0), Overs(9, 6), Overs(9, 10), Overs(0, 1)]) == [
        Overs(0, 1),
        Overs(9, 6),
        Overs(9, 10),
        Overs(10, 0),
    ]
    assert str(Overs(9, 10)) == "9.10"


@pytest.mark.req("FLD-2")
@pytest.mark.parametrize("wrong", [b"9.3", b'{"over": 9.3, "ball": 0}', b'{"over": -1, "ball": 0}', b'{"over": 1}'])
def test_overs_are_read_from_two_integers_only(wrong: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(wrong, type=Overs)


@pytest.mark.parametrize(
    ("runs", "total", "is_legal"),
    [
        (Runs(), 0, True),
        (Runs(batter=4), 4, True),
        (Runs(wides=5), 5, False),
        (Runs(batter=4, noballs=1), 5, False),
        (Runs(byes=1, legbyes=2, penalty=5), 8, True),
    ],
)
def test_runs_add_up_and_say_whether_the_ball_counts(runs: Runs, total: int, is_legal: bool) -> None:
    assert (runs.total, runs.is_legal) == (total, is_legal)


@pytest.mark.req("FLD-3")
@pytest.mark.parametrize(
    ("text", "is_blank"), [("0/0 0.0", True), ("0/0 0.1", False), ("1/0 0.0", False), ("0/1 0.0", False)]
)
def test_only_zeros_alone_are_blank(text: str, is_blank: bool) -> None:
    shown: InningsScore = score(text)

    assert shown.is_blank is is_blank
