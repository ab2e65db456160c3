"""`scripts/poll-path`: which files of the product one cricket poll runs through, from listing to JSON.

The parts are the real ones: guarded fetcher, scheduler, dispatcher, SQLite store, hot view and API in one process, and
the simulator's crex site on loopback. A match is in sync and has been polled several times when one more delivery is
published. From that moment until the API serves the delivery, every function of `longstop` that is entered is noted, in
all threads. Start-up, the first full poll and imports are therefore not counted, and neither is the simulator.
"""

import argparse
import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType

import httpx

import longstop
import longstop_lab
from longstop.api.health_cache_and_pollers import HealthCache
from longstop.api.server import Stores, build_app
from longstop.api.tokens import Permission, Secret, issue_token
from longstop.app.api import LOOP_BUSY_TIMEOUT_MS
from longstop.app.scraper_parts import Runtime, SourceRuntime
from longstop.clock import Moment, SystemClock
from longstop.errors import StorageError
from longstop.fetching.browser.browser_pool_and_orphan_sweep import BrowserPool, PoolPlan
from longstop.matches.live_match_and_feeds import LiveMatches
from longstop.settings import Settings, load_settings
from longstop.sources.load_sources import enabled_sources
from longstop.storage.directory import DataDirectory
from longstop.storage.error_pages_and_screenshots import ErrorPages
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader, SqliteHotWriter
from longstop.storage.sqlite.matches import SqliteMatchReader, SqliteMatchStore
from longstop.storage.sqlite.operations_tables import (
    SqliteAudit,
    SqliteCommands,
    SqliteHealthLog,
    open_operations,
)
from longstop.supervision.memory_for_new_matches import MemoryCheck
from longstop.telemetry.bus import Bus
from longstop.watching.poll_dispatcher import Dispatcher
from longstop.watching.stored_pauses import StoredPauses
from longstop_lab.simulator.cricket.script import PublishBall, Script
from longstop_lab.simulator.cricket.world import plan_world
from longstop_lab.simulator.service import RunningSimulator, SimulatorOptions, running_simulator

PRODUCT = Path(longstop.__file__).parent
LAB = Path(longstop_lab.__file__).parent
#: How many deliveries are polled one by one before the one that counts.
WARM_UP = 5
SERVED_WITHIN_SECONDS = 20.0
SECRET = Secret(b"p" * 32)
#: Not functions; whether a comprehension has a code object of its own depends on the version of Python.
_NO_FUNCTIONS = frozenset({"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


class Trace:
    """Notes which functions are entered, in this thread and in all that are started while it is installed."""

    def __init__(self) -> None:
        self.is_on = False
        self._entered: set[CodeType] = set()

    @contextmanager
    def installed(self) -> Iterator[None]:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def files(self) -> dict[str, list[str]]:
        """Return the names of the functions that were entered in each file, by its path below the package."""
        found: dict[str, list[str]] = {}
        for code in sorted(self._entered, key=lambda code: (code.co_filename, code.co_firstlineno)):
            found.setdefault(str(Path(code.co_filename).relative_to(PRODUCT)), []).append(code.co_qualname)
        return found

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        if not self.is_on or event != "call":
            return
        code = frame.f_code
        if not code.co_filename.startswith(f"{PRODUCT}/") or code.co_name in _NO_FUNCTIONS:
            return
        if code not in self._entered and not self._is_called_by_simulator(frame):
            self._entered.add(code)

    @staticmethod
    def _is_called_by_simulator(frame: FrameType | None) -> bool:
        while frame is not None:
            if frame.f_code.co_filename.startswith(f"{LAB}/"):
                return True
            frame = frame.f_back
        return False


def poll_path() -> dict[str, list[str]]:
    """Return the files of one poll, each with its functions that were entered."""
    trace = Trace()
    with TemporaryDirectory(prefix="longstop-poll-") as home, trace.installed():
        asyncio.run(_measure(Path(home), trace))
    return trace.files()


async def _measure(home: Path, trace: Trace) -> None:
    options = SimulatorOptions(matches=1)
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(running_simulator(options))
        settings = _settings(home, site)
        await stack.enter_async_context(_scraping(settings))
        client = await stack.enter_async_context(_client(settings))
        (plan,) = plan_world(seed=options.seed, matches=options.matches)
        *warm_up, counted = _plain_deliveries(plan.script, plan.starts_at)
        sequence = 0
        for at in warm_up:  # always ahead of the clock, which therefore publishes nothing by itself
            site.world.advance_to(at)
            sequence = await _served_after(client, plan.key, sequence)
        trace.is_on = True
        site.world.advance_to(counted)
        await _served_after(client, plan.key, sequence)
        trace.is_on = False


def _plain_deliveries(script: Script, starts_at: float) -> list[float]:
    """Return when the deliveries are published that are polled one by one; the last is one like most others.

    It has a batter and a bowler that the match has seen, is no wicket, and does not begin or end an over.
    """
    found: list[float] = []
    for before, step, after in zip(script, script[1:], script[2:], strict=False):
        if not (isinstance(before, PublishBall) and isinstance(step, PublishBall) and isinstance(after, PublishBall)):
            continue
        is_within = before.label.over == step.label.over == after.label.over
        if starts_at + step.at > 0 and is_within and not step.ball.outs:
            found.append(starts_at + step.at)
    return found[: WARM_UP + 1]


async def _served_after(client: httpx.AsyncClient, key: str, sequence: int) -> int:
    """Return the sequence of the next state that the API serves of the match."""
    async with asyncio.timeout(SERVED_WITHIN_SECONDS):
        while True:
            answer = await client.get(f"/cricket-data/match-info/crex_{key}")
            if answer.status_code == 200 and answer.json()["_metadata"]["sequence"] > sequence:
                served: int = answer.json()["_metadata"]["sequence"]
                return served
            await asyncio.sleep(0.1)


def _settings(home: Path, site: RunningSimulator) -> Settings:
    sources = home / "sources.yaml"
    sources.write_text(
        f"""
sources:
  - domain_id: crex
    enabled: true
    precedence_weight: 50
    adapter_class: crex
    hosts: ["{site.base_url.removeprefix("http://")}"]
    allow_private_addresses: true
    metadata: {{api_url: "{site.base_url}", content_url: "{site.base_url}", names_url: "{site.base_url}"}}
"""
    )
    intervals = {"POLLING_INTERVAL_SECONDS": "0.5", "BUSY_INTERVAL_SECONDS": "0.5", "DISCOVERY_INTERVAL_SECONDS": "0.5"}
    return load_settings({"LONGSTOP_DATA": str(home / "data"), "LONGSTOP_SOURCES": str(sources), **intervals}, {})


@asynccontextmanager
async def _scraping(settings: Settings) -> AsyncIterator[None]:
    """Poll as the scraper does, without its care for itself and its listeners."""
    directory, clock, bus = DataDirectory.open(settings.data), SystemClock(), Bus()
    store = await SqliteMatchStore.open(directory.matches_db)
    browsers = BrowserPool(PoolPlan(registry=directory.path / "browsers.json", node=directory.node_id), bus)
    hot = SqliteHotWriter(directory.hot_db, on_failure=_fail)
    ops = open_operations(directory.ops_db, clock)
    runtime = Runtime(
        settings=settings,
        clock=clock,
        bus=bus,
        matches=LiveMatches(store, directory.node_id),
        hot=hot,
        ops=ops,
        pauses=StoredPauses(ops.pauses, clock=clock),
        browsers=browsers,
        dispatcher=Dispatcher(clock=clock, bus=bus, cap=settings.scraper.fetching.concurrency_cap),
        pages=ErrorPages(directory.storage / "error_pages"),
        memory_check=MemoryCheck(settings.scraper.resources.memory.min_available_mb << 20),
    )
    async with (
        aclosing(store),
        aclosing(browsers),
        aclosing(hot),
        aclosing(ops),
        AsyncExitStack() as stack,
    ):
        made = [SourceRuntime(config, runtime) for config in enabled_sources(settings.sources)]
        sources = [await stack.enter_async_context(aclosing(each)) for each in made]
        loops = [runtime.dispatcher.run(), *(each.scheduler.run() for each in sources)]
        tasks = [asyncio.create_task(each) for each in loops]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _fail(error: StorageError) -> None:
    raise error


@asynccontextmanager
async def _client(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """Ask the API as a client does, without a socket between."""
    directory, clock = DataDirectory.open(settings.data), SystemClock()
    audit = SqliteAudit(directory.ops_db)
    stores = Stores(
        matches=SqliteMatchReader(directory.matches_db, LOOP_BUSY_TIMEOUT_MS),
        hot=SqliteHotReader(directory.hot_db, LOOP_BUSY_TIMEOUT_MS),
        commands=SqliteCommands(directory.ops_db, clock),
        admin_matches=SqliteMatchReader(directory.matches_db),
        large_matches=SqliteMatchReader(directory.matches_db),
        health_log=SqliteHealthLog(directory.ops_db),
    )
    health_cache = HealthCache(
        reader=stores.matches, hot=stores.hot, audit=audit, clock=clock, started=Moment.of(clock)
    )
    app = build_app(stores, secret=SECRET, clock=clock, health=health_cache)
    ttl, permissions = timedelta(hours=1), [Permission.READ]
    token = issue_token(SECRET, subject="poll-path", permissions=permissions, ttl=ttl, now=clock.now())
    headers, transport = {"Authorization": f"Bearer {token}"}, httpx.ASGITransport(app=app)
    async with (
        aclosing(stores),
        aclosing(audit),
        httpx.AsyncClient(transport=transport, base_url="http://api.test", headers=headers) as client,
    ):
        yield client


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/poll-path", description="List the files that one poll runs through.")
    parser.add_argument("--functions", action="store_true", help="name the functions, too")
    has_functions = parser.parse_args().functions
    files = poll_path()
    for name, functions in files.items():
        print(f"{len(functions):4}  {name}")
        if has_functions:
            print("".join(f"        {function}\n" for function in functions), end="")
    print(f"{len(files)} files, {sum(len(functions) for functions in files.values())} functions")


if __name__ == "__main__":
    main()
