"""A fetcher that is made afresh while others use it."""

import asyncio

import pytest

from longstop.errors import SourceUnreachable
from longstop.fetching.base import FetchRequest, Page
from longstop.fetching.renewable import RenewableFetcher
from longstop.testing import ScriptedFetcher, run_virtual

REQUEST = FetchRequest(source="crex", url="https://api.test/live")


class Numbered(ScriptedFetcher):
    """Answers with its number after a second, and knows how often it was closed."""

    def __init__(self, number: int) -> None:
        super().__init__(lambda _: b"%d" % number, delay_seconds=1.0)
        self.closed = 0

    async def aclose(self) -> None:
        self.closed += 1
        await super().aclose()


class Workbench:
    """A renewable fetcher, and all that it has made."""

    def __init__(self) -> None:
        self.made: list[Numbered] = []
        self.fetcher = RenewableFetcher(self._make)

    def _make(self) -> Numbered:
        self.made.append(Numbered(len(self.made)))
        return self.made[-1]

    @property
    def closed(self) -> list[int]:
        return [each.closed for each in self.made]

    def begin(self) -> asyncio.Task[Page]:
        return asyncio.create_task(self.fetcher.fetch(REQUEST))


def test_new_requests_go_by_the_new_one_and_old_ones_end_by_the_old() -> None:
    async def run() -> None:
        bench = Workbench()
        first, second = bench.begin(), bench.begin()
        await asyncio.sleep(0.5)

        await bench.fetcher.renew()
        third = bench.begin()
        under_way = bench.closed
        bodies = [(await each).body for each in (first, second, third)]

        assert bodies == [b"0", b"0", b"1"]
        assert (under_way, bench.closed) == ([0, 0], [1, 0])

    run_virtual(run())


def test_an_idle_one_is_closed_at_once() -> None:
    async def run() -> None:
        bench = Workbench()
        await bench.fetcher.fetch(REQUEST)

        await bench.fetcher.renew()

        assert bench.closed == [1, 0]
        assert (await bench.fetcher.fetch(REQUEST)).body == b"1"

    run_virtual(run())


def test_an_old_one_is_closed_by_the_last_who_uses_it_even_if_that_is_cancelled() -> None:
    async def run() -> None:
        bench = Workbench()
        stuck = bench.begin()
        await asyncio.sleep(0.5)
        await bench.fetcher.renew()

        stuck.cancel()
        await asyncio.wait([stuck])

        assert (stuck.cancelled(), bench.closed) == (True, [1, 0])

    run_virtual(run())


def test_renewing_again_and_again_leaves_none_open_but_the_last() -> None:
    async def run() -> None:
        bench = Workbench()
        tasks = []
        for _ in range(5):
            tasks.append(bench.begin())
            await asyncio.sleep(0.1)
            await bench.fetcher.renew()
        await asyncio.wait(tasks)

        assert bench.closed == [1, 1, 1, 1, 1, 0]

    run_virtual(run())


def test_a_new_one_that_cannot_be_made_leaves_the_old_in_place() -> None:
    made: list[Numbered] = []

    def make() -> Numbered:
        if made:
            raise OSError("no more files")
        made.append(Numbered(0))
        return made[0]

    async def run() -> None:
        fetcher = RenewableFetcher(make)

        with pytest.raises(OSError, match="no more files"):
            await fetcher.renew()

        assert (await fetcher.fetch(REQUEST)).body == b"0"

    run_virtual(run())


def test_closing_closes_all_that_are_still_open() -> None:
    async def run() -> None:
        bench = Workbench()
        task = bench.begin()
        await asyncio.sleep(0.5)
        await bench.fetcher.renew()

        await bench.fetcher.aclose()

        assert bench.closed == [1, 1]
        assert (await task).body == b"0"
        with pytest.raises(SourceUnreachable):
            await bench.fetcher.fetch(REQUEST)

    run_virtual(run())
