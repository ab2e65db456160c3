"""The version_log of a trial, over a real store and a real API: what was served once must be served for ever."""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from datetime import timedelta
from pathlib import Path

import apsw
import pytest
from msgspec import Struct

from longstop.api.server import build_app
from longstop.api.tokens import Permission, issue_token
from longstop.clock import SystemClock
from longstop_lab.client import Client, all_events
from longstop_lab.version_log import VersionLog, logging_versions, missing_versions
from tests.contract.stores import SqliteFiles, delivery_key, event, later, owned_match, update
from tests.integration.test_api import SECRET, serving
from tests.readers import MemoryHot, a_health_cache, a_node_of

URL = "/cricket-data/match-info/1"


class Consumer(Struct, frozen=True):
    """The part of a deployment that a version log needs."""

    api: Client
    sites: tuple[str, ...] = ("crex",)


@pytest.fixture
async def files(tmp_path: Path) -> SqliteFiles:
    """A store in which one scraper has written three balls."""
    files = SqliteFiles(tmp_path)
    async with aclosing(await files.open_store()) as store:
        match_id = await owned_match(store)
        await store.save_update(update(match_id, *(event(delivery_key(0, nth), position=nth) for nth in (1, 2, 3))))
    return files


@asynccontextmanager
async def consuming(files: SqliteFiles) -> AsyncIterator[Consumer]:
    """Serve a store, and come with a token."""
    clock, reader, hot = SystemClock(), files.open_reader(), MemoryHot()
    health_cache = await a_health_cache(reader, hot, clock)
    app = build_app(a_node_of(reader, hot, clock), secret=SECRET, clock=clock, health=health_cache)
    read = [Permission.READ]
    token = issue_token(SECRET, subject="t", permissions=read, ttl=timedelta(hours=1), now=clock.now())
    async with serving(app) as port:
        consumer = Consumer(Client(f"http://127.0.0.1:{port}", token))
        try:
            yield consumer
        finally:
            await consumer.api.aclose()
            await reader.aclose()


@contextmanager
def edited(files: SqliteFiles) -> Iterator[apsw.Connection]:
    """Change the file between two scrapers."""
    with closing(apsw.Connection(str(files.path))) as connection, connection:
        yield connection


async def complaints(consumer: Consumer, version_log: VersionLog) -> list[str]:
    """Return what the version log finds missing at the end."""
    seen = version_log.seen()
    return missing_versions(seen, {URL: await all_events(consumer, URL)})


async def test_a_version_that_is_still_served_is_not_missing_when_more_are_added(files: SqliteFiles) -> None:
    async with consuming(files) as consumer:
        version_log = VersionLog(consumer)
        await version_log.poll()
        async with aclosing(await files.open_store()) as store:
            await store.save_update(update(1, event(delivery_key(0, 4), position=4)))

        found = await complaints(consumer, version_log)
        await version_log.poll()

        assert found == await complaints(consumer, version_log) == []
        assert sorted(version_log.seen()[URL]) == [1, 2, 3, 4]


@pytest.mark.req("NFR-009")
async def test_an_event_that_is_deleted_and_read_again_by_the_next_scraper_is_missing(files: SqliteFiles) -> None:
    async with consuming(files) as consumer:
        version_log = VersionLog(consumer)
        await version_log.poll()
        with edited(files) as store_file:
            store_file.execute("DELETE FROM events WHERE key = 'delivery:1:0:3'")
            store_file.execute("DELETE FROM event_versions WHERE seq = 3")
            store_file.execute("UPDATE matches SET seq = 2")
        gone = await complaints(consumer, version_log)
        async with aclosing(await files.open_store()) as store:
            await store.save_update(update(1, event(delivery_key(0, 3), position=3), captured_at=later(60)))

        again = await complaints(consumer, version_log)

    assert gone == [f"{URL}: version 3 was served before and is missing now"]
    assert again == [f"{URL}: version 3 was served before with other content"]


@pytest.mark.req("NFR-009")
async def test_an_event_that_is_changed_in_place_is_missing(files: SqliteFiles) -> None:
    async with consuming(files) as consumer:
        version_log = VersionLog(consumer)
        await version_log.poll()
        with edited(files) as store_file:
            store_file.execute("UPDATE event_versions SET source_event_id = '1002' WHERE seq = 2")

        found = await complaints(consumer, version_log)

    assert found == [f"{URL}: version 2 was served before with other content"]


async def test_every_version_of_a_match_that_is_no_longer_listed_is_missing(files: SqliteFiles) -> None:
    async with consuming(files) as consumer:
        version_log = VersionLog(consumer)
        await version_log.poll()

    assert len(missing_versions(version_log.seen(), {})) == 3


async def test_a_cleared_log_misses_nothing(files: SqliteFiles) -> None:
    async with consuming(files) as consumer:
        version_log = VersionLog(consumer)
        await version_log.poll()

        version_log.clear()

        assert missing_versions(version_log.seen(), {}) == []


async def test_a_poll_while_the_api_is_down_drops_nothing(files: SqliteFiles) -> None:
    async with consuming(files) as consumer:
        version_log = VersionLog(consumer)
        await version_log.poll()

    await version_log.poll()

    assert sorted(version_log.seen()[URL]) == [1, 2, 3]


async def test_the_first_poll_is_complete_before_the_block_starts(files: SqliteFiles) -> None:
    async with consuming(files) as consumer, logging_versions(consumer) as version_log:
        assert sorted(version_log.seen()[URL]) == [1, 2, 3]
