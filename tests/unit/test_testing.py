"""Virtual time and the scripted fetcher."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from longstop import testing
from longstop.errors import SourceFailed, SourceUnreachable
from longstop.fetching.base import FetchRequest
from longstop.testing import START, ScriptedFetcher, VirtualClock, page, run_virtual

LIVE = FetchRequest(source="crex", url="https://crex.com/live")
LIST = FetchRequest(source="crex", url="https://crex.com/list")


async def _elapsed() -> float:
    return asyncio.get_running_loop().time()


def test_an_hour_passes_in_milliseconds() -> None:
    started = time.monotonic()

    run_virtual(asyncio.sleep(3600))

    assert time.monotonic() - started < 20


def test_sleeps_add_up_to_the_exact_moment() -> None:
    async def naps() -> float:
        for _ in range(3):
            await asyncio.sleep(0.25)
        return await _elapsed()

    assert run_virtual(naps()) == 0.75


def test_a_timeout_ends_at_its_virtual_moment() -> None:
    async def wait() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await asyncio.Event().wait()
        return await _elapsed()

    assert run_virtual(wait()) == 60


def test_a_task_group_takes_as_long_as_its_longest_child() -> None:
    async def group() -> float:
        async with asyncio.TaskGroup() as tasks:
            for seconds in (5, 30, 10):
                tasks.create_task(asyncio.sleep(seconds))
        return await _elapsed()

    assert run_virtual(group()) == 30


def test_timers_fire_in_their_order() -> None:
    async def race() -> list[int]:
        order: list[int] = []
        async with asyncio.TaskGroup() as tasks:
            for seconds in (3, 1, 2):
                tasks.create_task(_note(order, seconds))
        return order

    async def _note(order: list[int], seconds: int) -> None:
        await asyncio.sleep(seconds)
        order.append(seconds)

    assert run_virtual(race()) == [1, 2, 3]


def test_the_clock_goes_with_the_loop() -> None:
    async def moments() -> tuple[datetime, datetime, float]:
        clock = VirtualClock()
        before = clock.now()
        await asyncio.sleep(90)
        return before, clock.now(), clock.monotonic()

    assert run_virtual(moments()) == (START, START + timedelta(seconds=90), 90)


def test_the_clock_starts_at_the_given_moment() -> None:
    start = datetime(2024, 6, 29, tzinfo=UTC)

    async def now() -> datetime:
        return VirtualClock(start).now()

    assert run_virtual(now()) == start


def test_work_in_a_thread_wakes_a_loop_without_timers() -> None:
    assert run_virtual(asyncio.to_thread(sum, [1, 2])) == 3


def test_a_loop_that_nothing_can_wake_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "STUCK_AFTER_SECONDS", 0)

    with pytest.raises(RuntimeError, match="deadlock"):
        run_virtual(asyncio.Event().wait())


def test_a_function_may_change_its_answer() -> None:
    bodies = iter([b"1", b"2"])
    fetcher = ScriptedFetcher(lambda _: next(bodies))

    async def ask() -> list[bytes]:
        return [(await fetcher.fetch(LIVE)).body for _ in range(2)]

    assert run_virtual(ask()) == [b"1", b"2"]
    assert fetcher.requests == [LIVE, LIVE]


def test_a_whole_page_is_given_as_it_is() -> None:
    whole = page(b"{}", request=LIVE, status=203, headers={"etag": "x"})

    assert run_virtual(ScriptedFetcher(lambda _: whole).fetch(LIVE)) is whole


def test_an_error_is_raised_again_for_each_request() -> None:
    fetcher = ScriptedFetcher(lambda _: SourceFailed("answered 500"))

    async def ask() -> list[str]:
        errors = []
        for request in (LIVE, LIST):
            with pytest.raises(SourceFailed) as caught:
                await fetcher.fetch(request)
            errors.append(str(caught.value))
        return errors

    assert run_virtual(ask()) == [
        "crex GET https://crex.com/live: answered 500",
        "crex GET https://crex.com/list: answered 500",
    ]


def test_an_answer_takes_its_virtual_time() -> None:
    async def ask() -> float:
        await ScriptedFetcher(lambda _: b"", delay_seconds=7).fetch(LIVE)
        return await _elapsed()

    assert run_virtual(ask()) == 7


def test_a_closed_fetcher_brings_nothing() -> None:
    fetcher = ScriptedFetcher(lambda _: b"")

    async def ask() -> None:
        await fetcher.aclose()
        await fetcher.fetch(LIVE)

    with pytest.raises(SourceUnreachable):
        run_virtual(ask())
