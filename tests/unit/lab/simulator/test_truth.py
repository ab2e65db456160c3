import os
from pathlib import Path
from typing import Any

import pytest

from longstop.errors import UsageError
from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.game import Game
from longstop_lab.simulator.cricket.limited_overs import play_t20
from longstop_lab.simulator.cricket.world import script_for
from longstop_lab.simulator.truth import TruthFile, TruthLine, read_truth
from tests.unit.lab.simulator.games import board_at, lines_of, small_script

END = 10_000.0


def small_lines() -> list[TruthLine]:
    return lines_of(board_at(small_script(), END)[1])


def fold(lines: list[TruthLine]) -> dict[str, dict[str, Any]]:
    live: dict[str, dict[str, Any]] = {}
    for line in lines:
        if line.op == "void":
            del live[line.id]
        else:
            assert (line.op == "insert") == (line.id not in live)
            live[line.id] = line.content
    return live


def test_lines_come_back_from_the_file_as_they_were_written(tmp_path: Path) -> None:
    lines = small_lines()
    with TruthFile(tmp_path / "truth.jsonl") as file:
        file.write(lines)

        assert list(read_truth(tmp_path / "truth.jsonl")) == lines


def test_a_line_that_was_cut_short_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "truth.jsonl"
    with TruthFile(path) as file:
        file.write(small_lines())

    os.truncate(path, path.stat().st_size - 5)

    assert list(read_truth(path)) == small_lines()[:-1]


def test_a_log_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: Is a directory"):
        TruthFile(tmp_path)


def test_a_delivery_line_reads_as_documented() -> None:
    wicket = next(line for line in small_lines() if line.op == "update")

    assert wicket.content == {
        "innings": 1,
        "over": 0,
        "label": "0.5",
        "runs": {"batter": 0, "wides": 0, "noballs": 0, "byes": 0, "legbyes": 0, "penalty": 0},
        "boundary": None,
        "batter": "R0",
        "bowler": "H9",
        "wickets": [{"kind": "caught", "player_out": "Rover 0", "player_key": "R0"}],
    }


def test_over_innings_and_result_lines_read_as_documented() -> None:
    latest = {line.kind: line.content for line in small_lines()}
    over = next(line for line in small_lines() if line.kind == "over")

    assert over.content == {
        "innings": 1,
        "over": 0,
        "runs": 14,
        "score": {"runs": 14, "wickets": 1},
        "bowler": "H9",
    }
    assert latest["innings"] == {"innings": 2, "team": "H", "runs": 10, "wickets": 0, "overs": "0.2"}
    assert latest["result"] == {"outcome": "no result", "text": "No result"}


def test_lines_fold_to_the_final_truth() -> None:
    for index in range(30):
        game = play_t20(8, index)
        board = Board(game)
        changes = [change for step in script_for(game, 8) for change in board.apply(step)]

        live = fold(lines_of(changes))

        _assert_innings_agree(game, live)
        assert live["result"]["text"] == game.result.text


def _assert_innings_agree(game: Game, live: dict[str, dict[str, Any]]) -> None:
    for number, innings in enumerate(game.innings, start=1):
        summary = live[f"innings-{number}"]
        deliveries = [content for content in live.values() if "label" in content and content["innings"] == number]
        overs = [content for content in live.values() if "score" in content and content["innings"] == number]
        assert (summary["runs"], summary["wickets"]) == (innings.runs, innings.wickets)
        assert sum(sum(content["runs"].values()) for content in deliveries) == innings.runs
        assert len(deliveries) == len(list(innings.balls))
        for over in overs:
            balls = [content for content in deliveries if content["over"] == over["over"]]
            assert sum(sum(content["runs"].values()) for content in balls) == over["runs"]
