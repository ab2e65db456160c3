"""A real scraper that reads small crex sites on sockets, some of them hostile, and what is seen of it from outside."""

import asyncio
import os
import sys
import threading
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
import psutil
from msgspec import Struct

from longstop.fetching.base import FetchRequest
from longstop.settings import OUR_PREFIXES
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader
from longstop_lab.simulator.http import Request, Response, read_request
from tests.background import background
from tests.crex_site import Site, SiteMatch

#: What a hostile site answers in place of the truth; `None` for the truth.
Attack = Callable[[Request], Awaitable[bytes | None]]
QUICK = {
    "POLLING_INTERVAL_SECONDS": "0.5",
    "BUSY_INTERVAL_SECONDS": "0.5",
    "DISCOVERY_INTERVAL_SECONDS": "0.5",
    "ENABLE_PROMETHEUS_METRICS": "false",
    "SNAPSHOTS": "off",
}
#: A match read every half second is never older than this on a busy machine.
FRESH_SECONDS = 5.0
MEGABYTE = 1 << 20
#: How long a scraper may take to read its first match.
START_SECONDS = 30.0
LAG_WINDOW_SECONDS = 10.5
#: How long what is expected may take on a busy machine.
PATIENCE_SECONDS = 20.0


class _MachineLag:
    """Measures how late the machine wakes a thread that sleeps."""

    def __init__(self) -> None:
        self.worst = 0.0
        self._is_over = threading.Event()

    def __enter__(self) -> "_MachineLag":
        threading.Thread(target=self._measure, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()

    def _measure(self) -> None:
        while not self._is_over.is_set():
            started = monotonic()
            time.sleep(0.02)
            self.worst = max(self.worst, monotonic() - started - 0.02)


async def truth(_request: Request) -> None:
    return None


def live_match(key: str) -> SiteMatch:
    found = SiteMatch(key=key)
    found.bowl(*"1234")
    return found


class HostileSite:
    """A crex site on a socket; its matches go on, one ball a second."""

    def __init__(self, name: str, keys: Sequence[str], attack: Attack = truth) -> None:
        self.name = name
        self.site = Site(*map(live_match, keys))
        self.attack = attack
        self.is_attacking = False
        self.authority = ""
        #: By match, who bats during the attack.
        self.batters: dict[str, str] = {}
        self._answering: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.authority = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            async with background(self._play()):
                yield
        finally:
            server.close()
            for task in self._answering:
                task.cancel()
            await asyncio.gather(*self._answering, return_exceptions=True)

    @property
    def described(self) -> str:
        url = f"http://{self.authority}"
        return f"""
  - domain_id: {self.name}
    enabled: true
    precedence_weight: 50
    adapter_class: crex
    hosts: ["{self.authority}"]
    allow_private_addresses: true
    metadata: {{site_url: "{url}", api_url: "{url}", content_url: "{url}", names_url: "{url}"}}
"""

    async def _play(self) -> None:
        while True:
            await asyncio.sleep(1)
            for match in self.site.matches.values():
                [ball] = match.bowl("1")
                if self.is_attacking:
                    ball.batter = self.batters.get(match.key, ball.batter)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            with suppress(ConnectionError, asyncio.CancelledError):
                while (request := await read_request(reader)) is not None:
                    body = await self.attack(request) if self.is_attacking else None
                    writer.write(Response(body=body or self._truth(request)).encode(keeps_alive=True))
                    await writer.drain()
        finally:
            writer.close()
            self._answering.discard(task)

    def _truth(self, request: Request) -> bytes:
        query = "&".join(f"{name}={value}" for name, value in request.query.items())
        url = f"http://{self.authority}{request.path}?{query}"
        try:
            answer = self.site(FetchRequest(source="crex", url=url, method=request.method, body=request.body or None))
        except KeyError:  # a match that only a hostile listing has
            return b"{}"
        assert isinstance(answer, bytes)
        return answer


class Observed(Struct, kw_only=True):
    """What was seen of the scraper."""

    #: By match, the greatest age once all matches had been read, in seconds.
    ages: dict[str, float]
    loop_lag: float = 0.0
    #: How late a sleeping thread of the test woke up at most: so much the machine itself delays.
    machine_lag: float = 0.0
    #: The greatest resident memory, in megabytes.
    memory: float = 0.0
    exit_code: int | None = None
    log: list[dict[str, Any]] = []
    #: Of all files in its data directory.
    disk: int = 0

    def logged(self, name: str, ref: str = "") -> list[dict[str, Any]]:
        return [line for line in self.log if line.get("event") == name and ref in str(line)]

    def oldest(self, source: str, but: str = "-") -> float:
        return max(age for ref, age in self.ages.items() if ref.startswith(f"{source}_") and but not in ref)


async def scrape(
    home: Path,
    *sites: HostileSite,
    seconds: float,
    until: str = "",
    times: int = 1,
    settings: Mapping[str, str] | None = None,
) -> Observed:
    """Run a scraper on these sites, and return what was seen of it for `seconds` after it has read all their matches.

    Then the attacks begin. On a busy machine it runs longer, until an event was logged `times` times.
    """
    async with AsyncExitStack() as stack:
        for site in sites:
            await stack.enter_async_context(site.running())
        (home / "sources.yaml").write_text("sources:\n" + "".join(site.described for site in sites))
        environ = {name: value for name, value in os.environ.items() if not name.startswith(OUR_PREFIXES)}
        places = {"LONGSTOP_DATA": str(home / "data"), "LONGSTOP_SOURCES": str(home / "sources.yaml")}
        with (home / "log").open("wb") as log:
            scraper = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "longstop", "scraper"),
                env={**environ, **QUICK, **places, **(settings or {})},
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            reader = await stack.enter_async_context(aclosing(SqliteHotReader(home / "data" / "hot.db")))
            with _MachineLag() as machine:
                seen = await _observe(scraper, reader, sites, home, seconds, lambda: _count(home, until) >= times)
            seen.machine_lag = machine.worst
            return seen
        finally:
            if scraper.returncode is None:
                scraper.kill()
                await scraper.wait()


def _count(home: Path, event: str) -> int:
    return (home / "log").read_bytes().replace(b" ", b"").count(f'"event":"{event}'.encode())


async def _observe(
    scraper: Process,
    reader: SqliteHotReader,
    sites: Sequence[HostileSite],
    home: Path,
    seconds: float,
    is_enough: Callable[[], bool],
) -> Observed:
    known = {f"{site.name}_{key}" for site in sites for key in site.site.matches}
    process, read_at = psutil.Process(scraper.pid), dict[str, float]()
    seen = Observed(
        ages=dict.fromkeys(known, 0.0), loop_lag=0.0, machine_lag=0.0, memory=0.0, exit_code=None, log=[], disk=0
    )
    started, until = None, monotonic() + START_SECONDS + seconds
    while scraper.returncode is None:
        now = monotonic()
        if now >= until and (started is None or now >= until + PATIENCE_SECONDS or is_enough()):
            break
        with suppress(psutil.Error):
            seen.memory = max(seen.memory, process.memory_info().rss / MEGABYTE)
        for record in await reader.records():
            if record.last_poll_monotonic is not None:
                read_at[str(record.ref)] = record.last_poll_monotonic
        if started is None and known <= read_at.keys():
            started, until = now, now + seconds
            for site in sites:
                site.is_attacking = True
        if started is not None:
            for ref in known:
                seen.ages[ref] = max(seen.ages[ref], monotonic() - read_at.get(ref, started))
            # A beat has the maximum of ten seconds: earlier ones have that of the start.
            lags = [beat.loop_lag_seconds or 0.0 for beat in await reader.beats() if now > started + LAG_WINDOW_SECONDS]
            seen.loop_lag = max([seen.loop_lag, *lags])
        await asyncio.sleep(0.1)
    seen.exit_code = scraper.returncode
    seen.disk = sum(each.stat().st_size for each in (home / "data").rglob("*") if each.is_file())
    lines = (home / "log").read_bytes().splitlines()
    seen.log = [msgspec.json.decode(line) for line in lines if line.startswith(b"{")]
    return seen
