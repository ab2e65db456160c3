"""A data directory in which every text of a site is hostile, and all verbs that show it."""

import asyncio
import json
import re
from contextlib import aclosing
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from longstop.cli.main import command_line
from longstop.clock import SystemClock
from longstop.model.command_and_standing_order import StandingKind
from longstop.model.episode import Episode, EpisodeChange, ErrorSeen
from longstop.model.event import Event, EventKey
from longstop.model.match import MatchRef, MatchStatus, Phase
from longstop.model.polling_status import MonitoringRecord
from longstop.model.recovery import Recovery, RecoveryOutcome
from longstop.model.scraper_report import NodeBeat
from longstop.model.snapshot import canonical
from longstop.sports.registry import sports
from longstop.storage.base import HealthRow
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotWriter
from longstop.storage.sqlite.matches import SqliteMatchStore
from longstop.storage.sqlite.operations_tables import SqliteAudit, SqliteCommands, SqliteErrors, SqliteHealthLog
from tests.contract.stores import update
from tests.readers import a_hot_row
from tests.security.hostile_texts import FORGED, HOSTILE, filled, raw, texts_in, without_styles

SPORTS = list(sports())
TEXT = HOSTILE.replace("\0", "") + FORGED
TABLES = ("matches", "events 1", "events 2", "errors", "recoveries", "health", "health --history", "top --once")
JSON = tuple(f"{verb} --json" for verb in TABLES[:-1])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = DataDirectory.open(tmp_path_factory.mktemp("hostile") / "data")
    asyncio.run(_write(directory))
    return directory.path


@pytest.fixture(autouse=True)
def _slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the heartbeat be of the start of these tests, however long they wait for each other."""
    monkeypatch.setattr("longstop.supervision.health_verdict.SILENT_SECONDS", 3600.0)


async def _write(directory: DataDirectory) -> None:
    now = SystemClock().now()  # the verbs read the real clock
    async with aclosing(await SqliteMatchStore.open(directory.matches_db)) as store:
        for sport in sports().values():
            ref = MatchRef("crex", sport.name)
            match = await store.claim((await store.register(ref, TEXT, None, now, sport=sport.name)).match_id, "node")
            events = [
                Event(
                    key=EventKey(name, (1,) * len(kind.fields)),
                    content=filled(kind.content, TEXT),
                    source_event_id=TEXT,
                    position=1,
                )
                for name, kind in sport.kinds.items()
            ]
            await store.save_update(update(match.match_id, *events, epoch=match.epoch, title=TEXT))
    hot = SqliteHotWriter(directory.hot_db, on_failure=lambda error: pytest.fail(str(error)))
    beat = replace(filled(NodeBeat, TEXT), beat_monotonic=None, beat_at=now, is_over=False, grade="degraded")
    hot.beat(replace(beat, breakers=tuple(replace(note, scope="target") for note in beat.breakers)))
    for number, name in enumerate(SPORTS, start=1):
        record = filled(MonitoringRecord, TEXT)
        of_match = replace(record, match_id=number, ref=MatchRef("crex", name), last_poll_at=now, not_before=None)
        hot.put(a_hot_row(replace(of_match, status=MatchStatus.LIVE, phase=Phase.ACTIVE), canonical({"title": TEXT})))
    await hot.aclose()
    async with aclosing(SqliteErrors(directory.ops_db)) as errors:
        error = replace(filled(ErrorSeen, TEXT), episode=Episode(f"crex_{SPORTS[0]}", "abc"), match_id=1)
        await errors.write({error.episode: EpisodeChange(error=error, count=1, last_seen=now)})
    async with aclosing(SqliteAudit(directory.ops_db)) as audit:
        await audit.write([replace(filled(Recovery, TEXT), began_at=now, outcome=RecoveryOutcome.NOT_RECOVERED)])
    async with aclosing(SqliteCommands(directory.ops_db, SystemClock())) as commands:
        await commands.put_order(StandingKind.PAUSED_SOURCE, "crex", f"cli: {TEXT}")
    async with aclosing(SqliteHealthLog(directory.ops_db)) as log:
        row = replace(filled(HealthRow, TEXT), timestamp=now, health_status="healthy")
        await log.write([replace(row, match_id=1, ref=f"crex_{SPORTS[0]}")])


def printed(data: Path, verb: str, **environ: str) -> str:
    done = CliRunner().invoke(command_line(), [*verb.split(), "--data", str(data)], env=environ)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


@pytest.mark.parametrize("width", ["60", "140"])
@pytest.mark.parametrize("verb", TABLES)
def test_no_table_of_a_verb_has_a_raw_character(data: Path, verb: str, width: str) -> None:
    text = printed(data, verb, COLUMNS=width)

    assert raw(text) == set()
    if verb != "health --history":
        assert r"\x1b" in re.sub(r"[\s│┃]", "", text)


@pytest.mark.parametrize("verb", TABLES)
def test_a_terminal_gets_our_colours_and_nothing_of_a_site(data: Path, verb: str) -> None:
    text = printed(data, verb, COLUMNS="140", FORCE_COLOR="1", TERM="xterm")

    assert raw(without_styles(text)) == set()
    assert "link" not in text or "[2J" in text.replace("\n", "")


@pytest.mark.parametrize("verb", JSON)
def test_json_of_a_verb_has_the_same_texts_without_a_raw_character(data: Path, verb: str) -> None:
    text = printed(data, verb)

    assert raw(text) == set()
    documents = [json.loads(line) for line in text.splitlines()]
    if verb.startswith(("matches", "events", "errors", "recoveries")):
        assert any(TEXT in each for each in texts_in(documents))


def test_markup_in_a_name_is_shown_and_not_obeyed(data: Path) -> None:
    assert "[red]b[/red]" in re.sub(r"[\s│]", "", printed(data, "matches", COLUMNS="140"))


def test_a_line_break_in_a_text_is_visible_and_breaks_no_line(data: Path) -> None:
    for verb in TABLES[:-1]:  # the columns of top are too narrow to be read like this
        text = re.sub(r"[\s│]", "", printed(data, verb, COLUMNS="140"))

        assert "longstop:alliswell" not in text.replace(r"\r\nlongstop:alliswell", ""), verb


def test_every_kind_of_event_of_every_sport_is_shown(data: Path) -> None:
    for number, sport in enumerate(sports().values(), start=1):
        listed = printed(data, f"events {number} --json").splitlines()

        assert {json.loads(line)["kind"] for line in listed} == set(sport.kinds)
