"""What our browsers are compared with: crawlee's PlaywrightCrawler on the same pages.

It runs in an environment of its own (`requirements/bench.txt`), so it imports nothing of ours. Everything is left at
crawlee's defaults, except what makes the work the same, or crawlee faster: the same Chromium, memory for its queue in
place of the disk, a number of pages at one time that suits it, and no words.
"""

import asyncio
import ctypes
import json
import logging
import sys
from itertools import count, islice
from typing import Any

from crawlee import ConcurrencySettings, Request, service_locator  # type: ignore[import-not-found]
from crawlee.configuration import Configuration  # type: ignore[import-not-found]
from crawlee.crawlers import PlaywrightCrawler  # type: ignore[import-not-found]
from crawlee.storage_clients import MemoryStorageClient  # type: ignore[import-not-found]

_PR_SET_CHILD_SUBREAPER = 36


class Crawling:
    """A crawler that goes on between orders, with its browser open."""

    def __init__(self, program: str, targets: list[dict[str, str]], pages_at_once: int) -> None:
        self._targets = targets
        self._numbers = count()
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._left = 0
        self._is_done = asyncio.Event()
        self.crawler = PlaywrightCrawler(
            browser_type="chromium",
            headless=True,
            browser_launch_options={"executable_path": program},
            concurrency_settings=ConcurrencySettings(
                min_concurrency=pages_at_once, desired_concurrency=pages_at_once, max_concurrency=pages_at_once
            ),
            configure_logging=False,
            keep_alive=True,
        )
        self.crawler.pre_navigation_hook(self._listen)
        self.crawler.router.default_handler(self._take)

    async def navigate(self, captures: int) -> int:
        """Load this many pages in turn and wait for the response of each."""
        self._left = captures
        self._is_done.clear()
        await self.crawler.add_requests(
            [
                Request.from_url(target["page"], unique_key=str(number), user_data={"url": target["url"]})
                for number in islice(self._numbers, captures)
                for target in [self._targets[number % len(self._targets)]]
            ]
        )
        await self._is_done.wait()
        return captures

    async def _listen(self, context: Any) -> None:
        """Listen before the page is sent anywhere."""
        wanted = context.request.user_data["url"]
        answer = self._answers[context.request.unique_key] = asyncio.get_running_loop().create_future()

        def take(response: Any) -> None:
            if response.url == wanted and not answer.done():
                answer.set_result(response)

        context.page.on("response", take)

    async def _take(self, context: Any) -> None:
        response = await self._answers.pop(context.request.unique_key)
        body = json.loads(await response.body())
        if not context.request.user_data["url"].endswith(f"/{body['event']['id']}"):
            raise ValueError("this is another match")
        self._left -= 1
        if not self._left:
            self._is_done.set()


async def main() -> None:
    # Chromium's processes are adopted by us, so that their processor time is on our account.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    logging.disable(logging.CRITICAL)
    # On a busy machine it would wait for better times, and we for it.
    service_locator.set_configuration(Configuration(disable_browser_sandbox=True, max_used_cpu_ratio=1.0))
    service_locator.set_storage_client(MemoryStorageClient())
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    start = json.loads(await lines.readline())
    crawling = Crawling(start["program"], start["targets"], start["pages_at_once"])
    running = asyncio.create_task(crawling.crawler.run())
    print(json.dumps({"ready": True}), flush=True)
    while line := await lines.readline():
        print(json.dumps({"captures": await crawling.navigate(json.loads(line)["captures"])}), flush=True)
    crawling.crawler.stop()
    await running


if __name__ == "__main__":
    asyncio.run(main())
