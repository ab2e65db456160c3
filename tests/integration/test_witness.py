"""The witness of a trial, over a real store and a real API: what was served once must be served for ever."""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from datetime import timedelta
from pathlib import Path

import apsw
import pytest
from msgspec import Struct

from longstop.api.auth import Permission, TokenVerifier, issue_token
from longstop.api.server import Stores, build_app
from longstop.clock import SystemClock
from longstop_lab.client import Client
from longstop_lab.sample import all_events
from longstop_lab.witness import Witness, forgotten, witnessing
from tests.contract.stores import SqliteFiles, delivery_key, event, later, owned_match, update
from tests.integration.test_api import SECRET, serving
from tests.readers import MemoryHot, a_health_cache

URL = "/cricket-data/match-info/1"


class Consumer(Struct, frozen=True):
    """As much of a stage as a witness needs."""

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
    app = build_app(Stores(matches=reader, hot=hot), verifier=TokenVerifier(SECRET), clock=clock, health=health_cache)
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
def by_hand(files: SqliteFiles) -> Iterator[apsw.Connection]:
    """Do harm to the file between two scrapers."""
    with closing(apsw.Connection(str(files.path))) as connection, connection:
        yield connection


async def complaints(consumer: Consumer, witness: Witness) -> list[str]:
    """Return what the witness finds at the end."""
    seen = witness.seen()
    return forgotten(seen, {URL: await all_events(consumer, URL)})


async def test_what_is_still_there_is_not_forgotten_however_much_is_added(files: SqliteFiles) -> None:
    async with consuming(files) as consumer:
        witness = Witness(consumer)
        await witness.look()
        async with aclosing(await files.open_store()) as store:
            await store.save_update(update(1, event(delivery_key(0, 4), position=4)))

        found = await complaints(consumer, witness)
        await witness.look()

        assert found == await complaints(consumer, witness) == []
        assert sorted(witness.seen()[URL]) == [1, 2, 3, 4]


@pytest.mark.req("NFR-009")
async def test_an_event_that_is_deleted_and_read_again_by_the_next_scraper_was_forgotten(files: SqliteFiles) -> None:
    async with consuming(files) as consumer:
        witness = Witness(consumer)
        await witness.look()
        with by_hand(files) as store_file:
            store_file.execute("DELETE FROM events WHERE key = 'delivery:1:0:3'")
            store_file.execute("DELETE FROM event_versions WHERE seq = 3")
            store_file.execute("UPDATE matches SET seq = 2")
        gone = await complaints(consumer, witness)
        async with aclosing(await files.open_store()) as store:
            await store.save_update(update(1, event(delivery_key(0, 3), position=3), captured_at=later(60)))

        again = await complaints(consumer, witness)

    assert gone == [f"{URL}: version 3 was served once, and is gone"]
    assert again == [f"{URL}: version 3 was served once, and reads otherwise now"]


@pytest.mark.req("NFR-009")
async def test_an_event_that_is_changed_in_its_place_was_forgotten(files: SqliteFiles) -> None:
    async with consuming(files) as consumer:
        witness = Witness(consumer)
        await witness.look()
        with by_hand(files) as store_file:
            store_file.execute("UPDATE event_versions SET source_event_id = '1002' WHERE seq = 2")

        found = await complaints(consumer, witness)

    assert found == [f"{URL}: version 2 was served once, and reads otherwise now"]


async def test_all_of_a_match_that_is_no_longer_listed_was_forgotten(files: SqliteFiles) -> None:
    async with consuming(files) as consumer:
        witness = Witness(consumer)
        await witness.look()

    assert len(forgotten(witness.seen(), {})) == 3


async def test_after_a_restore_by_hand_a_witness_begins_anew(files: SqliteFiles) -> None:
    async with consuming(files) as consumer:
        witness = Witness(consumer)
        await witness.look()

        witness.begin_anew()

        assert forgotten(witness.seen(), {}) == []


async def test_an_api_that_is_down_is_asked_again_and_nothing_that_was_seen_is_dropped(files: SqliteFiles) -> None:
    async with consuming(files) as consumer:
        witness = Witness(consumer)
        await witness.look()

    await witness.look()

    assert sorted(witness.seen()[URL]) == [1, 2, 3]


async def test_a_witness_has_looked_before_anything_happens(files: SqliteFiles) -> None:
    async with consuming(files) as consumer, witnessing(consumer) as witness:
        assert sorted(witness.seen()[URL]) == [1, 2, 3]
