import pytest

from longstop.sports.cricket.model import Dismissal, Runs
from longstop_lab.simulator.sites.crex.wire import DISMISSAL_NUMBERS, ball_code, ball_value, flag_value
from tests.unit.lab.simulator.games import CAUGHT, ball


@pytest.mark.parametrize(
    ("runs", "value"),
    [
        (Runs(), "0"),
        (Runs(batter=4), "4"),
        (Runs(wides=1), "wd"),
        (Runs(wides=5), "5wd"),
        (Runs(noballs=1), "nb"),
        (Runs(noballs=1, batter=1), "1nb"),
        (Runs(noballs=1, batter=4), "4nb"),
        (Runs(noballs=2), "nb2"),
        (Runs(noballs=2, batter=4), "4nb2"),
        (Runs(byes=1), "b"),
        (Runs(byes=2), "2b"),
        (Runs(legbyes=1), "lb"),
        (Runs(penalty=1), "p"),
        (Runs(penalty=5), "5p"),
        (Runs(noballs=1, legbyes=2), "nb+2lb"),
        (Runs(legbyes=1, penalty=5), "lb+5p"),
        (Runs(batter=1, penalty=5), "1+5p"),
        (Runs(wides=1, penalty=5), "wd+5p"),
    ],
)
def test_a_ball_is_spelt_as_agreed(runs: Runs, value: str) -> None:
    assert ball_value(runs) == value


def test_the_last_event_is_a_code() -> None:
    codes = [ball_code(one) for one in (ball(batter=4), ball(wides=5), ball(noballs=1, batter=4), ball(legbyes=2))]

    assert codes == ["4", "wd", "nb", "2"]
    assert ball_code(ball(outs=(CAUGHT,))) == "w"


def test_only_what_reached_the_rope_is_flagged() -> None:
    flags = [flag_value(ball(batter=4, boundary=4)), flag_value(ball(batter=6, boundary=6)), flag_value(ball(batter=4))]

    assert flags == [8, 4, 2]


def test_dismissals_are_numbered_as_agreed() -> None:
    assert DISMISSAL_NUMBERS == {
        Dismissal.BOWLED: 1,
        Dismissal.CAUGHT: 2,
        Dismissal.LBW: 3,
        Dismissal.RUN_OUT: 4,
        Dismissal.STUMPED: 5,
        Dismissal.HIT_WICKET: 6,
        Dismissal.RETIRED: 7,
        Dismissal.OBSTRUCTING: 8,
        Dismissal.OTHER: 9,
    }
