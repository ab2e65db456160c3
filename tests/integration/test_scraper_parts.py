"""A source is put together: its configuration is read again when a watch restarts, and its pauses are kept."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from longstop.app.scraper_parts import Runtime, SourceRuntime
from longstop.clock import SystemClock
from longstop.errors import CircuitOpen, LayoutPaused, SourceError
from longstop.fetching.browser.browser_pool_and_orphan_sweep import BrowserPool, PoolPlan
from longstop.matches.live_match_and_feeds import LiveMatches
from longstop.model.request_pause import PauseKind
from longstop.settings import Settings, load_settings
from longstop.sources.load_sources import enabled_sources
from longstop.storage.error_pages_and_screenshots import NoPages
from longstop.storage.sqlite.operations_tables import open_operations
from longstop.supervision.memory_for_new_matches import MemoryCheck
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.sources import CircuitOpened
from longstop.watching.poll_dispatcher import Dispatcher
from longstop.watching.stored_pauses import StoredPauses
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
    ops = open_operations(home / "ops.db", clock)
    return Runtime(
        settings=settings,
        clock=clock,
        bus=bus,
        matches=LiveMatches(MemoryStore(), "node"),
        hot=MemoryHot(),
        ops=ops,
        pauses=StoredPauses(ops.pauses, clock=clock),
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


@pytest.mark.req("CAP-9")
async def test_a_source_continues_the_pauses_of_an_earlier_run(tmp_path: Path) -> None:
    file, first, second = tmp_path / "sources.yaml", MemorySink(), MemorySink()
    describe(file, NOWHERE)
    settings = load_settings({"LONGSTOP_SOURCES": str(file)}, {})
    earlier = runtime(settings, first, tmp_path)
    await earlier.pauses.load(earlier.bus)
    async with earlier.pauses.writing(earlier.bus):
        pauses = earlier.pauses.of("crex")
        pauses.begin(PauseKind.SOURCE_CIRCUIT, "crex", 900, "refused")
        pauses.begin(PauseKind.TARGET_CIRCUIT, NOWHERE, 60, "unreachable")
        pauses.begin(PauseKind.RETRY_AFTER, "crex", 30, "429")
        pauses.begin(PauseKind.LAYOUT, "list", 300, "no score")
    await earlier.ops.aclose()
    later = runtime(settings, second, tmp_path)

    await later.pauses.load(later.bus)
    async with aclosing(SourceRuntime(enabled_sources(file)[0], later)) as crex:
        with pytest.raises(LayoutPaused):
            await crex.client.listing()
        with pytest.raises(CircuitOpen, match="circuit open for crex"):
            await crex.client.entry("11HD")
    await later.ops.aclose()

    assert not first.events
    reported = {event.name for event in second.events}
    assert reported == {"circuit_opened", "source.rate_limited", "layout.broken"}
    assert {event.scope for event in second.events if isinstance(event, CircuitOpened)} == {"source", "target"}


@pytest.mark.req("CAP-9")
async def test_with_unreadable_pauses_a_source_starts_with_probes_and_says_so(tmp_path: Path) -> None:
    file, sink = tmp_path / "sources.yaml", MemorySink()
    (tmp_path / "ops.db").write_bytes(b"no database" * 1000)

    async with running_simulator(SimulatorOptions(matches=2, seed=1, speed=1)) as site:
        describe(file, site.base_url.removeprefix("http://"))
        settings = load_settings({"LONGSTOP_SOURCES": str(file), "FETCH_TIMEOUT_SECONDS": "10"}, {})
        parts = runtime(settings, sink, tmp_path)
        await parts.pauses.load(parts.bus)
        async with aclosing(SourceRuntime(enabled_sources(file)[0], parts)) as crex:
            for _ in range(3):
                await asyncio.wait_for(crex.client.listing(), 30)
    await parts.ops.aclose()

    assert [event.name for event in sink.events] == [
        "records.failed",
        "circuit_opened",
        "circuit_half_open",
        "circuit_closed",
    ]
