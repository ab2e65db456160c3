"""The tables of verbs, also on a narrow terminal."""

import sys
from datetime import timedelta
from io import StringIO

import pytest
from msgspec.structs import replace
from rich.console import Console, RenderableType

from longstop.cli.maintenance import _list
from longstop.cli.match_health_and_error_tables import (
    errors_table,
    health_log_table,
    matches_table,
    recoveries_table,
)
from longstop.cli.output import wrapped
from longstop.doctor.checks import Check, CheckStatus
from longstop.model.episode import Episode, ErrorType, StoredError
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.storage.base import HealthRow
from tests.readers import NOW

ENTRY = {
    "matchId": 1234,
    "match_id": "espncricinfo_1234567",
    "title": "Lingmoor Lanterns vs Brackenshaw United, third Twenty20 international, day and night",
    "status": "completed",
    "phase": "discovered",
    "sync": "recovering",
    "data_age_seconds": 12345.6,
}


def shown(table: RenderableType, width: int) -> str:
    """Return the words of a table, and check that it fits."""
    console = Console(file=StringIO(), width=width, color_system=None)
    console.print(table)
    assert isinstance(console.file, StringIO)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    return text


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("file", [StringIO(), Terminal()])
def test_control_characters_of_a_message_reach_the_terminal_as_escapes(file: StringIO) -> None:
    assert wrapped("source \x1b[31mred\x07 of\nsources.yaml", file) == "source \\x1b[31mred\\x07 of\nsources.yaml"


def test_text_wraps_at_words_with_a_hanging_indent_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    text = "  degraded: crex_1 is stale\nrun a-very-long-word-that-does-not-fit"

    assert wrapped(text, StringIO()) == text
    assert wrapped(text, Terminal(), hanging=4) == (
        "  degraded: crex_1 is\n    stale\nrun\n    a-very-long-word-that-does-not-fit"
    )


def test_the_checks_of_doctor_wrap_below_their_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys, "stdout", Terminal())
    found, advice = "no site is enabled in sources.yaml", "name who permitted scraping"

    listed = _list([Check(name="sources", verdict=CheckStatus.MISSING, found=found, advice=advice)])

    assert listed.plain == (
        "missing sources  no site is enabled in\n"
        "                 sources.yaml\n"
        "                 → name who permitted\n"
        "                   scraping\n"
    )


def cells(text: str) -> str:
    """Return what the cells say, column by column, each cell as one line."""
    rows = [line.strip("│").split("│") for line in text.splitlines() if line.startswith("│")]
    return "\n".join(" ".join(cell.strip() for cell in column if cell.strip()) for column in zip(*rows, strict=True))


@pytest.mark.parametrize("width", [80, 100, 200])
def test_the_table_of_matches_cuts_neither_opponents_nor_ids(width: int) -> None:
    said = cells(shown(matches_table([ENTRY], (), width), width))

    for each in ("1234", "espncricinfo_1234567", ENTRY["title"], "completed", "recovering", "12345.6"):
        assert str(each) in said


@pytest.mark.parametrize(
    ("status", "sync", "age", "state"),
    [
        ("live", "in_sync", 59.0, "in_sync"),
        ("live", "in_sync", 61.0, "stale"),
        ("break", "in_sync", 300.0, "stale"),
        ("live", "recovering", 61.0, "recovering"),
        ("live", "unwatched", None, "unwatched"),
        ("upcoming", "in_sync", 61.0, "in_sync"),
        ("completed", "in_sync", 9000.0, "in_sync"),
    ],
)
def test_a_match_in_play_with_old_data_is_stale(status: str, sync: str, age: float | None, state: str) -> None:
    entry = {**ENTRY, "status": status, "sync": sync, "data_age_seconds": age}

    assert cells(shown(matches_table([entry], (), 120), 120)).splitlines()[4] == state


def test_a_paused_match_is_shown_as_paused() -> None:
    entry = {**ENTRY, "status": "live", "sync": "in_sync"}

    assert cells(shown(matches_table([entry], {1234}, 120), 120)).splitlines()[4] == "paused"


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_of_errors_cuts_neither_the_match_nor_the_reason(width: int) -> None:
    error = StoredError(
        id=12345,
        episode=Episode("espncricinfo_1234567", "abc"),
        scraper_id="node-1",
        timestamp=NOW,
        last_seen=NOW,
        count=1234,
        error_type=ErrorType.NETWORK,
        error_class="FetchTimeout",
        error_message="the site did not answer within 10 s",
        source="espncricinfo",
        operation="poll",
        match_id=7,
        resolution=None,
    )

    said = cells(shown(errors_table([error], width), width))

    assert "espncricinfo_1234567" in said
    assert "FetchTimeout: the site did not answer within 10 s" in said


def test_the_table_of_recoveries_cuts_nothing_at_80_columns() -> None:
    recovery = Recovery(
        id="r1",
        kind=RecoveryKind.RECYCLE,
        trigger="no successful poll of a match in play for 92 s",
        subject="espncricinfo",
        process="scraper",
        began_at=NOW - timedelta(minutes=1),
        duration_seconds=4.2,
        outcome=RecoveryOutcome.NOT_RECOVERED,
        observed="espncricinfo_1234567 was not read within 120 s",
    )

    said = cells(shown(recoveries_table([recovery]), 80)).replace(" ", "")

    for each in (recovery.trigger, recovery.subject, recovery.observed):
        assert str(each).replace(" ", "") in said


@pytest.mark.parametrize("width", [80, 100, 200])
def test_the_health_log_names_matches_and_nodes_on_every_terminal(width: int) -> None:
    node = HealthRow(
        scraper_id="node-0123456789ab",
        timestamp=NOW,
        health_status="recovering",
        error_count=12345,
        memory_mb=12345.6,
        cpu_percent=123.4,
        update_latency_ms=12345,
        last_update_age_seconds=12345.6,
    )
    rows = [node, replace(node, match_id=1, ref="crex_11HD")]

    text = shown(health_log_table(rows, width), width)

    # A narrow cell shows the end of a node's id on a second line.
    assert "│ node-01234567" in text
    for each in ("│ crex_11HD ", "│ recovering ", "│ 12345 ", "│ 12345.6 "):
        assert each in text
