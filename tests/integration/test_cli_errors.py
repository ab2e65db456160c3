"""`longstop errors`: as a table and as JSON, with and without a running scraper."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from longstop.cli.main import command_line
from longstop.errors import UsageError
from longstop.model.episode import Episode, EpisodeChange, ErrorSeen, ErrorType, Resolution, ResolutionMethod
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.operations_tables import SqliteErrors
from tests.readers import NOW


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory in which a scraper has run."""
    directory = DataDirectory.open(tmp_path / "data")
    directory.matches_db.touch()
    return directory.path


def run(data: Path, *arguments: str) -> str:
    done = CliRunner().invoke(command_line(), ["errors", "--data", str(data), *arguments], env={"COLUMNS": "100"})
    if done.exception is not None:
        raise done.exception
    return done.output


def listed(data: Path, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(data, "--json", *arguments))
    return found


def met(number: int, message: str = "late") -> dict[Episode, EpisodeChange]:
    moment = NOW + timedelta(seconds=number)
    episode = Episode(f"crex_A{number}", "abc")
    error = ErrorSeen(
        episode=episode,
        scraper_id="node-1",
        match_id=number,
        timestamp=moment,
        error_type=ErrorType.NETWORK,
        error_class="FetchTimeout",
        error_message=message,
        source="crex",
        operation="poll",
    )
    return {episode: EpisodeChange(error=error, count=number, last_seen=moment)}


def over(number: int) -> dict[Episode, EpisodeChange]:
    end = Resolution(at=NOW, method=ResolutionMethod.RESTART)
    return {Episode(f"crex_A{number}", "abc"): EpisodeChange(resolution=end)}


@pytest.fixture
def writer(data: Path) -> SqliteErrors:
    """The scraper's side, which stays open: three errors, of which the first is resolved."""
    writer = SqliteErrors(data / "ops.db")
    asyncio.run(writer.write(met(1) | met(2) | met(3)))
    asyncio.run(writer.write(over(1)))
    return writer


def test_the_table_shows_the_newest_first_with_their_state(data: Path, writer: SqliteErrors) -> None:
    text = run(data)

    assert text.index("crex_A3") < text.index("crex_A2") < text.index("crex_A1")
    assert text.count("FetchTimeout: late") == 3
    assert text.count("open") == 2
    assert "restart" in text
    asyncio.run(writer.aclose())


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        ([], [3, 2, 1]),
        (["--open"], [3, 2]),
        (["--limit", "1"], [3]),
        (["--match", "2"], [2]),
        (["--match", "crex_A1"], [1]),
        (["--match", "crex_A1", "--open"], []),
    ],
)
def test_the_options_choose(data: Path, writer: SqliteErrors, arguments: list[str], ids: list[int]) -> None:
    assert [entry["id"] for entry in listed(data, *arguments)] == ids
    asyncio.run(writer.aclose())


def test_programs_get_every_column(data: Path, writer: SqliteErrors) -> None:
    entry = listed(data, "--match", "1")[0]

    assert entry == {
        "id": 1,
        "scraper_id": "node-1",
        "match_id": 1,
        "ref": "crex_A1",
        "source": "crex",
        "timestamp": "2026-11-15T12:00:01.000Z",
        "last_seen": "2026-11-15T12:00:01.000Z",
        "count": 1,
        "error_type": "network",
        "error_class": "FetchTimeout",
        "error_message": "late",
        "signature": "abc",
        "stack_trace": None,
        "url": None,
        "operation": "poll",
        "retry_attempt": 0,
        "snapshot": None,
        "resolved": True,
        "resolution_time": "2026-11-15T12:00:00.000Z",
        "resolution_method": "restart",
    }
    asyncio.run(writer.aclose())


def test_an_error_is_marked_as_dealt_with_while_the_scraper_runs(data: Path, writer: SqliteErrors) -> None:
    said = run(data, "--resolve", "2")

    assert said == "Error 2 is resolved.\n"
    assert listed(data, "--match", "2")[0]["resolution_method"] == "manual"
    asyncio.run(writer.write(met(2)))  # the scraper's file is as good as before
    assert [entry["resolved"] for entry in listed(data, "--match", "2")] == [False, True]
    asyncio.run(writer.aclose())


@pytest.mark.parametrize("error_id", ["1", "99", "9" * 22])
def test_what_is_not_open_cannot_be_marked(data: Path, writer: SqliteErrors, error_id: str) -> None:
    asyncio.run(writer.aclose())

    with pytest.raises(UsageError, match=f"there is no open error {error_id}"):
        run(data, "--resolve", error_id)


def test_text_from_a_site_is_neither_markup_nor_control_characters(data: Path) -> None:
    writer = SqliteErrors(data / "ops.db")
    asyncio.run(writer.write(met(1, "[bold]\x1b[2J\r\nforged")))
    asyncio.run(writer.aclose())

    text = run(data)

    assert r"[bold]\x1b[2J\r\nforged" in text
    assert "\x1b" not in text


def test_where_nothing_went_wrong_one_sentence_says_so_and_no_file_is_made(data: Path) -> None:
    assert run(data) == "No errors are recorded.\n"
    assert run(data, "--open") == "No matching errors are recorded.\n"
    assert listed(data) == []
    with pytest.raises(UsageError):
        run(data, "--resolve", "1")
    assert not (data / "ops.db").exists()


def test_a_directory_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere does not exist"):
        run(tmp_path / "nowhere")
