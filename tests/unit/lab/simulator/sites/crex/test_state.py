from itertools import pairwise
from typing import Any

from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.game import Game
from longstop_lab.simulator.cricket.limited_overs import play_t20
from longstop_lab.simulator.cricket.multi_day import play_test
from longstop_lab.simulator.cricket.script import PublishBall
from longstop_lab.simulator.cricket.world import script_for
from longstop_lab.simulator.sites.crex.state import list_entry, live_state
from tests.unit.lab.simulator.games import NOON, board_at, small_script
from tests.unit.lab.simulator.recorded import needs_recorded, recorded_json, shape


def state_at(seconds: float, tick: int = 0) -> dict[str, Any]:
    board, _ = board_at(small_script(), seconds)
    return live_state(board, NOON, tick)


def long_board(overs: int) -> Board:
    """Return a whole T20 board, stopped inside the given over of the first innings."""
    game = play_t20(1, 0)
    board = Board(game)
    for step in script_for(game, 1):
        if isinstance(step, PublishBall) and step.label.over == overs and step.label.ball == 4:
            break
        board.apply(step)
    return board


def test_scores_have_an_unclosed_parenthesis_and_a_future_innings_is_zeros() -> None:
    entry = list_entry(board_at(small_script(), 55)[0], NOON, 0)

    assert entry["a"] == "R.H"
    assert entry["j"] == "8/0(0.4"
    assert entry["k"] == "0/0(0.0"
    assert entry["mt"] == int(NOON.timestamp() * 1000)
    assert entry["fo"] == "T20"
    assert entry["mn"] == "7"
    assert "tg" not in entry


def test_the_second_innings_has_a_target_and_the_sides_in_the_same_order() -> None:
    entry = list_entry(board_at(small_script(), 210)[0], NOON, 0)

    assert entry["a"] == "R.H"
    assert entry["tg"] == "21(2.0"
    assert entry["j"] == "20/1(2.0"
    assert entry["k"].startswith("4/0(0.1")


def test_the_last_overs_say_who_bats() -> None:
    first, second = (live_state(board_at(small_script(), at)[0], NOON, 0) for at in (55, 210))

    assert {over["bt"] for over in first["rb"]} == {"R"}
    assert {over["bt"] for over in second["rb"]} == {"H"}


def test_the_side_that_bats_first_is_second_in_half_of_the_fixtures() -> None:
    orders = [
        [game.sides[0].key, game.sides[1].key] == list_entry(Board(game), NOON, 0)["a"].split(".")
        for game in (play_test(1, index) for index in range(4))
    ]

    assert orders == [True, False, True, False]


def board_in(game: Game, innings: int) -> Board:
    """Return the board with the first ball of an innings."""
    board = Board(game)
    for step in script_for(game, 1):
        board.apply(step)
        if isinstance(step, PublishBall) and step.innings == innings:
            break
    return board


def follow_on() -> Game:
    games = (play_test(1, index) for index in range(100))
    return next(game for game in games if [game.sides.index(each.batting) for each in game.innings] == [0, 1, 1, 0])


def test_a_side_that_follows_on_bats_on_in_a_new_pair_of_innings() -> None:
    game = follow_on()

    second, third = (live_state(board_in(game, innings), NOON, 0) for innings in (2, 3))

    assert second["rb"][-1]["bt"] == third["rb"][-1]["bt"] == game.sides[1].key
    assert third["j"].endswith("(0.1")
    assert third["k"] == "0/0(0.0"
    assert third["fo"] == "TEST"


def test_only_the_fourth_innings_of_a_test_has_a_target() -> None:
    game = follow_on()

    entries = [list_entry(board_in(game, innings), NOON, 0) for innings in (1, 2, 3, 4)]

    target = game.innings[3].target
    assert target is not None
    assert ["tg" in entry for entry in entries] == [False, False, False, True]
    assert entries[3]["tg"] == f"{target.runs}({target.overs}"


def test_a_super_over_shows_its_own_pair_of_innings() -> None:
    game = next(game for game in (play_t20(1, index) for index in range(100)) if len(game.innings) == 4)
    board = Board(game)
    for step in script_for(game, 1):
        board.apply(step)
        if isinstance(step, PublishBall) and step.innings == 3:
            break

    entry = list_entry(board, NOON, 0)

    assert entry["j"] == f"{board.score(3).runs}/{board.score(3).wickets}({board.score(3).overs}"
    assert entry["k"] == "0/0(0.0"
    assert live_state(board, NOON, 0)["rb"][0]["i"] == 2


def test_at_a_break_the_fields_of_play_are_blank() -> None:
    state = state_at(150)

    assert state["B"] == "Innings Break"
    assert {state[field] for field in "Abcdlmnpqrstxyz"} == {""}
    assert state["rb"] == []


def test_the_state_in_play() -> None:
    state = state_at(55)

    assert state["A"] == "1.wd.0.4.2lb"
    assert state["B"] == "2"
    assert state["p"] == "R1.R0"
    assert (state["q"], state["s"]) == ("0.0", "5.4*")
    assert state["t"] == "1.0.1.8"


def test_bowlers_figures_are_spelt_in_two_orders() -> None:
    state = state_at(55)

    assert state["b"] == "H9"
    assert state["c"] == "6.4.0.2"
    assert state["z"] == "H9.4.6.0"


def test_between_overs_the_current_over_is_blank() -> None:
    state = state_at(74)

    assert (state["A"], state["B"]) == ("", "o")
    assert state["l"] == "1:1.wd.0.4.2lb.W.6"


def test_the_last_overs_rotate_through_three_slots() -> None:
    state = live_state(long_board(10), NOON, 0)

    assert [state[slot].split(":")[0] for slot in "lmn"] == ["10", "8", "9"]


def test_the_bowlers_earlier_overs_are_not_the_innings_last_ones() -> None:
    board = long_board(12)
    bowler = board.balls(1)[-1].ball.bowler
    earlier = {p.label.over for p in board.balls(1) if p.ball.bowler == bowler and p.label.over < 12}

    state = live_state(board, NOON, 0)

    assert earlier
    assert len(state["d"].split("|")) == min(2, len(earlier))


def test_the_bowler_of_a_first_ball_lags_in_the_recent_overs() -> None:
    recent = live_state(long_board(10), NOON, 0)["rb"]

    lagging = [later["b"][0]["bf"] == earlier["b"][-1]["bf"] for earlier, later in pairwise(recent)]
    assert any(lagging)
    assert not all(lagging)


def test_a_recent_wide_repeats_the_number_of_its_ball() -> None:
    (over,) = state_at(74)["rb"]

    assert [one["d"] for one in over["b"]] == [1, 2, 2, 3, 4, 5, 6]
    assert [one["u"] for one in over["b"]] == ["1", "wd", "0", "4", "2lb", "w", "6"]
    assert [one["t"] for one in over["b"]] == [0, 0, 0, 2, 0, 1, 2]
    assert (over["o"], over["i"], over["r"], over["ts"]) == (1, 0, 14, "14/1")


def test_the_odds_move_while_nothing_happens_in_play() -> None:
    one, two = state_at(55, tick=1), state_at(55, tick=2)

    changed = {field for field in one if one[field] != two[field]}
    assert changed
    assert changed <= {"R", "ats", "ca", "la", "tp", "wp", "rf", "pr"}


@needs_recorded
def test_the_state_has_the_keys_and_types_of_the_recorded_ones() -> None:
    ours = shape(live_state(long_board(10), NOON, 0))

    for frame in recorded_json("crex/sv3_frames_11HD_inplay.json"):
        assert ours == shape(frame)


@needs_recorded
def test_a_break_has_the_types_of_the_recorded_break() -> None:
    ours = shape(state_at(150))
    theirs = shape(recorded_json("crex/sv3_frames_QUY.json")[0]["body"])

    shared = ours.keys() & theirs.keys()
    assert len(shared) > 30
    assert {key: ours[key] for key in shared} == {key: theirs[key] for key in shared}
