"""Looks begin in the order of their urgency, no more than so many at a time; in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from longstop.telemetry.bus import Bus
from longstop.testing import VirtualClock, run_virtual
from longstop.watching.dispatcher import Dispatcher
from tests.memory import MemorySink
from tests.unit.watching.test_requests import request

Act = Callable[["Desk"], Awaitable[None]]


class Desk:
    """A dispatcher, and who began and ended when."""

    def __init__(self, cap: int) -> None:
        self.dispatcher = Dispatcher(clock=VirtualClock(), bus=Bus(), cap=cap)
        self.began: list[tuple[str, float]] = []
        self.ended: list[tuple[str, float]] = []
        self.tasks: dict[str, asyncio.Task[object]] = {}
        self.most_at_once = 0

    def ask(self, name: str, priority: int = 0, at: float = 0.0, seconds: float = 1.0) -> bool:
        async def look() -> None:
            task, loop = asyncio.current_task(), asyncio.get_running_loop()
            assert task is not None
            self.began.append((name, loop.time()))
            self.tasks[name] = task
            self.most_at_once = max(self.most_at_once, len(self.tasks))
            try:
                await asyncio.sleep(seconds)
            finally:
                del self.tasks[name]
                self.ended.append((name, loop.time()))

        return self.dispatcher.submit(request(name, priority, at), look)

    def play(self, act: Act, seconds: float) -> None:
        """Run the dispatcher in virtual time beside what a test does."""

        async def run() -> None:
            task = asyncio.create_task(self.dispatcher.run())
            await act(self)
            await asyncio.sleep(seconds)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()

        run_virtual(run())


@pytest.mark.req("MON-11")
def test_no_more_looks_are_under_way_than_the_cap_and_all_are_taken_in_the_end() -> None:
    async def act(desk: Desk) -> None:
        for number in range(10):
            desk.ask(f"M{number}")

    desk = Desk(cap=3)
    desk.play(act, 10)

    assert desk.most_at_once == 3
    assert [at for _, at in desk.began] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]


@pytest.mark.req("MON-11")
def test_a_place_that_becomes_free_goes_to_the_most_urgent_and_then_to_the_longest_waiting() -> None:
    async def act(desk: Desk) -> None:
        desk.ask("first", 2)
        await asyncio.sleep(0.1)
        desk.ask("over", 2, 0.1)
        desk.ask("soon", 1, 0.1)
        desk.ask("live and late", 0, 0.2)
        desk.ask("live", 0, 0.1)

    desk = Desk(cap=1)
    desk.play(act, 10)

    assert [name for name, _ in desk.began] == ["first", "live", "live and late", "soon", "over"]


def test_starts_that_are_spread_begin_each_at_its_time() -> None:
    async def act(desk: Desk) -> None:
        for number in range(5):
            desk.ask(f"M{number}", at=number * 0.4)

    desk = Desk(cap=10)
    desk.play(act, 5)

    assert [at for _, at in desk.began] == pytest.approx([0, 0.4, 0.8, 1.2, 1.6])


def test_one_that_comes_while_all_wait_for_later_begins_at_once() -> None:
    async def act(desk: Desk) -> None:
        desk.ask("later", at=100.0)
        await asyncio.sleep(5)
        desk.ask("now", at=5.0)

    desk = Desk(cap=2)
    desk.play(act, 200)

    assert desk.began == [("now", 5.0), ("later", 100.0)]


@pytest.mark.req("MON-11", "FLD-9")
def test_a_match_that_waits_or_is_looked_at_is_not_taken_a_second_time() -> None:
    answers: list[bool] = []

    async def act(desk: Desk) -> None:
        answers.extend([desk.ask("M1", seconds=5), desk.ask("M1")])
        await asyncio.sleep(1)
        answers.append(desk.ask("M1"))
        await asyncio.sleep(5)
        answers.append(desk.ask("M1", at=6.0))

    desk = Desk(cap=5)
    desk.play(act, 10)

    assert answers == [True, False, False, True]
    assert desk.began == [("M1", 0), ("M1", 6)]


def test_a_look_that_is_cancelled_frees_its_place_and_its_match_and_ends_nobody_else() -> None:
    async def act(desk: Desk) -> None:
        desk.ask("stuck", seconds=10_000)
        desk.ask("good", seconds=20)
        desk.ask("waits")
        await asyncio.sleep(10)
        desk.tasks["stuck"].cancel()
        await asyncio.sleep(5)
        desk.ask("stuck", at=15.0)

    desk = Desk(cap=2)
    desk.play(act, 100)

    assert desk.began == [("stuck", 0), ("good", 0), ("waits", 10), ("stuck", 15)]
    assert ("good", 20) in desk.ended


def test_what_waits_for_a_place_or_its_time_can_be_seen() -> None:
    seen: list[list[str]] = []

    async def act(desk: Desk) -> None:
        desk.ask("M1")
        desk.ask("M2")
        desk.ask("M3", at=50.0)
        for seconds in (0.5, 1.0):
            await asyncio.sleep(seconds)
            seen.append(sorted(each.ref.source_id for each in desk.dispatcher.waiting))

    Desk(cap=1).play(act, 100)

    assert seen == [["M2", "M3"], ["M3"]]


def test_work_that_raises_is_told_as_a_bug_and_the_others_go_on() -> None:
    sink = MemorySink()
    done: list[str] = []

    async def broken() -> None:
        raise ZeroDivisionError

    async def good() -> None:
        done.append("good")

    async def run() -> None:
        dispatcher = Dispatcher(clock=VirtualClock(), bus=Bus([sink]), cap=1)
        dispatcher.submit(request("M1"), broken)
        dispatcher.submit(request("M2"), good)
        task = asyncio.create_task(dispatcher.run())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_virtual(run())

    assert done == ["good"]
    assert [getattr(event, "error_type", None) for event in sink.events] == ["ZeroDivisionError"]


def test_stopping_ends_every_look_that_is_under_way() -> None:
    async def act(desk: Desk) -> None:
        for number in range(3):
            desk.ask(f"M{number}", seconds=10_000)

    desk = Desk(cap=2)
    desk.play(act, 7)

    assert sorted(desk.ended) == [("M0", 7), ("M1", 7)]
