"""A real scraper that reads small crex sites on sockets, some of them hostile, and what is seen of it from outside."""

import asyncio
import os
import sys
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
#: How long what is expected may take on a busy machine.
PATIENCE_SECONDS = 40.0


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
        self.authority = ""
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
                match.bowl("1")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            with suppress(ConnectionError):
                while (request := await read_request(reader)) is not None:
                    body = await self.attack(request)
                    writer.write(Response(body=body or self._truth(request)).encode(keeps_alive=True))
                    await writer.drain()
        finally:
            writer.close()
            self._answering.discard(task)

    def _truth(self, request: Request) -> bytes:
        query = "&".join(f"{name}={value}" for name, value in request.query.items())
        url = f"http://{self.authority}{request.path}?{query}"
        answer = self.site(FetchRequest(source="crex", url=url, method=request.method, body=request.body or None))
        assert isinstance(answer, bytes)
        return answer


class Observed(Struct, kw_only=True):
    """What was seen of the scraper."""

    #: By match, the greatest age once all matches had been read, in seconds.
    ages: dict[str, float]
    loop_lag: float
    #: The greatest resident memory, in megabytes.
    memory: float
    exit_code: int | None
    log: list[dict[str, Any]]
    #: Of all files in its data directory.
    disk: int

    def logged(self, name: str, ref: str = "") -> list[dict[str, Any]]:
        return [line for line in self.log if line.get("event") == name and ref in str(line)]

    def oldest(self, source: str, but: str = "-") -> float:
        return max(age for ref, age in self.ages.items() if ref.startswith(f"{source}_") and but not in ref)


async def scrape(
    home: Path,
    *sites: HostileSite,
    seconds: float,
    until: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Observed:
    """Run a scraper on these sites, and return what was seen of it within `seconds` of its first poll.

    On a busy machine it runs longer, until an event was logged.
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
            known = {f"{site.name}_{key}" for site in sites for key in site.site.matches}
            return await _observe(scraper, reader, known, home, seconds, until)
        finally:
            if scraper.returncode is None:
                scraper.kill()
                await scraper.wait()


def _is_logged(home: Path, event: str) -> bool:
    return f'"event":"{event}"'.encode() in (home / "log").read_bytes().replace(b" ", b"")


async def _observe(
    scraper: Process, reader: SqliteHotReader, known: set[str], home: Path, seconds: float, event: str | None
) -> Observed:
    process, read_at = psutil.Process(scraper.pid), dict[str, float]()
    seen = Observed(ages=dict.fromkeys(known, 0.0), loop_lag=0.0, memory=0.0, exit_code=None, log=[], disk=0)
    started, until = None, monotonic() + START_SECONDS + seconds
    while scraper.returncode is None:
        now = monotonic()
        if now >= until and (event is None or now >= until + PATIENCE_SECONDS or _is_logged(home, event)):
            break
        with suppress(psutil.Error):
            seen.memory = max(seen.memory, process.memory_info().rss / MEGABYTE)
        for record in await reader.records():
            if record.last_poll_monotonic is not None:
                read_at[str(record.ref)] = record.last_poll_monotonic
        if started is None and read_at:
            started, until = now, now + seconds
        if started is not None:
            for ref in known:
                seen.ages[ref] = max(seen.ages[ref], monotonic() - read_at.get(ref, started))
            lags = [beat.loop_lag_seconds or 0.0 for beat in await reader.beats()]
            seen.loop_lag = max(seen.loop_lag, *lags, 0.0)
        await asyncio.sleep(0.1)
    seen.exit_code = scraper.returncode
    seen.disk = sum(each.stat().st_size for each in (home / "data").rglob("*") if each.is_file())
    lines = (home / "log").read_bytes().splitlines()
    seen.log = [msgspec.json.decode(line) for line in lines if line.startswith(b"{")]
    return seen
