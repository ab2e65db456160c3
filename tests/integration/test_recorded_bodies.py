"""Every recorded crex body goes through the source, where the recordings are present."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from longstop.model.match import MatchStatus
from longstop.pipeline.assemble import assemble
from longstop.pipeline.tally import BALLS_PER_OVER
from longstop.sources.base import Ask, BallItem, Board, FeedPage, OverItem, Resource, Scorecard
from longstop.sources.crex import CrexSource
from tests.builders import CREX_CONFIG, body

PROJECT = Path(__file__).parents[2]
RECORDED = PROJECT / os.environ.get("LONGSTOP_RECORDED", "../shared/data") / "crex"
SOURCE = CrexSource(CREX_CONFIG)

pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason="no recordings: set LONGSTOP_RECORDED to their directory")


def recorded(name: str) -> Any:
    return msgspec.json.decode((RECORDED / name).read_bytes())


def boards(name: str, source_id: str) -> Iterator[Board]:
    for frame in recorded(name):
        state = frame.get("body", frame)
        found = SOURCE.parse(Ask(resource=Resource.LIVE, source_id=source_id), body(state))
        assert isinstance(found, Board)
        yield found


def test_states_in_play_are_live_and_their_score_only_grows() -> None:
    found = list(boards("sv3_frames_11HD_inplay.json", "11HD"))

    assert {board.status for board in found} == {MatchStatus.LIVE}
    assert all(len(board.batters) == 2 and board.bowler for board in found)
    scores = [board.second for board in found if board.second]
    assert len(scores) == len(found)
    assert sorted(scores, key=lambda score: score.overs) == sorted(scores, key=lambda score: score.runs)


def test_equal_states_of_a_break_have_one_fingerprint() -> None:
    found = list(boards("sv3_frames_QUY.json", "QUY"))

    assert {(board.status, board.second, board.batters) for board in found} == {(MatchStatus.BREAK, None, ())}
    assert len({board.fingerprint for board in found}) == 1


@pytest.mark.parametrize("name", ["sc4_11HD_early.json", "sc4_11HD_late.json"])
def test_a_scorecard_has_two_innings_of_the_boards_sides(name: str) -> None:
    found = SOURCE.parse(Ask(resource=Resource.SCORECARD, source_id="11HD"), body(recorded(name)))

    assert isinstance(found, Scorecard)
    [board, *_] = boards("sv3_frames_11HD_inplay.json", "11HD")
    assert {innings.team for innings in found.innings} == {board.batting, board.bowling}
    assert found.innings[0].score == board.first
    assert all(innings.score.overs.ball < BALLS_PER_OVER for innings in found.innings)


def test_a_page_of_the_feed_is_balls_of_the_second_innings_and_over_ends() -> None:
    raw = recorded("ball_feed_11HD.json")

    found = SOURCE.parse(Ask(resource=Resource.BALLS, source_id="11HD"), body(raw))

    assert isinstance(found, FeedPage)
    assert len(found.items) == len(raw)
    assert {item.innings for item in found.items} == {2}
    assert {type(item) for item in found.items} == {BallItem, OverItem}
    assert found.next_before == str(raw[-1]["id"])
    assert len(assemble(found.items, is_whole=False).events) == len(raw)
