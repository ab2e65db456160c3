"""`longstop recoveries`: as a table and as JSON."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longstop.cli.main import command_line
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.operations_tables import SqliteAudit
from tests.readers import NOW


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    """A data directory in which a scraper has run."""
    made = DataDirectory.open(tmp_path / "data")
    made.matches_db.touch()
    return made


def run(directory: DataDirectory, *arguments: str) -> str:
    done = CliRunner().invoke(
        command_line(),
        ["recoveries", "--data", str(directory.path), *arguments],
        env={"COLUMNS": "140"},
        catch_exceptions=False,
    )
    assert done.exit_code == 0
    return done.output


def write(directory: DataDirectory, *outcomes: RecoveryOutcome) -> None:
    writer = SqliteAudit(directory.ops_db)
    for number, outcome in enumerate(outcomes):
        recovery = Recovery(
            id=f"r{number}",
            kind=RecoveryKind.RECYCLE,
            trigger="[red]nothing[/] in play was read",
            subject="node-1",
            process="scraper",
            began_at=NOW + timedelta(seconds=number),
            outcome=outcome,
            observed=None if outcome is RecoveryOutcome.PENDING else "crex_M1 was read again",
        )
        asyncio.run(writer.write([recovery]))
    asyncio.run(writer.aclose())


def test_where_nothing_was_done_it_says_so(directory: DataDirectory) -> None:
    assert run(directory) == "No recoveries are recorded.\n"
    assert json.loads(run(directory, "--json")) == []


@pytest.mark.req("MON-9")
def test_the_table_says_what_came_of_each(directory: DataDirectory) -> None:
    write(directory, RecoveryOutcome.RECOVERED, RecoveryOutcome.PENDING)

    table = run(directory)

    assert "crex_M1 was read again" in table
    assert "pending" in table
    # Text from outside is not markup.
    assert "[red]nothing[/]" in table


def test_programs_get_the_newest_first_and_no_more_than_they_want(directory: DataDirectory) -> None:
    write(directory, *[RecoveryOutcome.RECOVERED] * 3)

    found = json.loads(run(directory, "--json", "--limit", "2"))

    assert [each["id"] for each in found] == ["r2", "r1"]
    assert found[0]["outcome"] == "recovered"
