"""What a person sees of a demo."""

from io import StringIO
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console, RenderableType

from longstop_lab.report import DemoReport, SportReport
from longstop_lab.table import summary, table

CRICKET = SportReport(
    sport="cricket",
    matches=1000,
    events_truth=12345,
    events_stored=12345,
    lost=0,
    duplicated=0,
    ghost=0,
    freshness_p50_s=1.24,
    freshness_p99_s=2.96,
)
FOOTBALL = SportReport(
    sport="football",
    matches=4,
    events_truth=35,
    events_stored=34,
    lost=1,
    duplicated=0,
    ghost=0,
    freshness_p50_s=None,
    freshness_p99_s=None,
)


def printed(what: RenderableType) -> list[str]:
    console = Console(file=StringIO(), width=80)
    console.print(what)
    assert isinstance(console.file, StringIO)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


def entry(**more: Any) -> dict[str, Any]:
    common = {"matchId": 1, "match_id": "sofascore_7", "title": "A vs B", "status": "live", "sync": "in_sync"}
    return {**common, "data_age_seconds": 1.5, **more}


REPORT = DemoReport(
    matches=1004,
    sites={"crex": 1000, "sofascore": 4},
    events_truth=12380,
    events_stored=12379,
    lost=1,
    duplicated=0,
    ghost=0,
    declared=0,
    wrong=0,
    freshness_p50_s=1.2,
    freshness_p99_s=3.0,
    rss_mb=200.0,
    api_p95_ms=20.0,
    sports=(CRICKET, FOOTBALL),
)


def test_the_end_of_a_demo_has_a_line_for_each_sport_and_the_matches_by_site() -> None:
    lines = printed(summary(REPORT))

    assert lines[0] == "1 lost, 0 doubled, 0 invented"
    assert "matches by site: crex 1000, sofascore 4" in lines
    assert "sport matches events lost doubled invented age p50 p99" in lines
    assert "cricket 1000 12345 of 12345 0 0 0 1.2 s 3.0 s" in lines
    assert "football 4 34 of 35 1 0 0 - -" in lines


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lost": 0}, "nothing lost, nothing doubled, nothing invented"),
        (
            {"lost": 0, "declared": 202},
            "nothing lost, nothing doubled, nothing invented; 202 no longer shown when we came, and declared as gaps",
        ),
        ({"lost": 0, "wrong": 2}, "0 lost, 0 doubled, 0 invented, 2 totals wrong"),
    ],
)
def test_the_verdict_names_gaps_and_wrong_totals_beside_what_was_lost(changed: dict[str, int], said: str) -> None:
    lines = printed(summary(replace(REPORT, sites={"crex": 1004}, **changed)))

    assert " ".join(lines).startswith(said)
    assert "by site" not in " ".join(lines)


def test_a_football_match_shows_its_goals_and_what_happened_last() -> None:
    card = {"kind": "card", "minute": 90}
    score = {"home": 2, "away": 1, "penalties": {"home": 4, "away": 5}}
    payload = {"incidents": [card], "score": score}

    shown = "\n".join(printed(table([entry()], {"sofascore_7": payload})))

    assert "2-1 (4-5)" in shown
    assert "card 90'" in shown
    assert "1.5 s" in shown


def test_a_match_before_its_beginning_shows_neither() -> None:
    shown = printed(table([entry(status="upcoming", data_age_seconds=None)], {"sofascore_7": {"incidents": []}}))

    assert "│ 1 A vs B upcoming - │" in shown
