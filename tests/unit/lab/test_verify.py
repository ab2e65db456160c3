"""What a replay is compared with: balls, innings totals and the outcome, as the file has them."""

import json
from pathlib import Path
from typing import Any

import pytest

from longstop.errors import UsageError
from longstop.sports.cricket.model import result_in
from longstop_lab.simulator.cricket.cricsheet import read_cricsheet
from longstop_lab.verify import FileReport, FileTruth, Served, compare, replay_seconds, truth_of


def innings(team: str, *runs: int, **more: Any) -> dict[str, Any]:
    letter = team[0]
    players = {"batter": f"{letter} One", "non_striker": f"{letter} Two", "bowler": f"{'AB'[letter == 'A']} One"}
    deliveries = [{**players, "runs": {"batter": each, "extras": 0, "total": each}} for each in runs]
    return {"team": team, "overs": [{"over": 0, "deliveries": deliveries}], **more}


FOUR_INNINGS = (
    innings("Alphas", 4, 4, 4, declared=True),
    innings("Betas", 1),
    innings("Betas", 2, penalty_runs={"pre": 5}),
    innings("Alphas", 0, penalty_runs={"post": 5}),
)


def write(path: Path, outcome: dict[str, Any], *played: dict[str, Any], overs: int | None = 20) -> Path:
    info: dict[str, Any] = {"match_type": "T20", "teams": ["Alphas", "Betas"], "outcome": outcome}
    info["players"] = {"Alphas": ["A One", "A Two"], "Betas": ["B One", "B Two"]}
    info |= {"dates": ["2026-01-01"]} if overs is None else {"overs": overs}
    path.write_text(json.dumps({"info": info, "innings": played or FOUR_INNINGS}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        ({"winner": "Betas", "by": {"runs": 4}}, "won"),
        ({"winner": "Betas", "by": {"wickets": 4}}, "won"),
        ({"winner": "Alphas", "by": {"innings": 1, "runs": 4}}, "won"),
        ({"winner": "Betas", "by": {"runs": 4}, "method": "D/L"}, "won"),
        ({"winner": "Betas", "method": "Awarded"}, "won"),
        ({"result": "tie"}, "tie"),
        ({"result": "tie", "eliminator": "Betas"}, "tie"),
        ({"result": "tie", "bowl_out": "Betas"}, "tie"),
        ({"result": "draw"}, "draw"),
        ({"result": "no result"}, "no result"),
    ],
)
def test_every_outcome_ends_the_replay_as_the_file_says(tmp_path: Path, outcome: dict[str, Any], kind: str) -> None:
    """The simulator's words for the outcome must be a result for the scraper: else the match never ends."""
    path = write(tmp_path / "match.json", outcome, overs=None)

    shown = result_in(read_cricsheet(path, 0).result.text)

    assert shown is not None
    assert shown.outcome.value == truth_of(path).outcome == kind


def test_the_totals_of_a_file_include_penalty_runs(tmp_path: Path) -> None:
    truth = truth_of(write(tmp_path / "match.json", {"result": "draw"}))

    assert truth.totals == {1: 12, 2: 1, 3: 7, 4: 5}
    assert [(ball.innings, ball.position) for ball in truth.balls] == [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (4, 1)]


@pytest.mark.parametrize("content", ["", "[]", '{"info": {}, "innings": []}', '{"innings": 5}', '{"info": 1}'])
def test_a_file_of_another_kind_is_a_sentence(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content, encoding="utf-8")

    with pytest.raises(UsageError, match=r"other\.json is not a Cricsheet JSON file"):
        truth_of(path)


# --- the comparison --------------------------------------------------------------------------------------------------


def report(truth: FileTruth, **changes: Any) -> FileReport:
    served = {"balls": truth.balls, "totals": truth.totals, "outcome": truth.outcome, **changes}
    return compare("match.json", truth, Served(**served), kills=0, seconds=1.0)


def test_a_match_that_came_back_whole_is_good(tmp_path: Path) -> None:
    truth = truth_of(write(tmp_path / "match.json", {"result": "draw"}))

    assert report(truth).is_good
    assert report(truth).first_difference is None


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"totals": {1: 12, 2: 1, 3: 2, 4: 5}}, "innings 3 has 7 runs and was served with 2"),
        ({"totals": {1: 12, 2: 1, 3: 7}}, "innings 4 has 5 runs and was served with None"),
        ({"outcome": "won"}, "the match ended with draw and was served with won"),
    ],
)
def test_a_wrong_total_or_outcome_is_a_difference(tmp_path: Path, changes: dict[str, Any], difference: str) -> None:
    found = report(truth_of(write(tmp_path / "match.json", {"result": "draw"})), **changes)

    assert not found.is_good
    assert found.first_difference == difference
    assert found.equal == found.deliveries


def test_a_missing_ball_is_a_difference(tmp_path: Path) -> None:
    truth = truth_of(write(tmp_path / "match.json", {"result": "draw"}))

    found = report(truth, balls=truth.balls[1:])

    assert (found.missing, found.equal, found.is_good) == (1, 5, False)


def test_a_test_match_is_replayed_slowly_enough_for_the_scraper_to_follow() -> None:
    assert replay_seconds(240, None) == 5.0
    assert replay_seconds(240, 2.0) == 12.0
    assert replay_seconds(2_600, None) > 10.0
