"""Every recorded body goes through its source, where the recordings are present."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from longstop.model.match import MatchStatus
from longstop.model.source_queries_and_answers import LIVE, Query
from longstop.sources.bodies_and_urls import read_body
from longstop.sources.crex.source import CrexSource
from longstop.sources.sofascore.source import SofascoreSource
from longstop.sports.cricket.model import (
    BALLS,
    BALLS_PER_OVER,
    SCORECARD,
    Board,
    Delivery,
    EventListPage,
    OverSummary,
    Scorecard,
    SeenEvent,
)
from longstop.sports.cricket.poll_requests import assemble
from longstop.sports.football.model import (
    INCIDENTS,
    LINEUPS,
    STATISTICS,
    FootballBoard,
    Goal,
    GoalKind,
    Incidents,
    Lineups,
    PeriodEnd,
    Side,
    Statistics,
)
from longstop.sports.football.page_validation import validate_statistics
from longstop.sports.football.totals import goals_in
from tests.builders import CREX_CONFIG, body
from tests.football_site import SOFASCORE_CONFIG

PROJECT = Path(__file__).parents[2]
RECORDINGS = PROJECT / os.environ.get("LONGSTOP_RECORDED", "../shared/data")
RECORDED = RECORDINGS / "crex"
FOOTBALL = RECORDINGS / "sofascore"
SOURCE = CrexSource(CREX_CONFIG)
SOFASCORE = SofascoreSource(SOFASCORE_CONFIG)

pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason="no recordings: set LONGSTOP_RECORDED to their directory")


def recorded(name: str) -> Any:
    return msgspec.json.decode((RECORDED / name).read_bytes())


def boards(name: str, source_id: str) -> Iterator[Board]:
    for frame in recorded(name):
        state = frame.get("body", frame)
        found = read_body(SOURCE, Query(resource=LIVE, source_id=source_id), body(state))
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
    found = read_body(SOURCE, Query(resource=SCORECARD, source_id="11HD"), body(recorded(name)))

    assert isinstance(found, Scorecard)
    [board, *_] = boards("sv3_frames_11HD_inplay.json", "11HD")
    assert {innings.team for innings in found.innings} == {board.batting, board.bowling}
    assert found.innings[0].score == board.first
    assert all(innings.score.overs.ball < BALLS_PER_OVER for innings in found.innings)


def test_a_page_of_the_feed_is_balls_of_the_second_innings_and_over_ends() -> None:
    raw = recorded("ball_feed_11HD.json")

    found = read_body(SOURCE, Query(resource=BALLS, source_id="11HD"), body(raw))

    assert isinstance(found, EventListPage)
    assert len(found.items) == len(raw)
    assert {item.innings for item in found.items} == {2}
    assert {type(item.content) for item in found.items if isinstance(item, SeenEvent)} == {Delivery, OverSummary}
    assert found.next_before == str(raw[-1]["id"])
    assert len(assemble(found.items, is_whole=False).events) == len(raw)


def football(resource: str, folder: str) -> Iterator[tuple[str, Any]]:
    """Yield the id and the reading of every recorded body of a kind."""
    for file in sorted((FOOTBALL / folder).iterdir()):
        yield file.stem, read_body(SOFASCORE, Query(resource=resource), file.read_bytes())


def test_events_are_finished_with_a_result_that_their_score_gives() -> None:
    found = list(football(LIVE, "events"))

    assert len(found) >= 18
    for name, board in found:
        assert isinstance(board, FootballBoard)
        assert (board.source_id, board.status) == (name, MatchStatus.COMPLETED)
        assert board.score is not None
        assert board.result is not None
        ahead = board.score.home - board.score.away
        assert board.result.outcome.value == ("home" if ahead > 0 else "away" if ahead < 0 else "draw")
        assert sum(part.home + part.away for part in board.periods) == board.score.total


def test_incidents_add_up_to_the_score_at_the_end() -> None:
    found = [reading for _, reading in football(INCIDENTS, "incidents")]

    assert len(found) >= 14
    for incidents in found:
        assert isinstance(incidents, Incidents)
        goals = goals_in(incidents)
        [end] = [item.content for item in incidents.items if item.source_event_id == "period-FT"]
        assert isinstance(end, PeriodEnd)
        assert (end.home, end.away) == (goals.home, goals.away)
        assert len({(type(item.content), item.source_event_id) for item in incidents.items}) == len(incidents.items)


def test_an_own_goal_counts_for_the_other_side() -> None:
    incidents = dict(football(INCIDENTS, "incidents"))["9578836"]

    [goal] = [item for item in incidents.items if isinstance(item.content, Goal)]
    assert (goal.side, goal.content.how) == (Side.HOME, GoalKind.OWN_GOAL)


def test_line_ups_have_elevens_and_ratings_of_those_who_played() -> None:
    [(_, lineups)] = football(LINEUPS, "lineups")

    assert isinstance(lineups, Lineups)
    assert lineups.home is not None
    assert lineups.away is not None
    for squad in (lineups.home, lineups.away):
        assert len(squad.starters) == 11
        assert sum(player.is_captain for player in squad.players) == 1
    players = (*lineups.home.players, *lineups.away.players)
    assert (len(players), sum(player.rating is not UNSET for player in players)) == (45, 31)
    assert sum(player.minutes is not UNSET for player in players) == 32


def test_statistics_name_every_figure_once() -> None:
    [(_, statistics)] = football(STATISTICS, "statistics")

    assert isinstance(statistics, Statistics)
    validate_statistics(None, statistics)
    assert set(statistics.periods) == {"ALL", "1ST", "2ND"}
    for figures in statistics.periods.values():
        assert len(figures) > 30
