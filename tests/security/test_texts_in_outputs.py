"""Every record that can be shown, with hostile texts in all of its fields, on every other way out."""

import importlib
import io
import json
import pkgutil
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace
from rich.console import ConsoleDimensions
from typer.testing import CliRunner

import longstop.sources
import longstop.sports.cricket.model
import longstop.sports.cricket.payload
import longstop.sports.football.model
import longstop.sports.football.payload
import longstop.telemetry.events
from examples.kickoff import KickoffSource
from longstop.api.health_documents import StatusSnapshot
from longstop.api.match_documents import match_entry
from longstop.cli.health_errors_recoveries import StatusReader
from longstop.cli.main import command_line
from longstop.cli.output import TextConsole
from longstop.clock import Moment, SystemClock
from longstop.doctor.checks import Check
from longstop.model import source_queries_and_answers
from longstop.model.match import MatchRow
from longstop.model.polling_status import MonitoringRecord
from longstop.model.scraper_report import NodeBeat
from longstop.sports.cricket.model import CricketState, EventListPage, SeenEvent, SeenWicket
from longstop.sports.football.model import FootballState
from longstop.storage.directory import DataDirectory
from longstop.storage.error_pages_and_screenshots import ErrorPages, ErrorScreenshots
from longstop.supervision.health_verdict import assess_health
from longstop.telemetry.alerts import alert_of
from longstop.telemetry.bus import Bus
from longstop.telemetry.errors_table_and_match_logs import LOG, MatchLogs
from longstop.telemetry.events import Severity, Telemetry
from longstop.telemetry.log import LogSink
from longstop.telemetry.webhook import Post, WebhookSink
from longstop_lab.report import DemoReport
from longstop_lab.table import summary, table
from longstop_lab.verify import FileReport
from tests.readers import ManualClock, a_match
from tests.security.hostile_texts import (
    FORGED,
    HOSTILE,
    HOSTILE_IN_MEMORY,
    NOW,
    filled,
    raw,
    records_of,
    subclasses,
    texts_in,
    without_styles,
)

TEXT = HOSTILE_IN_MEMORY + FORGED
for module in pkgutil.iter_modules(longstop.telemetry.events.__path__, "longstop.telemetry.events."):
    importlib.import_module(module.name)
EVENTS = [each for each in subclasses(Telemetry) if hasattr(each, "name")]
#: What the parsers and the pipeline pass on; the state of a match is not printed.
VIEWS = [
    each
    for each in records_of(
        source_queries_and_answers,
        longstop.sports.cricket.model,
        longstop.sports.cricket.payload,
        longstop.sports.football.model,
        longstop.sports.football.payload,
    )
    if not issubclass(each, (CricketState, FootballState)) and each.__name__ not in ("Body", "Observation")
]


def named(kind: type) -> str:
    return kind.__name__


class ScriptedSource(KickoffSource):
    """Returns whatever a test wants."""

    view: Struct

    def parse(self, query: Any, body: bytes) -> Any:
        return type(self).view


def a_view(kind: type[Struct], text: str) -> Struct:
    if kind is not EventListPage:
        return filled(kind, text)
    # msgspec cannot inspect its items: two records without a tag.
    items = (filled(SeenEvent, text), filled(SeenWicket, text))
    return EventListPage(items=items, next_before=text, detached=items[:1], teams={text: text})


def run(*arguments: str, **environ: str) -> str:
    done = CliRunner().invoke(command_line(), [*arguments], env={"COLUMNS": "140", **environ})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


# --- parse ---------------------------------------------------------------


@pytest.mark.parametrize("kind", VIEWS, ids=named)
def test_parse_prints_every_view_with_the_same_texts_and_none_of_them_raw(
    kind: type[Struct], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = a_view(kind, HOSTILE + FORGED)
    monkeypatch.setattr(ScriptedSource, "view", view, raising=False)
    body = tmp_path / "body"
    body.write_bytes(b"{}")

    text = run("parse", f"{__name__}:ScriptedSource", "live", str(body), LONGSTOP_SOURCES=str(tmp_path / "none"))

    assert raw(text) == set()
    printed = json.loads(text)
    del printed["suspicions"]
    expected = json.loads(json.dumps(msgspec.to_builtins(view)))
    expected.pop("suspicions", None)
    assert printed == expected


# --- log lines, match logs, alerts ---------------------------------------------------------------


@pytest.mark.parametrize("kind", EVENTS, ids=named)
def test_every_event_is_one_line_of_the_log_without_a_raw_character(kind: type[Telemetry]) -> None:
    stream = io.StringIO()

    LogSink(process="scraper", level=Severity.DEBUG, clock=ManualClock(), stream=stream).take(filled(kind, TEXT))

    assert raw(stream.getvalue()) == set()
    assert stream.getvalue().count("\n") == 1
    assert json.loads(stream.getvalue())["event"] == kind.name


async def test_a_match_log_has_every_event_of_a_match_without_a_raw_character(tmp_path: Path) -> None:
    logs = MatchLogs(tmp_path, clock=ManualClock())
    events = [filled(kind, TEXT) for kind in EVENTS if "match_id" in kind.__struct_fields__]

    async with logs.writing(Bus()):
        for each in events:
            logs.take(replace(each, match_id=1))

    text = (tmp_path / "1" / LOG).read_text(encoding="utf-8")
    assert raw(text) == set()
    assert HOSTILE in next(texts for texts in texts_in([json.loads(text.split("\n")[0])]) if "red]" in texts)
    assert {json.loads(line)["event"] for line in text.splitlines()} == {
        kind.name for kind in EVENTS if "match_id" in kind.__struct_fields__ and kind.severity is not Severity.DEBUG
    }


async def _body_of(event: Telemetry) -> bytes:
    """Return what the webhook sends for an event; empty if it is no alert."""
    sent: list[bytes] = []

    async def post(body: bytes, _headers: Mapping[str, str]) -> None:
        sent.append(body)

    @asynccontextmanager
    async def open_post(_url: str) -> AsyncIterator[Post]:
        yield post

    hook = WebhookSink("http://hook.test", node="node", clock=ManualClock(), open_post=open_post)
    hook.take(event)
    async with hook.delivering(Bus()):
        pass
    return b"".join(sent)


@pytest.mark.parametrize("kind", EVENTS, ids=named)
async def test_no_text_of_an_alert_is_raw_once_its_receiver_has_read_it(kind: type[Telemetry]) -> None:
    event = filled(kind, TEXT)

    body = await _body_of(event)

    if (alert := alert_of(event)) is not None and not alert.is_resolved:
        received = list(texts_in(json.loads(body)))
        assert raw(body.decode()) == set()
        assert raw("".join(received)) == set()
        assert "\n" not in "".join(received)


# --- top, demo, verify, doctor ---------------------------------------------------------------


@pytest.mark.parametrize("style", [{}, {"FORCE_COLOR": "1", "TERM": "xterm"}], ids=["pipe", "terminal"])
def test_top_shows_ids_and_reasons_that_are_hostile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, style: dict[str, str]
) -> None:
    now = Moment.of(SystemClock())
    beat = replace(filled(NodeBeat, TEXT), grade="failing", is_over=False, beat_at=now.wall, beat_monotonic=None)
    records = [replace(filled(MonitoringRecord, TEXT), last_poll_at=now.wall)]
    verdict = assess_health([beat], records, now)
    snapshot = replace(
        filled(StatusSnapshot, TEXT),
        verdict=replace(verdict, reasons=(TEXT,), notes=(TEXT,)),
        beats=[beat],
        records=records,
        taken_at=now,
    )

    async def read(_reader: StatusReader) -> StatusSnapshot:
        return snapshot

    monkeypatch.setattr(StatusReader, "read", read)
    DataDirectory.open(tmp_path).matches_db.touch()

    text = run("top", "--once", "--data", str(tmp_path), **style)

    assert raw(without_styles(text)) == set()
    assert r"\u202e" in re.sub(r"\s", "", text)


@pytest.mark.parametrize("width", [60, 140])
@pytest.mark.parametrize("payload", ["CricketMatchV1", "FootballEventV1"])
def test_the_table_of_the_demo_shows_hostile_names_and_events(width: int, payload: str) -> None:
    kind = next(each for each in VIEWS if each.__name__ == payload)
    match = replace(a_match(), title=TEXT)
    entry = match_entry(match, None, Moment.of(SystemClock()), has_findings=False)
    console = TextConsole(file=io.StringIO(), width=width, force_terminal=True)

    shown = msgspec.to_builtins(filled(kind, TEXT))
    if "incidents" in shown:
        shown["incidents"] = [{"kind": TEXT, "period": TEXT, "minute": 1}]
    shown = table([entry], {entry["match_id"]: shown}, ConsoleDimensions(width, 24))
    console.print(shown)

    text = without_styles(console.file.getvalue())  # type: ignore[attr-defined]
    assert raw(text) == set()
    assert {len(line) for line in text.splitlines()} == {width}


def test_the_report_of_the_demo_shows_hostile_details() -> None:
    report = replace(filled(DemoReport, TEXT), lost=1)
    console = TextConsole(file=io.StringIO(), width=100_000)

    console.print(summary(report))

    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert raw(text) == set()
    assert "\nlongstop: all is well" not in text


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_verify_prints_hostile_differences(monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]) -> None:
    async def verify_file(_path: Path, *, kill_every: float | None) -> FileReport:
        return filled(FileReport, HOSTILE + FORGED)

    monkeypatch.setattr("longstop_lab.verify.verify_file", verify_file)

    text = run("verify", "match.json", *options)

    assert raw(text) == set()
    assert not re.search("^longstop: all is well", text, re.MULTILINE)
    assert "[red]b[/red]" in text


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_doctor_prints_hostile_findings_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setattr("longstop.doctor.measure_and_check.examine", lambda _: [filled(Check, HOSTILE + FORGED)])

    text = run("doctor", *options)

    assert raw(text) == set()
    assert not re.search("^longstop: all is well", text, re.MULTILINE)


# --- file names ---------------------------------------------------------------


def test_names_of_saved_pages_and_pictures_have_nothing_of_a_text_but_letters_and_digits(tmp_path: Path) -> None:
    stores = (ErrorPages(tmp_path / "storage" / "pages"), ErrorScreenshots(tmp_path / "storage" / "errors", "crex"))
    for text in (TEXT, HOSTILE, "../../" + ESCAPED, FORGED, "\u202egpj.exe", "\u200b" * 9):
        for store in stores:
            path = store.keep(text, b"body", datetime(2026, 3, 7, tzinfo=NOW.tzinfo))

            assert path is not None
            assert re.fullmatch(r"[a-z/]+/20260307T000000000Z_[A-Za-z0-9-]+\.(html|png)", path)


ESCAPED = "\x1b]0;title\x07"


# --- a new record or way out is covered, too ---------------------------------------------------------------


def test_all_texts_of_a_record_are_hostile_in_these_tests() -> None:
    texts = list(texts_in(msgspec.to_builtins(filled(MatchRow, "x"))))

    assert {"x", "upcoming"} >= set(texts) - set(MatchRow.__struct_fields__) - {
        *("source", "source_id", "discovered", "2026-03-07T14:00:00Z")
    }


def _calls(folder: str, pattern: str) -> Iterator[str]:
    for path in sorted((Path(__file__).parents[2] / "src").glob(folder)):
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if re.search(pattern, line):
                yield f"{path.name}:{number}"


def test_verbs_print_through_one_module_only() -> None:
    printing = r"(?<![\w.])print\(|\bConsole\(|sys\.std(out|err)\.write|typer\.(echo|secho)\("

    found = [*_calls("longstop/cli/*.py", printing), *_calls("longstop_lab/*.py", printing)]

    assert {each.partition(":")[0] for each in found} <= {"output.py"}
