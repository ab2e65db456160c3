from msgspec.structs import replace

from longstop.sports.cricket.model import Dismissal, InningsScore, Overs, Runs
from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.game import Out
from longstop_lab.simulator.cricket.script import EndOver, PublishBall, Script, WithdrawBall
from longstop_lab.simulator.truth import DeliveryTruth, InningsTruth, OverTruth
from tests.unit.lab.simulator.games import ball, board_at, small_script

END = 10_000.0


def first_balls(script: Script) -> list[PublishBall]:
    return list({step.id: step for step in reversed(script) if isinstance(step, PublishBall)}.values())[::-1]


def test_before_the_start_the_board_is_blank() -> None:
    board, _ = board_at(small_script(), 0)

    assert board.headline == ""
    assert board.begun == 0
    assert board.score(1).is_blank


def test_the_headline_follows_the_play() -> None:
    board, _ = board_at((), END)
    headlines = []
    for step in small_script():
        board.apply(step)
        headlines.append(board.headline)

    assert headlines[:9] == ["1", "wd", "0", "4", "2", "0", "w", "6", "o"]
    assert headlines[-6:] == ["o", "Innings Break", "4", "nb", "1", "No result"]


def test_a_wide_does_not_move_the_overs() -> None:
    script = small_script()
    board = Board(board_at((), 0)[0].game)

    overs = []
    for step in first_balls(script)[:7]:
        board.apply(step)
        overs.append(str(board.score(1).overs))

    assert overs == ["0.1", "0.1", "0.2", "0.3", "0.4", "0.5", "1.0"]


def test_a_miscounted_seventh_ball_is_no_ball_more_on_the_board() -> None:
    board, _ = board_at(small_script(), 0)
    for nth in range(1, 8):
        board.apply(PublishBall(at=0, id=nth, innings=1, label=Overs(0, nth), ball=ball(batter=1)))

    assert board.score(1) == InningsScore(runs=7, wickets=0, overs=Overs(1, 0))


def test_a_missed_ball_counts_on_the_board_by_the_labels_after_it() -> None:
    board, _ = board_at(small_script(), 0)
    for nth in (1, 2, 4):
        board.apply(PublishBall(at=0, id=nth, innings=1, label=Overs(0, nth), ball=ball(batter=1)))

    assert board.score(1) == InningsScore(runs=3, wickets=0, overs=Overs(0, 4))


def test_retired_hurt_is_shown_but_not_counted() -> None:
    board, _ = board_at(small_script(), 0)
    hurt = Out(kind=Dismissal.RETIRED, player="R0", counts=False)

    (change,) = board.apply(PublishBall(at=0, id=1, innings=1, label=Overs(0, 1), ball=ball(outs=(hurt,))))

    assert board.score(1).wickets == 0
    assert isinstance(change.content, DeliveryTruth)
    assert change.content.wickets[0].kind is Dismissal.RETIRED


def test_a_correction_after_the_innings_updates_ball_over_and_innings_but_not_the_headline() -> None:
    script = small_script()
    board, _ = board_at(script, 150)
    assert board.headline == "Innings Break"
    first = first_balls(script)[0]

    changes = board.apply(replace(first, ball=ball(batter=3)))

    assert [(change.op, change.kind) for change in changes] == [
        ("update", "delivery"),
        ("update", "over"),
        ("update", "innings"),
    ]
    _, over, innings = (change.content for change in changes)
    assert isinstance(over, OverTruth)
    assert (over.runs, over.score.runs) == (16, 14)
    assert isinstance(innings, InningsTruth)
    assert (innings.runs, innings.wickets, innings.overs) == (22, 1, "2.0")
    assert board.headline == "Innings Break"
    assert board.balls_posted[first.id].score == "1/0"


def test_a_late_wicket_in_the_break_does_not_end_the_break() -> None:
    script = small_script()
    board, _ = board_at(script, 150)
    last = [step for step in first_balls(script) if step.innings == 1][-1]

    board.apply(replace(last, ball=replace(last.ball, outs=(Out(kind=Dismissal.LBW, player="R0"),))))

    assert board.headline == "Innings Break"
    assert board.score(1).wickets == 2


def test_a_change_that_moves_no_sum_updates_the_ball_alone() -> None:
    script = small_script()
    board, _ = board_at(script, 150)

    changes = board.apply(replace(first_balls(script)[0], ball=ball(legbyes=1)))

    assert [(change.op, change.kind) for change in changes] == [("update", "delivery")]


def test_publishing_the_same_again_changes_nothing() -> None:
    script = small_script()
    board, _ = board_at(script, 150)

    assert board.apply(first_balls(script)[0]) == []


def test_a_ghost_is_void_when_it_is_withdrawn() -> None:
    board, _ = board_at(small_script(), 25)
    ghost = PublishBall(
        at=26, id=first_balls(small_script())[1].id + 1, innings=1, label=Overs(0, 2), ball=ball(wides=1)
    )
    before = board.score(1)

    (inserted,) = board.apply(ghost)
    (void,) = board.apply(WithdrawBall(at=27, id=ghost.id))

    assert (inserted.op, void.op, void.id, void.content) == ("insert", "void", str(ghost.id), None)
    assert board.score(1) == before


def test_a_late_ball_takes_its_place_and_the_headline_stays() -> None:
    script = small_script()
    first, second, third = first_balls(script)[:3]
    board, _ = board_at((), 0)
    board.apply(first)
    board.apply(third)

    board.apply(second)

    assert [posted.id for posted in board.balls(1)] == [first.id, second.id, third.id]
    assert board.headline == "0"


def test_the_result_closes_the_open_innings() -> None:
    _, changes = board_at(small_script(), END)

    assert [(change.kind, change.id) for change in changes[-2:]] == [("innings", "innings-2"), ("result", "result")]


def test_an_over_ended_early_counts_as_whole() -> None:
    board, _ = board_at((), 0)
    board.apply(PublishBall(at=0, id=1, innings=1, label=Overs(0, 1), ball=ball()))

    board.apply(EndOver(at=1, id=2, innings=1, over=0))

    assert board.score(1).overs == Overs(1, 0)
    assert board.balls(1)[0].ball.runs == Runs()
