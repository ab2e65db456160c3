from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from longstop.errors import UsageError
from longstop.sports.cricket.model import Dismissal, InningsScore, Overs, ResultKind, Runs, result_in
from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.cricsheet import read_cricsheet
from longstop_lab.simulator.cricket.game import Game, Target
from longstop_lab.simulator.cricket.script import narrate, steady_pace
from tests.unit.lab.simulator.recorded import cricsheet_files, needs_recorded


def delivery(**more: Any) -> dict[str, Any]:
    return {
        "batter": "A One",
        "non_striker": "A Two",
        "bowler": "B One",
        "runs": {"batter": 0, "extras": 0, "total": 0},
        **more,
    }


def body(deliveries: list[dict[str, Any]], outcome: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "info": {
            "match_type": "T20",
            "teams": ["Alphas", "Betas"],
            "players": {"Alphas": ["A One", "A Two"], "Betas": ["B One"]},
            "overs": 20,
            "season": 2011,
            "outcome": outcome or {"result": "no result"},
        },
        "innings": [{"team": "Alphas", "overs": [{"over": 0, "deliveries": deliveries}]}, *more.get("then", [])],
    }


def game_of(tmp_path: Path, content: dict[str, Any]) -> Game:
    path = tmp_path / "match.json"
    path.write_bytes(msgspec.json.encode(content))
    return read_cricsheet(path, 0)


def first_ball_of(tmp_path: Path, one: dict[str, Any]) -> Any:
    return next(iter(game_of(tmp_path, body([one])).innings[0].balls))


def test_runs_keep_their_kinds(tmp_path: Path) -> None:
    one = delivery(extras={"legbyes": 1, "penalty": 5}, runs={"batter": 0, "extras": 6, "total": 6})

    assert first_ball_of(tmp_path, one).runs == Runs(legbyes=1, penalty=5)


@pytest.mark.parametrize(
    ("runs", "boundary"),
    [({"batter": 4}, 4), ({"batter": 6}, 6), ({"batter": 4, "non_boundary": True}, None), ({"batter": 3}, None)],
)
def test_four_all_run_are_no_boundary(tmp_path: Path, runs: dict[str, Any], boundary: int | None) -> None:
    assert first_ball_of(tmp_path, delivery(runs=runs)).boundary == boundary


@pytest.mark.parametrize(
    ("kind", "dismissal", "counts"),
    [
        ("caught and bowled", Dismissal.CAUGHT, True),
        ("retired hurt", Dismissal.RETIRED, False),
        ("retired not out", Dismissal.RETIRED, False),
        ("retired out", Dismissal.RETIRED, True),
        ("obstructing the field", Dismissal.OBSTRUCTING, True),
        ("timed out", Dismissal.OTHER, True),
    ],
)
def test_dismissals_fall_into_nine_classes(tmp_path: Path, kind: str, dismissal: Dismissal, counts: bool) -> None:
    one = delivery(wickets=[{"player_out": "A One", "kind": kind}])

    (out,) = first_ball_of(tmp_path, one).outs

    assert (out.kind, out.counts) == (dismissal, counts)


def test_a_substitute_joins_the_side_he_played_for(tmp_path: Path) -> None:
    game = game_of(tmp_path, body([delivery(bowler="B Late")]))

    assert [player.name for player in game.sides[1].players] == ["B One", "B Late"]


def test_targets_are_taken_revised_or_counted(tmp_path: Path) -> None:
    four = delivery(runs={"batter": 4})
    chase = {"team": "Betas", "overs": []}
    revised = body([four], then=[{**chase, "target": {"runs": 3, "overs": 17.2}}])
    plain = body([four], then=[chase])

    assert game_of(tmp_path, revised).innings[1].target == Target(runs=3, overs=Overs(17, 2))
    assert game_of(tmp_path, plain).innings[1].target == Target(runs=5, overs=Overs(20, 0))


@pytest.mark.parametrize(
    ("outcome", "kind", "text"),
    [
        ({"winner": "Betas", "by": {"wickets": 1}}, ResultKind.WON, "Betas won by 1 wicket"),
        ({"winner": "Betas", "by": {"runs": 12}, "method": "D/L"}, ResultKind.WON, "Betas won by 12 runs (D/L method)"),
        ({"result": "tie", "eliminator": "Betas"}, ResultKind.TIE, "Match tied (Betas won the Super Over)"),
        ({"result": "tie"}, ResultKind.TIE, "Match tied"),
        ({"result": "tie", "bowl_out": "Betas"}, ResultKind.TIE, "Match tied (Betas won the bowl-out)"),
        ({"result": "no result"}, ResultKind.NO_RESULT, "No result"),
        ({"result": "draw"}, ResultKind.DRAW, "Match drawn"),
        (
            {"winner": "Betas", "by": {"innings": 1, "runs": 273}},
            ResultKind.WON,
            "Betas won by an innings and 273 runs",
        ),
        ({"winner": "Betas", "method": "Awarded"}, ResultKind.WON, "Betas won (Awarded method)"),
    ],
)
def test_outcomes_become_the_sites_words(tmp_path: Path, outcome: dict[str, Any], kind: ResultKind, text: str) -> None:
    result = game_of(tmp_path, body([delivery()], outcome)).result

    assert (result.outcome, result.text) == (kind, text)
    assert result_in(text) == result, "the scraper does not take these words for a result: the match never ends"


def test_a_match_of_several_days_has_no_limit_of_overs_and_a_night_after_ninety(tmp_path: Path) -> None:
    overs = [{"over": number, "deliveries": [delivery()] * 6} for number in range(120)]
    test = body([], {"result": "draw"}, then=[{"team": "Betas", "overs": overs[:10], "declared": True}])
    test["info"] |= {"match_type": "Test", "dates": ["2026-01-01", "2026-01-02"]}
    del test["info"]["overs"]
    test["innings"][0] |= {"overs": overs}

    first, second = game_of(tmp_path, test).innings

    assert [(night.after, night.text) for night in first.pauses] == [(540, "Stumps")]
    assert second.pauses == ()
    assert (second.is_declared, second.target) == (True, None)


def test_penalty_runs_of_an_innings_count_for_its_total(tmp_path: Path) -> None:
    one = body([delivery(runs={"batter": 4})] * 2, {"winner": "Alphas", "by": {"runs": 13}})
    one["innings"][0]["penalty_runs"] = {"pre": 5, "post": 10}
    game = game_of(tmp_path, one)
    board = Board(game)

    scores = []
    for step in narrate(game, steady_pace(30), Random(1)):
        board.apply(step)
        scores.append(board.score(1).runs)

    assert scores == [0, 9, 13, 23, 23]
    assert board.score(1) == InningsScore(runs=23, wickets=0, overs=Overs(0, 2))
    assert game.innings[0].runs == 23


@pytest.mark.parametrize("content", [b"", b"<html>", b'{"info": {}}', b"[" * 100_000, b'{"innings": 5}', b"\xff"])
def test_a_file_of_another_kind_is_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)

    with pytest.raises(UsageError, match=r"^other\.json is not a ball-by-ball file"):
        read_cricsheet(path, 0)


def test_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.json cannot be read: No such file"):
        read_cricsheet(tmp_path / "none.json", 0)


@needs_recorded
@pytest.mark.parametrize("path", cricsheet_files(), ids=lambda path: path.stem)
def test_a_real_match_replays_to_its_own_totals(path: Path) -> None:
    game = read_cricsheet(path, 3)
    board = Board(game)

    for step in narrate(game, steady_pace(30), Random(1)):
        board.apply(step)

    original = msgspec.json.decode(path.read_bytes())
    assert board.begun == len(original["innings"])
    for number, innings in enumerate(original["innings"], start=1):
        deliveries = [delivery for over in innings["overs"] for delivery in over["deliveries"]]
        fallen = [wicket["kind"] for delivery in deliveries for wicket in delivery.get("wickets", ())]
        score = board.score(number)
        penalties = sum(innings.get("penalty_runs", {}).values())
        assert score.runs == sum(delivery["runs"]["total"] for delivery in deliveries) + penalties
        assert score.wickets == sum(kind not in ("retired hurt", "retired not out") for kind in fallen)
        assert len(board.balls(number)) == len(deliveries)
