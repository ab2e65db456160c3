"""Damaged and missing files: what is rebuilt, what stops, and what is never lifted by accident."""

import asyncio
import os
import random
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic

import apsw
import pytest

from longstop.storage.directory import DataDirectory
from longstop.supervision.exit_codes import Exit
from tests.acceptance.harness import logged, read_log
from tests.chaos.live_deployment import until
from tests.chaos.stored_directory import (
    EVENTS,
    FIRST,
    SECOND,
    Site,
    assert_no_trace,
    change_text,
    copied,
    copy_database,
    counting_site,
    environment,
    events_of,
    fill,
    one_sentence,
    orders_of,
    overwrite,
    remove_database,
    replace_by_copy,
    replace_by_directory,
    replace_by_text,
    run,
    running,
)

pytestmark = pytest.mark.timeout(180)

Change = Callable[[Path], object]
PAUSED = {("paused_source", "crex")}
#: How soon health is red: heartbeat and poll of the API take a second each.
SOON = 10.0


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory that has run once: two matches, and a source that an operator paused."""

    async def make(folder: Path) -> None:
        await fill(folder / "data")
        async with counting_site() as site, running(environment(folder, site), folder / "log") as first:
            await first.until_healthy()
            assert await first.stop() == Exit.DONE

    folder = tmp_path_factory.mktemp("template")
    asyncio.run(make(folder))
    return folder / "data"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with counting_site() as counting:
        yield counting


@pytest.fixture
def data(template: Path, tmp_path: Path) -> Path:
    return copied(template, tmp_path)


@pytest.fixture
def environ(data: Path, tmp_path: Path, site: Site) -> dict[str, str]:
    return environment(tmp_path, site, data)


def empty(path: Path) -> None:
    remove_database(path)
    path.touch()


def without_tables(path: Path) -> None:
    remove_database(path)
    change_text(path, "PRAGMA journal_mode = WAL")


def overwrite_pages(path: Path) -> None:
    """Overwrite all pages but the first ones, which every process has in memory."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(8192)
        file.write(bytes(size - 8192))


def remove_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def move_store(folder: Path, to: Path) -> None:
    for each in folder.glob("matches.db*"):
        each.rename(to / each.name)


def remove_locks(data: Path) -> None:
    for each in data.glob("*.lock"):
        each.unlink()


def swap(data: Path) -> None:
    for name in ("matches.db", "ops.db"):
        (data / name).rename(data / f"{name}.was")
    (data / "matches.db.was").rename(data / "ops.db")
    (data / "ops.db.was").rename(data / "matches.db")


# --- hot.db: rebuilt --------------------------------------------------------------------------------------------------

HOT_DAMAGE: dict[str, Change] = {
    "a byte of a record": lambda path: change_text(
        path, "UPDATE views SET record = replace(record, '\"match_id\"', '\"match_ie\"')"
    ),
    "text that is not UTF-8": lambda path: change_text(path, "UPDATE views SET record = CAST(x'7bff7d' AS TEXT)"),
    "a byte of a payload": lambda path: change_text(
        path, "UPDATE payloads SET payload = CAST(replace(payload, 'title', 'titlf') AS BLOB)"
    ),
    "its header": lambda path: overwrite(path, 0, b"\xff" * 100),
    "a directory": replace_by_directory,
}


@pytest.mark.parametrize("damage", HOT_DAMAGE)
async def test_a_damaged_hot_view_is_moved_aside_and_rebuilt_with_a_warning(
    environ: dict[str, str], data: Path, tmp_path: Path, damage: str
) -> None:
    HOT_DAMAGE[damage](data / "hot.db")
    listed = await run(environ, "matches")

    async with running(environ, tmp_path / "log") as up:
        await up.until_healthy()
        token = await up.token()
        answers = [await up.asked(f"/cricket-data/match-info/{ref}", token) for ref in (FIRST, SECOND)]
        died = up.logged("process.died")
        [warning] = up.logged("hot_view.rebuilt")
        assert await up.stop() == Exit.DONE

    assert [answer.status_code for answer in answers] == [200, 200]
    assert [answer.json()["title"] for answer in answers] == [str(FIRST), str(SECOND)]
    assert "hot.db" in warning["error_message"]
    assert (data / warning["moved_to"]).exists()
    assert died == []
    assert_no_trace(listed[1] + up.said)


async def test_a_hot_view_behind_a_symbolic_link_is_used_where_it_is(
    environ: dict[str, str], data: Path, tmp_path: Path
) -> None:
    (data / "hot.db").unlink()
    (data / "hot.db").symlink_to(tmp_path / "elsewhere.db")

    async with running(environ, tmp_path / "log") as up:
        await up.until_healthy()
        rebuilt = up.logged("hot_view.rebuilt")

    assert rebuilt == []
    assert (data / "hot.db").is_symlink()
    assert (tmp_path / "elsewhere.db").stat().st_size > 0


HOT_LOSS: dict[str, Change] = {
    "deleted": remove_database,
    "replaced by another file": replace_by_text,
    "without its log": lambda path: path.with_name("hot.db-wal").unlink(),
}


@pytest.mark.parametrize("loss", HOT_LOSS)
async def test_a_hot_view_that_is_lost_while_running_is_back_within_seconds(
    environ: dict[str, str], data: Path, tmp_path: Path, loss: str
) -> None:
    async with running(environ, tmp_path / "log") as up:
        await up.until_healthy()
        token = await up.token()
        HOT_LOSS[loss](data / "hot.db")
        lost_at, codes = monotonic(), set()
        while monotonic() < lost_at + 4:
            codes.add((await up.asked(f"/cricket-data/match-info/{FIRST}", token)).status_code)
            await asyncio.sleep(0.1)
        await up.until_healthy()
        listed = await up.verb("matches", "--json")
        died = up.logged("process.died")
        shown = await up.asked("/health")

    assert codes <= {200, 503}
    assert {each["match_id"] for each in shown.json()["per_match_status"]} == {str(FIRST), str(SECOND)}
    assert listed[0] == 0
    assert listed[1].count('"sync": "recovering"') == 2, "the records of both matches are back"
    assert died == []
    assert_no_trace(up.said + listed[1])


# --- ops.db and matches.db: the start is refused ----------------------------------------------------------------------

OPS_DAMAGE: dict[str, Change] = {
    "its header": lambda data: overwrite(data / "ops.db", 0, b"\xff" * 100),
    "0 bytes": lambda data: empty(data / "ops.db"),
    "no tables": lambda data: without_tables(data / "ops.db"),
    "deleted": lambda data: remove_database(data / "ops.db"),
    "the subject of an order": lambda data: change_text(data / "ops.db", "UPDATE standing_orders SET subject = 'crez'"),
    "both files swapped": swap,
}


@pytest.mark.parametrize("damage", OPS_DAMAGE)
async def test_damaged_orders_stop_the_start_and_no_paused_site_is_read(
    environ: dict[str, str], data: Path, site: Site, damage: str
) -> None:
    OPS_DAMAGE[damage](data)

    ended, said = await run(environ, "up")
    alone, said_alone = await run(environ, "scraper")

    assert site.requests == []
    assert (ended, alone) == (Exit.STORAGE, Exit.STORAGE)
    for text in (one_sentence(said), one_sentence(said_alone)):
        assert "ops.db" in text or damage == "both files swapped"
        assert "longstop restore BACKUP --data" in text
        assert "start without it" in text
    assert_no_trace(said + said_alone)


async def test_orders_of_an_earlier_version_are_protected_by_the_first_start(
    environ: dict[str, str], data: Path, tmp_path: Path, site: Site
) -> None:
    change_text(data / "ops.db", "UPDATE standing_orders SET checksum = NULL")
    async with running(environ, tmp_path / "log", verb="scraper") as scraper:
        await until(lambda: bool(scraper.logged("match.claimed", ref=str(SECOND))), "it runs")
        assert await scraper.stop() == Exit.DONE
    assert scraper.logged("order.unmatched") == []
    change_text(data / "ops.db", "UPDATE standing_orders SET subject = 'crfx'")

    ended, said = await run(environ, "scraper")

    assert ended == Exit.STORAGE
    assert "the order does not have its checksum" in one_sentence(said)
    assert site.requests == []


async def test_an_order_for_a_source_that_is_not_enabled_is_reported(
    environ: dict[str, str], data: Path, tmp_path: Path
) -> None:
    change_text(data / "ops.db", "UPDATE standing_orders SET checksum = NULL, subject = 'crfx'")

    async with running(environ, tmp_path / "log", verb="scraper") as scraper:
        await until(lambda: bool(scraper.logged("match.claimed", ref=str(SECOND))), "it runs")
        [reported] = scraper.logged("order.unmatched")

    assert (reported["kind"], reported["subject"]) == ("paused_source", "crfx")


MATCHES_DAMAGE: dict[str, Change] = {
    "its header": lambda path: overwrite(path, 0, b"\xff" * 100),
    "0 bytes": empty,
    "no tables": without_tables,
    "deleted": remove_database,
}


@pytest.mark.parametrize("damage", MATCHES_DAMAGE)
async def test_a_damaged_store_stops_the_start_with_file_cause_and_command(
    environ: dict[str, str], data: Path, damage: str
) -> None:
    MATCHES_DAMAGE[damage](data / "matches.db")

    ended, said = await run(environ, "up")
    alone, said_alone = await run(environ, "scraper")

    assert (ended, alone) == (Exit.STORAGE, Exit.STORAGE)
    for text in (one_sentence(said), one_sentence(said_alone)):
        assert f"{data}/matches.db" in text
        assert "longstop restore BACKUP --data" in text
        assert "start without it" in text
    assert_no_trace(said + said_alone)


async def test_a_store_that_an_operator_gave_up_on_purpose_starts_empty(
    environ: dict[str, str], data: Path, tmp_path: Path
) -> None:
    remove_database(data / "matches.db")
    (data / "databases").unlink()

    async with running(environ, tmp_path / "log") as up:
        await up.until_healthy()

    assert await orders_of(data) == PAUSED
    assert (data / "databases").exists()


@pytest.mark.parametrize("left", ["nothing", "an empty store", "both empty", "a store without tables", "orders only"])
async def test_a_directory_whose_first_start_was_killed_starts(tmp_path: Path, site: Site, left: str) -> None:
    data = DataDirectory.open(tmp_path / "data")
    if left in ("an empty store", "both empty"):
        data.matches_db.touch()
    if left == "both empty":
        data.ops_db.touch()
    if left == "a store without tables":
        change_text(data.matches_db, "PRAGMA journal_mode = WAL")
    if left == "orders only":
        await fill(data.path)
        remove_database(data.matches_db)

    async with running(environment(tmp_path, site), tmp_path / "log") as up:
        await up.until_health(lambda status, document: document.get("active_scraper_count") == 1)
        assert up.logged("process.died") == []


async def test_a_start_that_is_killed_at_any_moment_can_be_repeated(tmp_path: Path, site: Site) -> None:
    dice, environ = random.Random(7), environment(tmp_path, site)
    for attempt in range(6):
        async with running(environ, tmp_path / f"log-{attempt}", verb="scraper") as scraper:
            with suppress(TimeoutError):
                await asyncio.wait_for(scraper.process.wait(), dice.uniform(0.3, 1.6))
            assert scraper.process.returncode is None, scraper.said
            scraper.process.send_signal(signal.SIGKILL)
            await scraper.process.wait()

    async with running(environ, tmp_path / "log") as up:
        await up.until_health(lambda status, document: document.get("active_scraper_count") == 1)
        assert up.logged("process.died") == []


# --- while running ----------------------------------------------------------------------------------------------------

STORE_LOSS: dict[str, Change] = {
    "deleted": lambda data: remove_database(data / "matches.db"),
    "emptied": lambda data: os.truncate(data / "matches.db", 0),
    "a copy in its place": lambda data: replace_by_copy(data / "matches.db"),
    "without its log": lambda data: (data / "matches.db-wal").unlink(),
    "a directory in its place": lambda data: replace_by_directory(data / "matches.db"),
    "overwritten in place": lambda data: overwrite_pages(data / "matches.db"),
}


@pytest.mark.parametrize("loss", STORE_LOSS)
async def test_a_store_that_is_lost_while_running_is_red_within_seconds(
    environ: dict[str, str], data: Path, tmp_path: Path, loss: str
) -> None:
    async with running(environ, tmp_path / "log") as up:
        await up.until_healthy()
        token = await up.token()

        STORE_LOSS[loss](data)
        status, health = await up.until_health(lambda status, _: status == 503, within=SOON)
        await asyncio.sleep(1)
        ready = await up.asked("/ready")
        answers = [
            await up.asked(path, token) for path in (f"/cricket-data/match-info/{FIRST}", "/cricket-data/matches")
        ]
        verdict = await up.verb("health")

    assert (status, health["status"]) == (503, "down")
    assert any("matches.db" in reason for reason in health["reasons"])
    assert ready.status_code == 503
    assert verdict[0] == 2
    assert "matches.db" in verdict[1]
    assert [answer.status_code for answer in answers] == [503, 503]
    assert all(answer.json()["error"].endswith(".") for answer in answers)
    assert logged(read_log(up.log), "store.unusable")
    assert_no_trace(up.said + verdict[1])


async def test_a_store_that_is_put_back_is_used_again_and_all_is_green(
    environ: dict[str, str], data: Path, tmp_path: Path
) -> None:
    aside = tmp_path / "aside"
    aside.mkdir()
    async with running(environ, tmp_path / "log") as up:
        await up.until_healthy()
        move_store(data, aside)
        await up.until_health(lambda status, _: status == 503, within=SOON)
        move_store(aside, data)

        await up.until_healthy()

        ready = await up.asked("/ready")
        paused = await up.verb("pause", str(FIRST))
        assert await up.stop() == Exit.DONE

    assert ready.status_code == 200
    assert paused[0] == 0, paused[1]
    assert {ref: len(events) for ref, events in (await events_of(data)).items()} == {
        str(FIRST): EVENTS,
        str(SECOND): EVENTS,
    }


@pytest.mark.parametrize(
    "loss", ["deleted", "its header overwritten", "emptied", "replaced by an older copy", "without its log"]
)
async def test_lost_orders_keep_their_force_also_when_the_scraper_dies(
    environ: dict[str, str], data: Path, tmp_path: Path, site: Site, loss: str
) -> None:
    ops = data / "ops.db"
    async with running(environ, tmp_path / "log") as up:
        await up.until_healthy()
        copy_database(ops, tmp_path / "older")
        change_text(tmp_path / "older", "DELETE FROM standing_orders")
        if loss == "deleted":
            remove_database(ops)
        elif loss == "its header overwritten":
            overwrite(ops, 0, b"\xff" * 100)
            overwrite(ops.with_name("ops.db-wal"), 0, b"\xff" * 40_000)
        elif loss == "emptied":
            empty(ops)
        elif loss == "without its log":
            remove_log(ops)
        else:
            remove_database(ops)
            shutil.move(tmp_path / "older", ops)
        if loss in ("deleted", "emptied"):
            _, health = await up.until_health(lambda _, document: document["status"] != "healthy", within=SOON)
            refused = await up.verb("pause", str(FIRST))
            assert any("ops.db" in reason for reason in health["reasons"])
            assert refused[0] != 0
            assert "ops.db" in refused[1]
            assert_no_trace(refused[1])
        else:
            await asyncio.sleep(3)
        await up.kill_scraper()
        await asyncio.sleep(4)
        await up.kill_scraper() if up.logged("process.started", process="scraper") else None

    assert site.requests == []
    assert_no_trace(up.said)


async def test_a_damaged_event_stops_the_polling_of_its_match_alone(
    environ: dict[str, str], data: Path, tmp_path: Path, site: Site
) -> None:
    change_text(data / "ops.db", "DELETE FROM standing_orders")
    change_text(
        data / "matches.db",
        "UPDATE event_versions SET content = replace(content, 'p1', 'p9') WHERE match_id = 1 AND seq = 7",
    )

    async with running(environ, tmp_path / "log") as up:
        await up.until_health(
            lambda _, document: any(str(FIRST) in reason for reason in document["reasons"]), within=20
        )
        await until(lambda: any("22XX" in request for request in site.requests), "the other match is polled")
        assert up.logged("process.died") == []
        [failed] = up.logged("store.failed", ref=str(FIRST))

    assert not any("11HD" in request for request in site.requests)
    assert "matches.db" in failed["error_message"]
    assert "event_versions" in failed["error_message"] or "events" in failed["error_message"]
    assert_no_trace(up.said)


async def test_a_full_disk_is_named_by_health(tmp_path: Path, site: Site) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.fail("only root may mount, and by unshare")
    disk = tmp_path / "disk"
    disk.mkdir()
    environ = environment(tmp_path, site, disk / "data")
    mount = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size=8m tmpfs {disk} && exec "$@"', "sh")
    async with running(environ, tmp_path / "log", *mount) as up:
        await up.until_health(lambda status, document: document.get("active_scraper_count") == 1)
        inside = Path(f"/proc/{up.process.pid}/root{disk}")
        with suppress(OSError), (inside / "fill").open("wb", buffering=0) as out:
            while out.write(bytes(1 << 14)):
                pass

        status, _ = await up.until_health(
            lambda _, document: any("disk" in reason and "full" in reason for reason in document["reasons"]),
            within=SOON,
        )
        verdict = await run(environ, "health", before=("nsenter", "--mount", "--target", str(up.process.pid)))
        reported = len(up.logged("store.unusable"))
        (inside / "fill").unlink()
        await up.until_health(lambda _, document: not any("full" in reason for reason in document["reasons"]))

    assert status == 503
    assert reported <= 3, "it is reported once, not every second"
    assert verdict[0] == 2, verdict[1]
    assert "full" in verdict[1]
    assert_no_trace(up.said)


async def test_a_second_up_is_refused_although_the_lock_files_were_removed(
    environ: dict[str, str], data: Path, tmp_path: Path
) -> None:
    async with running(environ, tmp_path / "log") as up:
        await up.until_healthy()
        remove_locks(data)

        ended, said = await run(environ, "up")
        alone, said_alone = await run(environ, "scraper")

        assert up.process.returncode is None
    assert (ended, alone) == (Exit.LOCKED, Exit.LOCKED)
    assert "is in use by another supervisor: stop it first" in one_sentence(said)
    assert "is in use by another scraper: stop it first" in one_sentence(said_alone)
    assert_no_trace(said + said_alone)


# --- any byte ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["matches.db", "ops.db", "hot.db"])
async def test_any_changed_byte_is_harmless_or_refused_with_a_sentence(
    template: Path, tmp_path: Path, site: Site, name: str
) -> None:
    dice, known = random.Random(f"7 {name}"), await events_of(template)
    size = (template / name).stat().st_size
    for attempt in range(6):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        data = copied(template, folder)
        # Most of the pages are empty: half of the attempts change the beginning, where the schema is.
        offset = dice.randrange(4096 if attempt % 2 else size)
        before = (data / name).read_bytes()[offset]
        overwrite(data / name, offset, bytes([before ^ dice.randrange(1, 256)]))
        environ = environment(folder, site, data)

        async with running(environ, folder / "log", verb="scraper") as scraper:
            await until(
                lambda scraper=scraper: (
                    scraper.process.returncode is not None  # type: ignore[misc]
                    or scraper.logged("match.claimed", ref=str(SECOND))
                    or scraper.logged("store.failed")
                ),
                "it starts or refuses",
            )
            ended = scraper.process.returncode
            stopped = ended if ended is not None else await scraper.stop()

        where = f"{name}, byte {offset}: {scraper.said[-3000:]}"
        assert site.requests == [], where
        assert "Traceback" not in scraper.said, where
        # One that is asked to stop before it listens for signals ends by the signal.
        assert stopped in (Exit.DONE, Exit.STORAGE, -signal.SIGTERM), where
        if ended is None and not scraper.logged("store.failed"):
            assert await events_of(data) == known, where
            assert await orders_of(data) == PAUSED, where
        else:
            assert name in scraper.said, where
        shutil.rmtree(folder)
