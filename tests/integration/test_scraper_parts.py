"""The configuration of a source is read again when a watch restarts."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from longstop.app.scraper_parts import Runtime, SourceRuntime
from longstop.clock import SystemClock
from longstop.errors import SourceError
from longstop.fetching.browser.browser_pool_and_orphan_sweep import BrowserPool, PoolPlan
from longstop.matches.live_match_and_feeds import LiveMatches
from longstop.settings import Settings, load_settings
from longstop.sources.load_sources import enabled_sources
from longstop.storage.error_pages_and_screenshots import NoPages
from longstop.storage.sqlite.operations_tables import open_operations
from longstop.supervision.memory_for_new_matches import MemoryCheck
from longstop.telemetry.bus import Bus
from longstop.watching.poll_dispatcher import Dispatcher
from longstop_lab.simulator.service import SimulatorOptions, running_simulator
from tests.memory import MemoryHot, MemorySink, MemoryStore

NOWHERE = "127.0.0.1:9"


def describe(file: Path, host: str, *, enabled: bool = True) -> None:
    url = f"http://{host}"
    file.write_text(
        f"""
sources:
  - domain_id: crex
    enabled: {str(enabled).lower()}
    precedence_weight: 50
    adapter_class: crex
    hosts: ["{host}"]
    allow_private_addresses: true
    metadata: {{api_url: "{url}", content_url: "{url}", names_url: "{url}"}}
"""
    )


def runtime(settings: Settings, sink: MemorySink, home: Path) -> Runtime:
    bus, clock = Bus([sink]), SystemClock()
    return Runtime(
        settings=settings,
        clock=clock,
        bus=bus,
        matches=LiveMatches(MemoryStore(), "node"),
        hot=MemoryHot(),
        ops=open_operations(home / "ops.db", clock),
        browsers=BrowserPool(PoolPlan(registry=home / "browsers.json", node="node"), bus),
        dispatcher=Dispatcher(clock=clock, bus=bus, cap=4),
        pages=NoPages(),
        memory_check=MemoryCheck(0),
    )


@pytest.mark.req("US2.2")
async def test_a_site_that_has_moved_is_found_at_its_new_address_without_a_restart(tmp_path: Path) -> None:
    file, sink = tmp_path / "sources.yaml", MemorySink()
    describe(file, NOWHERE)
    settings = load_settings({"LONGSTOP_SOURCES": str(file), "FETCH_TIMEOUT_SECONDS": "10"}, {})

    async with (
        running_simulator(SimulatorOptions(matches=2, seed=1, speed=1)) as site,
        aclosing(SourceRuntime(enabled_sources(file)[0], runtime(settings, sink, tmp_path))) as crex,
    ):
        with pytest.raises(SourceError):
            await asyncio.wait_for(crex.client.listing(), 30)
        describe(file, site.base_url.removeprefix("http://"))

        await crex.reconnect(False)
        listing = await asyncio.wait_for(crex.client.listing(), 30)

    assert len(listing.boards) == 2
    assert not sink.named("reload.failed")


async def test_an_unreadable_configuration_is_reported_and_the_old_one_stays_in_use(tmp_path: Path) -> None:
    file, sink = tmp_path / "sources.yaml", MemorySink()

    async with running_simulator(SimulatorOptions(matches=2, seed=1, speed=1)) as site:
        describe(file, site.base_url.removeprefix("http://"))
        settings = load_settings({"LONGSTOP_SOURCES": str(file), "FETCH_TIMEOUT_SECONDS": "10"}, {})
        async with aclosing(SourceRuntime(enabled_sources(file)[0], runtime(settings, sink, tmp_path))) as crex:
            file.write_text("sources: 7")

            await crex.reconnect(False)
            listing = await asyncio.wait_for(crex.client.listing(), 30)

    assert len(listing.boards) == 2
    assert len(sink.named("reload.failed")) == 1
