"""The terminal output of the demo."""

from io import StringIO
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console, ConsoleDimensions, RenderableType

from longstop_lab.report import DemoReport, SportReport
from longstop_lab.table import LINES_ABOVE, summary, table

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

TERMINAL = ConsoleDimensions(80, 24)


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


def test_the_summary_has_a_line_for_each_sport_and_the_matches_by_site() -> None:
    lines = printed(summary(REPORT))

    assert lines[0] == "1 lost, 0 duplicated, 0 invented"
    assert "matches by site: crex 1000, sofascore 4" in lines
    assert "sport matches published stored gaps lost duplicated invented age p50 p99" in lines
    assert "cricket 1000 12345 12345 0 0 0 0 1.2 s 3.0 s" in lines
    assert "football 4 35 34 0 1 0 0 - -" in lines


def test_matches_that_two_sites_show_are_explained() -> None:
    lines = printed(summary(replace(REPORT, sites={"crex": 3, "espncricinfo": 3, "sofascore": 3})))

    assert (
        "matches by site: crex 3, espncricinfo 3, sofascore 3 (crex and espncricinfo show the same matches)"
        in " ".join(lines)
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lost": 0}, "no event lost, duplicated or invented sport"),
        (
            {"lost": 0, "declared": 202},
            "no event lost, duplicated or invented (202 declared as gaps)",
        ),
        ({"lost": 0, "wrong": 2}, "0 lost, 0 duplicated, 0 invented, 2 wrong totals"),
    ],
)
def test_the_result_names_gaps_and_wrong_totals(changed: dict[str, int], said: str) -> None:
    lines = printed(summary(replace(REPORT, sites={"crex": 1004}, **changed)))

    assert " ".join(lines).startswith(said)
    assert "by site" not in " ".join(lines)


def test_gaps_are_explained_beside_the_smaller_number_of_stored_events() -> None:
    sport = replace(CRICKET, events_truth=610, events_stored=410, declared=200)
    lines = printed(summary(replace(REPORT, sports=(sport,), lost=0, declared=200)))

    assert "cricket 1000 610 410 200 0 0 0 1.2 s 3.0 s" in lines
    assert "gaps: 200 events were no longer on the site when polling started; Longstop" in " ".join(lines)


def test_80_columns_show_the_current_innings_completely() -> None:
    innings = [
        {"runs": 588, "wickets": 10, "overs": {"over": 148, "ball": 3}},
        {"runs": 277, "wickets": 7, "overs": {"over": 101, "ball": 5}},
    ]
    payload = {"innings": innings, "last_event": {"description": "J Bowler to K Batter, no run, defended"}}
    match = entry(title="A long name of a side vs another long name of a side, 3rd Test", status="break")

    (row,) = [line for line in printed(table([match], {"sofascore_7": payload}, TERMINAL)) if "277" in line]

    assert "277/7 (101.5)" in row
    assert "break" in row
    assert "1.5 s" in row


def test_more_matches_than_the_terminal_has_lines_leave_room_for_the_greeting_and_keep_the_hint() -> None:
    entries = [entry(matchId=number, status="completed" if number < 9 else "live") for number in range(1, 21)]

    lines = printed(table(entries, {}, TERMINAL))

    assert len(lines) == TERMINAL.height - LINES_ABOVE
    assert "and 11 more · Ctrl-C stops and checks every event" in lines[-1]
    assert all("live" in line for line in lines[3:-1])


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("Norbeck Rovers vs Dunmoor Herons - T20", "Norbeck Rovers vs Dunmoor Herons"),
        ("Harrowgate End Wanderers vs Brackenshaw Rovers - T20", "Harrowgate End… vs Brackenshaw Rov…"),
        ("Oxmoor vs Harrowgate End Wanderers - T20", "Oxmoor vs Harrowgate End Wanderers"),
        ("A title without any teams that is much too long", "A title without any teams that is…"),
    ],
)
def test_80_columns_show_both_teams(title: str, shown: str) -> None:
    innings = [
        {"runs": 177, "wickets": 6, "overs": {"over": 20, "ball": 0}},
        {"runs": 7, "wickets": 0, "overs": {"over": 1, "ball": 1}},
    ]

    (row,) = [
        line
        for line in printed(table([entry(title=title)], {"sofascore_7": {"innings": innings}}, TERMINAL))
        if "7/0" in line
    ]

    assert row == f"│ 1 {shown} 7/0 (1.1) live 1.5 s │"


def test_matches_in_play_include_breaks() -> None:
    entries = [entry(), entry(status="break"), entry(status="completed"), entry(match_id="crex_1", status="upcoming")]

    assert "Longstop · 4 matches on 2 sites, 2 in play" in printed(table(entries, {}, TERMINAL))[0]


def test_a_football_match_shows_its_goals_and_its_last_event() -> None:
    card = {"kind": "card", "minute": 90}
    score = {"home": 2, "away": 1, "penalties": {"home": 4, "away": 5}}
    payload = {"incidents": [card], "score": score}

    shown = "\n".join(printed(table([entry()], {"sofascore_7": payload}, TERMINAL)))

    assert "2-1 (4-5)" in shown
    assert "card 90'" in shown
    assert "1.5 s" in shown


def test_an_upcoming_match_shows_neither() -> None:
    shown = printed(
        table([entry(status="upcoming", data_age_seconds=None)], {"sofascore_7": {"incidents": []}}, TERMINAL)
    )

    assert "│ 1 A vs B upcoming - │" in shown
