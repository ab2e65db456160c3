"""A stop leaves each database as one complete file, also while something still reads it."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path

import apsw
import httpx
import pytest

from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader
from longstop.supervision.exit_codes import Exit
from tests.chaos.live_deployment import live_deployment, until
from tests.chaos.stored_directory import (
    EVENTS,
    FIRST,
    SECOND,
    Site,
    assert_no_trace,
    counting_site,
    environment,
    events_of,
    fill,
    orders_of,
    run,
    running,
)
from tests.chaos.test_backup import events as all_events

pytestmark = pytest.mark.timeout(180)

FILES = ("matches.db", "ops.db", "hot.db")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with counting_site() as counting:
        yield counting


@pytest.fixture
async def environ(tmp_path: Path, site: Site) -> dict[str, str]:
    await fill(tmp_path / "data")
    return environment(tmp_path, site)


def single_files(data: Path, target: Path) -> Path:
    """Copy the three databases, without the files beside them."""
    target.mkdir()
    for name in FILES:
        shutil.copy(data / name, target / name)
    return target


def rows_in(path: Path, table: str) -> int:
    """Return the number of rows; a write-ahead log is not read."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with closing(apsw.Connection(f"file:{path}?immutable=1", flags=flags)) as connection:
        return len(connection.execute(f"SELECT * FROM {table}").fetchall())  # noqa: S608, our own names


async def assert_complete(data: Path, target: Path) -> None:
    """Check that the three files alone have everything."""
    alone = single_files(data, target)
    assert rows_in(alone / "matches.db", "event_versions") == 2 * EVENTS
    assert rows_in(alone / "ops.db", "standing_orders") == 1
    assert (rows_in(alone / "hot.db", "views"), rows_in(alone / "hot.db", "beats")) == (2, 1)
    assert {ref: len(events) for ref, events in (await events_of(alone)).items()} == {
        str(FIRST): EVENTS,
        str(SECOND): EVENTS,
    }
    assert await orders_of(alone) == {("paused_source", "crex")}


async def test_a_copy_of_the_single_files_after_a_live_deployment_has_every_event(tmp_path: Path) -> None:
    async with live_deployment(matches=2) as live:
        before = len(live.logged("poll.succeeded"))
        await until(lambda: len(live.logged("poll.succeeded")) > before + 5, "more is read")
        data = live.deployment.data
        live.up.terminate()
        await until(lambda: not live.up.is_running() or live.up.status() == "zombie", "it ends")
        left = [path.name for path in data.glob("*.db-*")]
        whole = all_events(data)
        alone = single_files(data, tmp_path / "alone")
        copied = all_events(alone)

    assert sum(map(len, whole.values())) > 0
    assert copied == whole
    assert left == []


async def test_up_leaves_complete_single_files(environ: dict[str, str], tmp_path: Path) -> None:
    async with running(environ, tmp_path / "log") as up:
        await up.until_healthy()
        ended = await up.stop()

    assert ended == Exit.DONE
    assert [each.name for each in (tmp_path / "data").glob("*.db-*")] == []
    await assert_complete(tmp_path / "data", tmp_path / "alone")


async def test_a_scraper_alone_leaves_complete_single_files_while_an_api_reads_them(
    environ: dict[str, str], tmp_path: Path
) -> None:
    DataDirectory.open(tmp_path / "data")
    async with (
        running(environ, tmp_path / "api.log", verb="api") as api,
        running(environ, tmp_path / "log", verb="scraper") as scraper,
    ):
        await api.until_healthy()
        ended = await scraper.stop()
        await assert_complete(tmp_path / "data", tmp_path / "alone")

    assert ended == Exit.DONE


async def test_a_stop_during_a_long_read_of_the_api_leaves_complete_files(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with running(environ, tmp_path / "log") as up:
        await up.until_healthy()
        token = await up.token()
        async with httpx.AsyncClient(
            base_url=up.api, trust_env=False, headers={"Authorization": f"Bearer {token}"}
        ) as client:
            reads = [
                asyncio.create_task(client.get(f"/cricket-data/match-info/{FIRST}/events", params={"current": "true"}))
                for _ in range(20)
            ]
            await asyncio.sleep(0.01)
            ended = await up.stop()
            await asyncio.gather(*reads, return_exceptions=True)

    assert ended == Exit.DONE
    await assert_complete(tmp_path / "data", tmp_path / "alone")


async def test_a_reader_that_stays_is_named_and_nothing_is_lost(environ: dict[str, str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running(environ, tmp_path / "log") as up:
        await up.until_healthy()
        with closing(apsw.Connection(str(data / "matches.db"), flags=apsw.SQLITE_OPEN_READONLY)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM matches").fetchall()
            paused = await up.verb("pause", str(FIRST))
            ended = await up.stop()
        left = up.logged("store.log_left")

    assert paused[0] == 0, paused[1]
    assert ended == Exit.DONE
    assert [each["file"] for each in left if each["process"] == "up"] == ["matches.db"]
    assert {ref: len(events) for ref, events in (await events_of(data)).items()}[str(FIRST)] == EVENTS
    assert_no_trace(up.said)


async def test_a_busy_file_neither_delays_the_others_nor_spoils_the_exit_code(
    environ: dict[str, str], tmp_path: Path
) -> None:
    secret = {"ALERT_WEBHOOK_SECRET": "s" * 32}
    async with (
        silent_webhook() as url,
        running({**environ, **secret, "ALERT_WEBHOOK_URL": url}, tmp_path / "log") as up,
    ):
        await up.until_healthy()
        with ExitStack() as readers:
            for name in FILES:
                flags = apsw.SQLITE_OPEN_READONLY
                reader = readers.enter_context(closing(apsw.Connection(str(tmp_path / "data" / name), flags=flags)))
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM sqlite_master").fetchall()
            paused = await up.verb("pause", str(FIRST))
            await up.kill_scraper()  # an alert that no one answers
            ended = await up.stop()
        left = up.logged("store.log_left")

    assert paused[0] == 0, paused[1]
    assert ended == Exit.DONE
    assert {each["file"] for each in left if each["process"] == "up"} == set(FILES)
    assert_no_trace(up.said)


@asynccontextmanager
async def silent_webhook() -> AsyncIterator[str]:
    """Accept connections, and never answer."""

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(wait, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    server.close()


async def test_a_scraper_that_up_did_not_start_keeps_its_logs(environ: dict[str, str], tmp_path: Path) -> None:
    async with running(environ, tmp_path / "log", verb="scraper") as scraper:
        await until(lambda: bool(scraper.logged("match.claimed", ref=str(SECOND))), "it runs")
        log = tmp_path / "data" / "matches.db-wal"
        size = log.stat().st_size
        async with running(environ, tmp_path / "up.log") as up:
            await until(lambda: bool(up.logged("process.died", process="scraper")), "its scraper meets the lock")
            await up.stop()

        assert size > 0
        assert log.stat().st_size >= size
        await asyncio.sleep(2)
        assert scraper.logged("store.unusable") == []
        assert await scraper.stop() == Exit.DONE
    await assert_complete(tmp_path / "data", tmp_path / "alone")


async def test_after_a_kill_the_next_stop_leaves_complete_files(environ: dict[str, str], tmp_path: Path) -> None:
    async with running(environ, tmp_path / "log") as up:
        await up.until_healthy()
        await up.kill_scraper()
        ended = await up.stop()

    assert ended == Exit.DONE
    await assert_complete(tmp_path / "data", tmp_path / "alone")


async def test_a_copy_of_the_single_files_can_be_started(environ: dict[str, str], tmp_path: Path) -> None:
    async with running(environ, tmp_path / "log") as up:
        await up.until_healthy()
        await up.stop()
    alone = single_files(tmp_path / "data", tmp_path / "alone")
    alone.chmod(0o700)

    async with running({**environ, "LONGSTOP_DATA": str(alone)}, tmp_path / "log-2") as again:
        await again.until_healthy()
        paused = await run({**environ, "LONGSTOP_DATA": str(alone)}, "health")
        async with SqliteHotReaderOf(alone) as hot:
            shown = {str(record.ref): record.is_on_hold for record in await hot.records()}

    assert paused[0] == 0
    assert shown == {str(FIRST): True, str(SECOND): True}


class SqliteHotReaderOf:
    """A reader of the hot view that is closed at the end of a block."""

    def __init__(self, data: Path) -> None:
        self._reader = SqliteHotReader(data / "hot.db")

    async def __aenter__(self) -> SqliteHotReader:
        return self._reader

    async def __aexit__(self, *_: object) -> None:
        await self._reader.aclose()
