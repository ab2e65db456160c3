"""The table of matches on a narrow terminal."""

from io import StringIO

import pytest
from rich.console import Console

from longstop.cli.reading import _matches_table

ENTRY = {
    "matchId": 1234,
    "match_id": "espncricinfo_1234567",
    "title": "A very long title of a match between two teams, third Twenty20 international, day and night",
    "status": "completed",
    "phase": "discovered",
    "sync": "recovering",
    "data_age_seconds": 12345.6,
}


@pytest.mark.parametrize("width", [80, 100, 200])
def test_the_table_of_matches_cuts_titles_but_no_ids(width: int) -> None:
    console = Console(file=StringIO(), width=width, color_system=None)

    console.print(_matches_table([ENTRY], width))

    assert isinstance(console.file, StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) == 5  # the title does not wrap
    for shown in ("1234", "espncricinfo_1234567", "completed", "recovering", "12345.6", "A very"):
        assert shown in lines[3]
