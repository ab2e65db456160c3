from random import Random
from typing import Any

from msgspec.structs import replace

from longstop.sports.cricket.model import Dismissal, Overs
from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.game import Out
from longstop_lab.simulator.cricket.limited_overs import play_t20
from longstop_lab.simulator.cricket.mistakes import with_mistakes
from longstop_lab.simulator.cricket.script import LIVE_PACE, PublishBall, Remark, narrate
from longstop_lab.simulator.cricket.world import script_for
from longstop_lab.simulator.sites.crex.feed import BallFeed
from tests.unit.lab.simulator.games import CAUGHT, ball, board_at, small_script
from tests.unit.lab.simulator.recorded import needs_recorded, recorded_json, shape

END = 10_000.0


def walk(board: Board) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    feed = BallFeed(board)
    while page := feed.page(items[-1]["id"] if items else None):
        assert len(page) <= 10
        items += page
    return items


def whole_t20() -> Board:
    game = play_t20(1, 1)
    board = Board(game)
    for step in script_for(game, 1):
        board.apply(step)
    return board


def test_a_walk_brings_every_item_once_newest_first() -> None:
    board = whole_t20()

    items = walk(board)

    ids = [item["id"] for item in items]
    assert ids == sorted(set(ids), reverse=True)
    kinds = [item["type"] for item in items]
    assert kinds.count("b") == len(board.balls_posted)
    assert kinds.count("w") == sum(len(posted.ball.outs) for posted in board.balls_posted.values())
    assert kinds.count("o") == len(board.overs_posted)
    assert kinds.count("t") == len(board.remarks) > 0


def test_a_ball_has_its_label_as_text_and_its_innings_from_zero() -> None:
    items = walk(board_at(small_script(), 30)[0])

    assert [(item["o"], item["b"], item["on"], item["inning"]) for item in items] == [
        ("0.2", "0", 0, 0),
        ("0.2", "wd", 0, 0),
        ("0.1", "1", 0, 0),
    ]
    assert items[0]["shot_type"] == "NA"


def test_an_over_has_its_number_as_an_integer() -> None:
    items = walk(board_at(small_script(), 74)[0])

    assert items[0]["type"] == "o"
    assert (items[0]["o"], items[0]["on"], items[0]["fv"]) == (1, 0, 32)
    assert (items[0]["runs"], items[0]["s"], items[0]["rb"]) == (14, "14/1", "1.wd.0.4.2lb.W.6")
    assert (items[0]["bd"], items[0]["s1"]) == ("1-12(1.0)", "11(6)")


def test_a_wicket_stands_directly_above_its_ball() -> None:
    items = walk(board_at(small_script(), 65)[0])

    wicket, its_ball = items[0], items[1]
    assert (wicket["type"], its_ball["type"]) == ("w", "b")
    assert wicket["id"] == its_ball["id"] + 1
    assert wicket["o"] == its_ball["o"]
    assert wicket["ball_db_id"] == its_ball["ball_db_id"]
    assert (wicket["fv"], wicket["dismissal"], wicket["player"], wicket["pf_out"]) == (64, 2, "Rover 0", "R0")


def test_two_wickets_on_one_ball_are_two_items() -> None:
    board, _ = board_at((), 0)
    both = (CAUGHT, Out(kind=Dismissal.RUN_OUT, player="R1"))
    board.apply(PublishBall(at=0, id=100, innings=1, label=Overs(0, 1), ball=ball(outs=both)))

    items = walk(board)

    assert [(item["type"], item["id"]) for item in items] == [("w", 102), ("w", 101), ("b", 100)]
    assert [item.get("pf_out") for item in items] == ["R1", "R0", None]


def test_a_correction_changes_the_overs_sum_but_no_score_and_no_id() -> None:
    script = small_script()
    board, _ = board_at(script, 74)
    before = walk(board)
    first = next(step for step in script if isinstance(step, PublishBall))

    board.apply(replace(first, ball=ball(batter=3)))

    after = walk(board)
    assert [item["id"] for item in after] == [item["id"] for item in before]
    assert [item["s"] for item in after] == [item["s"] for item in before]
    assert (after[0]["runs"], after[-1]["b"]) == (16, "3")


def test_a_remark_is_a_text_item() -> None:
    board, _ = board_at((), 0)
    board.apply(Remark(at=0, id=5, innings=1, text="The sun is out."))

    (item,) = BallFeed(board).page(None)

    assert (item["type"], item["c2"]) == ("t", "The sun is out.")


@needs_recorded
def test_items_have_the_keys_and_types_of_the_recorded_ones() -> None:
    theirs = {item["type"]: shape(item) for item in recorded_json("crex/ball_feed_11HD.json")}
    ours = {item["type"]: shape(item) for item in walk(board_at(small_script(), END)[0])}

    assert ours["b"] == theirs["b"]
    assert ours["o"] == theirs["o"]


def test_a_feed_that_is_kept_shows_what_a_fresh_one_shows_whatever_is_corrected() -> None:
    game = play_t20(2, 0)
    script = with_mistakes(narrate(game, LIVE_PACE, Random(1)), Random(1), share=0.3)
    board = Board(game)
    kept = BallFeed(board)
    for nth, step in enumerate(script):
        board.apply(step)
        if nth % 7 == 0:
            before = None
            while page := kept.page(before):
                assert page == BallFeed(board).page(before)
                before = page[-1]["id"]
