"""Longstop's browsers as a measured process: pages are navigated, replayed, left open and closed as the lines say."""

import asyncio
import sys
from itertools import count, islice
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, TextIO
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from pydantic import SecretStr

from bench.browser_setup import make_fetcher, make_pool
from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind, BrowserPolicy, Mode
from longstop.fetching.browser.fetcher import BrowserFetcher
from longstop.fetching.browser.proxy_sessions import ProxyAccount, ProxyRing

#: Requests of one round that are under way at one time.
AT_ONCE = 4
#: After its first answer a page goes on loading what it may.
SETTLE_SECONDS = 2.0

#: Every answer comes from a page that was loaded for it.
NAVIGATING = BrowserPolicy(modes=(Mode.NAVIGATE,), fresh_seconds=0)
WARM = BrowserPolicy(modes=(Mode.NAVIGATE, Mode.PAGE, Mode.HTTP))
#: Pages that were loaded once stay open.
OPEN = BrowserPolicy(modes=(Mode.NAVIGATE,))


class Target(Struct, frozen=True, kw_only=True):
    """A page, and the answer that its script gets."""

    page: str
    url: str


class Start(Struct, frozen=True, kw_only=True):
    """The first line."""

    program: str
    targets: tuple[Target, ...]
    #: The port of the proxy that counts bytes.
    proxy_port: int


class Ours:
    """One pool, and a fetcher for each way of reading; each has a browser of its own, started when it is needed."""

    def __init__(self, start: Start, home: Path) -> None:
        self._targets = start.targets
        self._proxy_port = start.proxy_port
        self._numbers = count()
        self._host = urlsplit(start.targets[0].url).netloc
        self._pool = make_pool(home, start.program)
        self._fetchers: dict[str, BrowserFetcher] = {}

    async def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        match order["do"]:
            case "navigate":
                return await self._capture(self._fetcher("navigate", NAVIGATING), order["captures"])
            case "warm up":
                return await self._warm_up()
            case "replay":
                return await self._capture(self._fetcher("replay", WARM), order["captures"])
            case "open":
                return await self._open(order["pages"])
            case "load blocked":
                return await self._load_blocked()
            case "load all":
                return await self._load_all()
            case other:
                raise ValueError(f"{other!r} is no order")

    async def aclose(self) -> int:
        """Close everything; return how many contexts stay open in spite of it."""
        for fetcher in self._fetchers.values():
            await fetcher.aclose()
        left = sum(each.contexts for each in self._pool.stats())
        await self._pool.aclose()
        return left

    async def _capture(self, fetcher: BrowserFetcher, captures: int) -> dict[str, Any]:
        waiting = [self._targets[number % len(self._targets)] for number in islice(self._numbers, captures)]

        async def take_turns() -> None:
            while waiting:
                await _fetch(fetcher, waiting.pop())

        await asyncio.gather(*(take_turns() for _ in range(AT_ONCE)))
        return {"captures": captures, "mode": fetcher.mode}

    async def _warm_up(self) -> dict[str, Any]:
        fetcher = self._fetcher("replay", WARM)
        while fetcher.mode is not Mode.HTTP:
            await _fetch(fetcher, self._targets[0])
        return {"mode": fetcher.mode}

    async def _open(self, pages: int) -> dict[str, Any]:
        """Open this many pages and wait for the first response of each."""
        fetcher = self._fetcher("open", OPEN)
        await asyncio.gather(*(_fetch(fetcher, target) for target in self._targets[:pages]))
        await asyncio.sleep(SETTLE_SECONDS)
        return {"pages": sum(len(session.engine.addresses) for session in fetcher.sessions)}

    async def _load_blocked(self) -> dict[str, Any]:
        """Load a page as we do, through the proxy that counts."""
        account = ProxyAccount(
            host="127.0.0.1", port=self._proxy_port, username="blocked", password=SecretStr("password")
        )
        ring = ProxyRing(account, sessions=1, new_name=lambda: token_hex(4), now=monotonic())
        await _fetch(self._fetcher("weighed", NAVIGATING, ring), self._targets[0])
        await asyncio.sleep(SETTLE_SECONDS)
        return {}

    async def _load_all(self) -> dict[str, Any]:
        """Load the same page in the same browser with nothing blocked, through the same proxy."""
        browser = self._pool.browser("weighed", BrowserKind.SHELL)
        engine = await browser.acquire()
        proxy = {"server": f"http://127.0.0.1:{self._proxy_port}", "bypass": "<-loopback>"}
        context = await engine.new_context(proxy={**proxy, "username": "all", "password": "password"})
        page = await context.new_page()
        await page.goto(self._targets[0].page, wait_until="load")
        await asyncio.sleep(SETTLE_SECONDS)
        await context.close()
        browser.release(engine)
        return {}

    def _fetcher(self, name: str, browsing: BrowserPolicy, proxies: ProxyRing | None = None) -> BrowserFetcher:
        if name not in self._fetchers:
            self._fetchers[name] = make_fetcher(self._pool, name, host=self._host, browsing=browsing, proxies=proxies)
        return self._fetchers[name]


async def _fetch(fetcher: BrowserFetcher, target: Target) -> None:
    page = await fetcher.fetch(FetchRequest(source="sofascore", url=target.url, page=target.page))
    if not target.url.endswith(f"/{msgspec.json.decode(page.body)['event']['id']}"):
        raise ValueError("this is another match")


async def main(out: TextIO) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    start = msgspec.json.decode(await lines.readline(), type=Start)
    with TemporaryDirectory(prefix="longstop-bench-") as home:
        ours = Ours(start, Path(home))
        _say(out, {"ready": True})
        try:
            while (line := await lines.readline()) and (order := msgspec.json.decode(line))["do"] != "close":
                _say(out, await ours.obey(order))
        finally:
            left = await ours.aclose()
        _say(out, {"contexts_left": left})


def _say(out: TextIO, answer: dict[str, Any]) -> None:
    print(msgspec.json.encode(answer).decode(), file=out, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.stdout))
