"""Recorded cricket bodies with rare shapes: a small reader of the test's own and the sources agree.

The reader uses other fields than the sources where the body has the same fact twice.
"""

import json
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from longstop.errors import SourceChallenged
from longstop.model.match import MatchStatus
from longstop.model.source_queries_and_answers import LIST, LIVE, Listing, Query
from longstop.sources.bodies_and_urls import read_body
from longstop.sources.crex.source import CrexSource
from longstop.sources.espncricinfo.source import EspncricinfoSource
from longstop.sports.cricket.model import (
    BALLS,
    NAMES,
    SCORECARD,
    Board,
    Delivery,
    EventListPage,
    InningsScore,
    Names,
    OverSummary,
    Scorecard,
    SeenEvent,
)
from tests.builders import CREX_CONFIG

EXTRA = Path(__file__).parents[2] / os.environ.get("LONGSTOP_RECORDED", "../shared/data") / "extra"
CREX = CrexSource(CREX_CONFIG)
ESPNCRICINFO = EspncricinfoSource(msgspec.structs.replace(CREX_CONFIG, domain_id="espncricinfo", metadata={}))

pytestmark = pytest.mark.skipif(
    not (EXTRA / "crex").is_dir(), reason="no recordings: set LONGSTOP_RECORDED to their directory"
)


def files(folder: str) -> list[Path]:
    return sorted((EXTRA / folder).glob("*")) if EXTRA.is_dir() else []


def named(path: Path) -> str:
    return path.stem


def raw(name: str) -> Any:
    return json.loads((EXTRA / name).read_bytes())


def crex(resource: str, name: str, source_id: str = "") -> Any:
    return read_body(CREX, Query(resource=resource, source_id=source_id), (EXTRA / "crex" / name).read_bytes())


def espncricinfo(resource: str, name: str, source_id: str = "") -> Any:
    body = (EXTRA / "espncricinfo" / name).read_bytes()
    return read_body(ESPNCRICINFO, Query(resource=resource, source_id=source_id), body)


def written(score: InningsScore | None) -> str:
    return f"{score.runs}-{score.wickets} {score.overs}" if score else ""


# --- crex ------------------------------------------------------------------------------------------------------------

STATE = "live/WBS_sv3_page_state.json"


def test_a_crex_state_in_play_is_read_as_its_page_shows_it() -> None:
    """The page adds fields of its own: `team1` is the side that bats, with its score, batters and bowler."""
    shown, sides = raw(f"crex/{STATE}"), raw("crex/meta/WBS.json")[0]
    batting = re.findall(r"/Teams/(\w+)\.png", shown["team1flag"])[0]
    bowling = re.findall(r"/Teams/(\w+)\.png", shown["team2flag"])[0]

    board = crex(LIVE, STATE, "WBS")

    assert isinstance(board, Board)
    assert (board.status, board.result) == (MatchStatus.LIVE, None)
    assert (board.batting, board.bowling, board.is_batting_known) == (batting, bowling, True)
    assert board.team_keys == {sides["team1_fkey"], sides["team2_fkey"]}
    assert written(board.second) == f"{shown['score1']} {shown['over1']}"
    assert written(board.first) == f"{shown['score2']} {shown['over2']}"
    assert [(each.key, str(each.runs), f"({each.balls})", int(each.on_strike)) for each in board.batters] == [
        (shown["p1f"], shown["run1"], shown["ball1"], shown["os1"]),
        (shown["p2f"], shown["run2"], shown["ball2"], shown["os2"]),
    ]
    assert board.bowler is not None
    assert f"{board.bowler.wickets}-{board.bowler.runs}" == shown["bwr"]
    assert (board.match_format, board.start_at) == ("T20", None)


def test_the_balls_of_crex_agree_with_the_last_overs_of_its_state() -> None:
    overs = {over["o"] - 1: [ball["u"] for ball in over["b"]] for over in raw(f"crex/{STATE}")["rb"]}

    page = crex(BALLS, "balls/WBS.json", "WBS")

    assert isinstance(page, EventListPage)
    events = [item for item in page.items if isinstance(item, SeenEvent)]
    balls = [(event.over, event.content) for event in events if isinstance(event.content, Delivery)]
    assert {event.innings for event in events} == {2}
    assert [str(ball.runs.total) for over, ball in reversed(balls) if over == 5] == overs[5]
    assert [str(ball.runs.total) for over, ball in reversed(balls) if over == 4] == overs[4][-3:]
    [end] = [event.content for event in events if isinstance(event.content, OverSummary)]
    assert end.runs == sum(int(value) for value in overs[4])
    assert page.teams == {"55": "Canterbury"}


@pytest.mark.parametrize("path", files("crex/fixture"), ids=named)
def test_a_fixture_list_of_crex_is_read_as_its_page_shows_it(path: Path) -> None:
    shown = {each["mf"]: each for each in json.loads(path.read_bytes()) if each.get("mf")}

    listing = crex(LIST, f"fixture/{path.name}")

    assert isinstance(listing, Listing)
    assert listing.unreadable == ()
    assert [board.source_id for board in listing.boards] == list(shown)
    for board in listing.boards:
        assert isinstance(board, Board)
        fixture = shown[board.source_id]
        assert board.team_keys == {fixture["team1fkey"], fixture["team2fkey"]}
        assert board.start_at is not None
        assert f"{board.start_at:%b %d, %I:%M %p}" == ", ".join(fixture["startDate"])
        assert board.match_format == fixture["formats"]
        scores = [fixture["team1Score1"], fixture["team2Score1"]]
        if fixture.get("bf") == fixture["team2fkey"]:
            scores.reverse()
        # The page leaves out the wickets of a side that is all out.
        assert [_short(board.first), _short(board.second)] == scores
        has_ended = fixture.get("winningTeamName") is not None
        assert (board.status is MatchStatus.COMPLETED) is has_ended
        if has_ended:
            assert board.result is not None
            assert board.result.text == fixture["winningTeamName"] + fixture["reason"]
        else:
            assert (board.status is MatchStatus.LIVE) is (fixture["statusText"] == "Live")
            assert board.result is None


def _short(score: InningsScore | None) -> str:
    if score is None:
        return ""
    return f"{score.runs}" if score.wickets == 10 else f"{score.runs}/{score.wickets}"


@pytest.mark.parametrize("path", files("crex/names"), ids=named)
def test_a_table_of_names_of_crex_is_read_whole(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    names = crex(NAMES, f"names/{path.name}")

    assert isinstance(names, Names)
    pairs = set(re.findall(r'"f_key": "(\w+)", "n": "([^"]+)"', text))
    assert {(key, name) for table in (names.players, names.teams) for key, name in table.items()} <= pairs
    assert len(names.players) + len(names.teams) > 10


# --- espncricinfo ----------------------------------------------------------------------------------------------------

IN_PLAY = "live/1443544_inplay_wrapped.html"


def test_a_match_of_espncricinfo_in_play_is_read_as_its_scorecard_shows_it() -> None:
    content = raw("espncricinfo/live/1443544_inplay.json")
    [bats, fields] = content["match"]["teams"]
    [innings] = content["content"]["innings"]

    board, card = espncricinfo(LIVE, IN_PLAY, "1443544"), espncricinfo(SCORECARD, IN_PLAY, "1443544")

    assert isinstance(board, Board)
    assert (board.status, board.headline, board.result) == (MatchStatus.LIVE, "", None)
    assert (board.batting, board.bowling, board.is_batting_known) == (
        str(bats["team"]["id"]),
        str(fields["team"]["id"]),
        True,
    )
    assert written(board.first) == f"{bats['score'].replace('/', '-')} {bats['scoreInfo'].split('/')[0]}"
    assert board.second is None
    at_crease = {each["player"]["id"]: each for each in innings["inningBatsmen"] if each.get("currentType")}
    assert {(each.key, each.runs, each.balls, each.on_strike) for each in board.batters} == {
        (str(key), each["runs"], each["balls"], each["currentType"] == 1) for key, each in at_crease.items()
    }
    [bowls] = [each for each in innings["inningBowlers"] if each.get("currentType") == 1]
    assert board.bowler is not None
    assert (board.bowler.key, board.bowler.runs, board.bowler.balls, board.bowler.wickets) == (
        str(bowls["player"]["id"]),
        bowls["conceded"],
        bowls["balls"],
        bowls["wickets"],
    )
    assert isinstance(card, Scorecard)
    assert [(each.team, each.score) for each in card.innings] == [(board.batting, board.first)]


def test_the_balls_of_espncricinfo_in_play_add_up_to_its_overs() -> None:
    [innings] = raw("espncricinfo/live/1443544_inplay.json")["content"]["innings"]
    overs = {over["overNumber"] - 1: over for over in innings["inningOvers"]}

    page = espncricinfo(BALLS, IN_PLAY, "1443544")

    assert isinstance(page, EventListPage)
    balls = [item for item in page.items if isinstance(item, SeenEvent)]
    assert len(balls) == 33
    assert [ball.source_event_id for ball in balls] == sorted((ball.source_event_id for ball in balls), reverse=True)
    for number in range(4, 9):
        runs = [ball.content.runs for ball in balls if ball.over == number and isinstance(ball.content, Delivery)]
        assert sum(each.total for each in runs) == overs[number]["overRuns"]
    assert {item.over for item in page.detached if isinstance(item.content, OverSummary)} == set(range(8))


@pytest.mark.parametrize("path", files("espncricinfo/list"), ids=named)
def test_a_list_of_espncricinfo_is_read_in_either_layout(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    script = text.partition('<script id="__NEXT_DATA__"')[2].partition(">")[2].partition("</script>")[0]
    shown = _list_of_matches(json.loads(script))

    listing = espncricinfo(LIST, f"list/{path.name}")

    assert isinstance(listing, Listing)
    assert len(listing.boards) == len(shown) == 48
    for board, match in zip(listing.boards, shown, strict=True):
        assert isinstance(board, Board)
        assert board.source_id == str(match["objectId"])
        assert board.team_keys == {str(each["team"]["id"]) for each in match["teams"]}
        assert board.start_at == datetime.fromisoformat(match["startTime"])
        assert board.status is MatchStatus.COMPLETED
        assert board.result is not None
        assert board.result.outcome.value == _outcome(match)


def _list_of_matches(value: Any) -> list[dict[str, Any]]:
    """Return the list called `matches`, wherever it is."""
    if isinstance(value, dict):
        found = value.get("matches")
        if isinstance(found, list) and found:
            return found
        return next((each for part in value.values() if (each := _list_of_matches(part))), [])
    return []


def _outcome(match: dict[str, Any]) -> str:
    if match["winnerTeamId"]:
        return "won"
    return "tie" if "tied" in match["statusText"] else match["status"].lower()


def test_a_denial_of_espncricinfo_is_a_challenge_and_no_match() -> None:
    with pytest.raises(SourceChallenged):
        espncricinfo(LIVE, "error/akamai_access_denied.html", "1511006")
