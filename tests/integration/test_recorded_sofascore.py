"""Recorded sofascore bodies, read here with plain JSON and by the product: both must say the same.

`read` below knows nothing of the product. It was written from the descriptions of the recorded bodies.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from typer.testing import CliRunner

from longstop.cli.main import command_line
from longstop.errors import SourceChallenged, SourceError
from longstop.model.source_queries_and_answers import LIST, LIVE, RENDERED, Query
from longstop.sources.bodies_and_urls import is_challenge, read_body
from longstop.sources.sofascore.source import SofascoreSource
from longstop.sports.football.model import INCIDENTS, LINEUPS, STATISTICS
from tests.football_site import SOFASCORE_CONFIG

PROJECT = Path(__file__).parents[2]
RECORDINGS = PROJECT / os.environ.get("LONGSTOP_RECORDED", "../shared/data")
EXTRA = RECORDINGS / "extra"
SOFASCORE = EXTRA / "sofascore"
SOURCE = SofascoreSource(SOFASCORE_CONFIG)

pytestmark = pytest.mark.skipif(
    not SOFASCORE.is_dir(), reason="no recordings: set LONGSTOP_RECORDED to their directory"
)


def files(folder: str) -> list[Path]:
    return sorted((SOFASCORE / folder).iterdir()) if SOFASCORE.is_dir() else []


# --- the independent reader ------------------------------------------------------------------------------------------

_STATUSES = {
    "notstarted": "upcoming",
    "postponed": "upcoming",
    "delayed": "upcoming",
    "inprogress": "live",
    "interrupted": "break",
    "suspended": "break",
    "willcontinue": "break",
    "finished": "completed",
    "canceled": "completed",
}
_SIDES = {1: "home", 2: "away"}


class Facts(Struct, frozen=True, kw_only=True):
    status: str
    score: tuple[int, int] | None
    #: `home`, `away`, `draw` or nothing.
    winner: str | None
    sides: tuple[tuple[str, str], tuple[str, str]]


def read(event: dict[str, Any]) -> Facts:
    code, kind = event["status"]["code"], event["status"]["type"]
    status = "break" if code in (31, 32, 33, 34) else _STATUSES[kind]
    is_over = status == "completed" or bool(event.get("isAwarded"))
    return Facts(
        status=status,
        score=None if status == "upcoming" else _pair(_goals(event, "homeScore"), _goals(event, "awayScore")),
        winner=_winner(event) if is_over else None,
        sides=tuple((str(event[side]["id"]), event[side]["name"].strip()) for side in ("homeTeam", "awayTeam")),  # type: ignore[arg-type]
    )


def _goals(event: dict[str, Any], side: str) -> Any:
    score, code = event[side], event["status"]["code"]
    kicks = [event[each].get("penalties") for each in ("homeScore", "awayScore")]
    is_shoot_out = code in (50, 120) or (code == 100 and None not in kicks)
    if is_shoot_out and "normaltime" in score:
        return score["normaltime"] + score.get("overtime", score.get("extra1", 0) + score.get("extra2", 0))
    if event.get("isAwarded") and score.get("current") == score.get("display"):
        # Only the periods may still have what was played.
        played = [event[each].get("period1", 0) + event[each].get("period2", 0) for each in ("homeScore", "awayScore")]
        if all("period1" in event[each] for each in ("homeScore", "awayScore")):
            return played[side == "awayScore"]
    if event.get("isAwarded") or "penalties" in score:
        return score.get("current")
    return score.get("display", score.get("current"))


def _winner(event: dict[str, Any]) -> str | None:
    codes = [event.get("winnerCode")]
    if event["status"]["code"] == 120:
        codes.append(event.get("aggregatedWinnerCode"))
    for code in codes:
        if code in _SIDES:
            return _SIDES[code]
    home, away = event["homeScore"], event["awayScore"]
    if event["status"]["code"] == 120:
        return "home" if home["penalties"] > away["penalties"] else "away"
    if event.get("winnerCode") == 3:
        return "draw"
    if event.get("isAwarded"):
        return "home" if home["display"] > away["display"] else "away"
    return None


def _pair(home: int | None, away: int | None) -> tuple[int, int] | None:
    return None if home is None or away is None else (home, away)


# --- the product's reading -------------------------------------------------------------------------------------------


def parsed(resource: str, body: bytes) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(read_body(SOURCE, Query(resource=resource), body))
    return found


def facts_of(board: dict[str, Any]) -> Facts:
    score, result = board["score"], board["result"] or {}
    outcome = result.get("outcome")
    return Facts(
        status=board["status"],
        score=(score["home"], score["away"]) if score else None,
        winner=outcome if outcome in ("home", "away", "draw") else result.get("winner"),
        sides=tuple((board[side]["key"], board[side]["name"]) for side in ("home", "away")),  # type: ignore[arg-type]
    )


def listed() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield every entry of the day lists, with what the product reads from it."""
    for file in files("list"):
        body = file.read_bytes()
        listing = parsed(LIST, body)
        assert not listing["unreadable"]
        yield from zip(json.loads(body)["events"], listing["boards"], strict=True)


@pytest.mark.parametrize("file", files("event"), ids=lambda file: file.stem)
def test_an_event_is_read_as_an_independent_reader_reads_it(file: Path) -> None:
    body = file.read_bytes()

    assert facts_of(parsed(LIVE, body)) == read(json.loads(body)["event"])


def test_every_entry_of_the_day_lists_is_read_as_an_independent_reader_reads_it() -> None:
    entries = list(listed())

    assert len(entries) > 1_000
    assert [board["source_id"] for event, board in entries if facts_of(board) != read(event)] == []


def test_at_most_one_clean_event_is_suspect() -> None:
    boards = [parsed(LIVE, file.read_bytes()) for file in files("event")] + [board for _, board in listed()]

    assert sum(bool(board["suspicions"]) for board in boards) <= 1


@pytest.mark.parametrize("file", files("event_poisoned"), ids=lambda file: file.stem)
def test_a_poisoned_event_is_read_and_suspect(file: Path) -> None:
    assert parsed(LIVE, file.read_bytes())["suspicions"]


@pytest.mark.parametrize("file", files("incidents_poisoned"), ids=lambda file: file.stem)
def test_poisoned_incidents_are_read_and_suspect(file: Path) -> None:
    assert parsed(INCIDENTS, file.read_bytes())["suspicions"]


def test_clean_incidents_are_not_suspect() -> None:
    clean = [*files("incidents"), *sorted((RECORDINGS / "sofascore" / "incidents").iterdir())]

    found = {file.stem: parsed(INCIDENTS, file.read_bytes())["suspicions"] for file in clean}

    assert len(found) >= 15
    assert not any(found.values())


@pytest.mark.parametrize(
    ("resource", "folder"), [(LINEUPS, "lineups"), (STATISTICS, "statistics")], ids=["lineups", "statistics"]
)
def test_line_ups_and_statistics_are_read(resource: str, folder: str) -> None:
    assert all(parsed(resource, file.read_bytes()) for file in files(folder))


def test_an_awarded_match_keeps_both_scores() -> None:
    board = parsed(LIVE, (SOFASCORE / "event" / "statsfut_awarded_10961628.json").read_bytes())

    assert board["score"] == {"home": 1, "away": 0}
    assert board["result"]["awarded"] == {"home": 0, "away": 3}


def test_only_the_error_body_that_names_a_challenge_is_one() -> None:
    for file in files("error"):
        with pytest.raises(SourceError) as caught:
            read_body(SOURCE, Query(resource=LIVE), file.read_bytes())
        assert isinstance(caught.value, SourceChallenged) is ("challenge" in file.stem)


def test_a_recorded_page_with_data_is_no_challenge() -> None:
    pages = [file for file in EXTRA.rglob("*.html") if file.parent.name != "error"]

    assert len(pages) >= 6
    assert [file.name for file in pages if is_challenge(file.read_bytes())] == []


def test_a_recorded_match_page_is_read_by_its_first_selectors() -> None:
    [file] = files("page")

    board = parsed(RENDERED, file.read_bytes())

    assert (board["status"], board["headline"], board["score"]) == ("completed", "Finished", {"home": 1, "away": 0})
    assert (board["home"]["name"], board["away"]["name"]) == ("Atlético Mineiro", "Athletico")
    assert not any(board["selectors"].values())


def test_parse_prints_the_suspicions() -> None:
    [poisoned, *_], [clean, *_] = files("event_poisoned"), files("event")
    [lineups] = files("lineups")

    for kind, file, is_suspect in ((LIVE, poisoned, True), (LIVE, clean, False), (LINEUPS, lineups, False)):
        shown = CliRunner().invoke(command_line(), ["parse", "sofascore", kind, str(file)])
        assert bool(json.loads(shown.stdout)["suspicions"]) is is_suspect
