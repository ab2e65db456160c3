"""The verb `parse`, with sources whose views cannot be printed."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from examples.kickoff import KickoffSource
from longstop.cli.main import command_line
from longstop.cli.parse import parse
from longstop.errors import LongstopError, UsageError
from longstop.model.match import MatchStatus
from longstop.model.source_queries_and_answers import LIVE, Keys, Listing, ListingEntry, Query

SOURCE = f"{__name__}:ScriptedSource"


class ScriptedSource(KickoffSource):
    """Returns whatever a test wants."""

    view: Callable[[], Any]

    def parse(self, query: Query, body: bytes) -> Any:
        return type(self).view()


@pytest.fixture
def body(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LONGSTOP_SOURCES", str(tmp_path / "none.yaml"))
    file = tmp_path / "body"
    file.write_bytes(b"{}")
    return file


def _endless() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    "view",
    [None, _endless(), {(1, 2): 3}, {"name": "\ud800"}, 10**5_000, [math.nan], object()],
    ids=["none", "endless", "tuple key", "surrogate", "huge", "nan", "object"],
)
def test_a_view_that_cannot_be_printed_as_json_is_one_sentence(
    body: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], view: Any
) -> None:
    monkeypatch.setattr(ScriptedSource, "view", lambda: view, raising=False)

    with pytest.raises(UsageError, match="returned a view that is not a msgspec Struct of its sport that JSON can"):
        parse(SOURCE, LIVE, body)

    assert capsys.readouterr().out == ""


def test_a_system_error_in_a_source_names_its_file_and_line(body: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("no cache")

    monkeypatch.setattr(ScriptedSource, "view", fail, raising=False)

    with pytest.raises(LongstopError, match=r"parse\(\) failed: OSError\('no cache'\) in cli/test_parse.py, line "):
        parse(SOURCE, LIVE, body)
    with pytest.raises(UsageError, match="the kinds are list, live"):
        parse(SOURCE, "nonsense", body)


def _entry(source_id: str, *suspicions: str) -> ListingEntry:
    return ListingEntry(source_id=source_id, status=MatchStatus.LIVE, headline="", suspicions=suspicions)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (_entry("7"), []),
        (_entry("7", "the score is 2 and 3"), ["the score is 2 and 3"]),
        (Listing(boards=(_entry("7"), _entry("8", "the score is 2 and 3"))), ["8: the score is 2 and 3"]),
        (Keys(), []),
    ],
    ids=["clean", "suspect", "list", "view without the field"],
)
def test_why_a_body_may_be_altered_is_printed_beside_the_view(
    body: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], view: Any, expected: list[str]
) -> None:
    monkeypatch.setattr(ScriptedSource, "view", lambda: view, raising=False)

    parse(SOURCE, LIVE, body)

    assert json.loads(capsys.readouterr().out)["suspicions"] == expected


def test_the_usage_names_its_arguments_in_capitals() -> None:
    usage = CliRunner().invoke(command_line(), ["parse", "--help"]).stdout

    assert re.search(r"parse \[OPTIONS\] \W*SOURCE\W+KIND\W+FILE", usage)
