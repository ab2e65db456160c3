import pytest
from msgspec.structs import replace

from longstop_lab.simulator.football.board import FootballBoard
from longstop_lab.simulator.football.model import CardTruth, FootballContent, GoalTruth, StatusTruth
from longstop_lab.simulator.football.script import FootballStep
from longstop_lab.simulator.truth import decode_line
from tests.unit.lab.simulator.football.games import matches, scripts
from tests.unit.lab.simulator.games import lines_of

GOAL = GoalTruth(side="home", minute=12, added=0, scorer="9", assist=None, how="regular", home=1, away=0)
CARD = CardTruth(side="away", minute=90, added=3, player="4", card="yellow")


@pytest.fixture
def board() -> FootballBoard:
    return FootballBoard(matches()[0])


def step(content: FootballContent | None, id_: str = "118000010") -> FootballStep:
    return FootballStep(at=0.0, id=id_, content=content)


def test_before_anything_is_shown_there_is_no_status_and_no_score(board: FootballBoard) -> None:
    assert (board.status, board.score) == ("", (0, 0))


def test_a_goal_changes_the_score_until_it_is_taken_back(board: FootballBoard) -> None:
    (shown,) = board.apply(step(GOAL))
    with_it = board.score
    (gone,) = board.apply(step(None))

    assert (with_it, board.score) == ((1, 0), (0, 0))
    assert (shown.op, shown.kind, gone.op, gone.kind, gone.content) == ("insert", "goal", "void", "goal", None)


def test_a_second_word_is_an_update_and_the_same_word_is_nothing(board: FootballBoard) -> None:
    board.apply(step(CARD))

    assert board.apply(step(CARD)) == []
    assert [change.op for change in board.apply(step(replace(CARD, card="red")))] == ["update"]


def test_the_status_is_the_last_one_said(board: FootballBoard) -> None:
    for status in ("Not started", "1st half", "Halftime"):
        board.apply(step(StatusTruth(status=status, shift_seconds=0.0), "status"))

    assert board.status == "Halftime"


def test_lines_of_the_log_say_side_minute_and_score(board: FootballBoard) -> None:
    (line,) = lines_of(board.apply(step(GOAL)), "11400000")

    assert decode_line(line.encode()) == line
    assert (line.kind, line.content["side"], line.content["minute"], line.content["added"]) == ("goal", "home", 12, 0)
    assert (line.content["home"], line.content["away"]) == (1, 0)


def test_the_log_of_a_match_folds_to_its_truth() -> None:
    for match, script in scripts()[:100]:
        board = FootballBoard(match)
        live: dict[str, str] = {}
        for line in lines_of([change for each in script for change in board.apply(each)], match.key):
            assert (line.op == "insert") == (line.id not in live)
            live[line.id] = line.kind
            if line.op == "void":
                del live[line.id]
        assert live.keys() == match.truth.keys()
