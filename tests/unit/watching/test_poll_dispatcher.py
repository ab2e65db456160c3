"""The queue of polls and its loop: order, and at most `cap` at a time; in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from longstop.model.match import MatchRef, Priority
from longstop.telemetry.bus import Bus
from longstop.testing import VirtualClock, run_virtual
from longstop.watching.poll_dispatcher import Dispatcher, ResourceType, ScrapeQueue, ScrapeRequest
from tests.memory import MemorySink


def request(name: str = "M1", priority: int = 0, at: float = 0.0, **changes: ResourceType) -> ScrapeRequest:
    resource = changes.get("resource", ResourceType.SCORECARD)
    return ScrapeRequest(
        priority=priority,
        ref=MatchRef("crex", name),
        resource=resource,
        scheduled_at=at,
        request_id=f"{name}-{resource}-{at}",
    )


def _names(queue: ScrapeQueue, now: float) -> list[str]:
    taken = []
    while (found := queue.take(now)) is not None:
        taken.append(found.ref.source_id)
    return taken


@pytest.mark.req("MON-11")
def test_requests_go_by_priority_and_then_by_time() -> None:
    queue = ScrapeQueue()
    queue.put(request("over", Priority.COMPLETED, 1.0))
    queue.put(request("late", Priority.LIVE, 3.0))
    queue.put(request("soon", Priority.IMMINENT, 0.0))
    queue.put(request("live", Priority.LIVE, 2.0))

    assert _names(queue, 10.0) == ["live", "late", "soon", "over"]


@pytest.mark.req("MON-11")
def test_nothing_begins_before_its_time_however_urgent() -> None:
    queue = ScrapeQueue()
    queue.put(request("live", Priority.LIVE, 5.0))
    queue.put(request("over", Priority.COMPLETED, 0.0))

    assert _names(queue, 4.9) == ["over"]
    assert queue.next_at() == 5.0
    assert _names(queue, 5.0) == ["live"]


@pytest.mark.req("MON-11")
def test_a_match_has_one_request_of_each_resource_waiting_or_under_way() -> None:
    queue = ScrapeQueue()

    first = queue.put(request(at=1.0))
    while_waiting = queue.put(request(at=2.0))
    taken = queue.take(1.0)
    under_way = queue.put(request(at=3.0))
    another = queue.put(request(resource=ResourceType.STATS))
    assert taken is not None
    queue.done(taken)
    after = queue.put(request(at=4.0))

    assert (first, while_waiting, under_way, another, after) == (True, False, False, True, True)


def test_equal_requests_go_in_the_order_in_which_they_came() -> None:
    queue = ScrapeQueue()
    for name in ("c", "a", "b"):
        queue.put(request(name))

    assert _names(queue, 0.0) == ["c", "a", "b"]


def test_a_request_names_its_domain() -> None:
    assert request().domain == "crex"


class QueueMachine(RuleBasedStateMachine):
    """Compares the queue with a list that is searched each time."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = ScrapeQueue()
        self.waiting: list[ScrapeRequest] = []
        self.under_way: list[ScrapeRequest] = []
        self.now = 0.0

    @rule(
        name=st.sampled_from(["a", "b", "c", "d", "e"]),
        resource=st.sampled_from([ResourceType.SCORECARD, ResourceType.STATS]),
        priority=st.integers(0, 2),
        ahead=st.sampled_from([-1.0, 0.0, 1.0, 2.0, 5.0]),
    )
    def put(self, name: str, resource: ResourceType, priority: int, ahead: float) -> None:
        wanted = request(name, priority, self.now + ahead, resource=resource)
        is_taken = any(each.slot == wanted.slot for each in self.waiting + self.under_way)

        assert self.queue.put(wanted) is not is_taken
        if not is_taken:
            self.waiting.append(wanted)

    @rule()
    def take(self) -> None:
        ready = [each for each in self.waiting if each.scheduled_at <= self.now]
        expected = min(ready, key=lambda each: (each.priority, each.scheduled_at), default=None)

        found = self.queue.take(self.now)

        assert found is expected
        if found is not None:
            self.waiting.remove(found)
            self.under_way.append(found)

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        ended = data.draw(st.sampled_from(self.under_way))
        self.under_way.remove(ended)

        self.queue.done(ended)

    @invariant()
    def what_waits_is_known(self) -> None:
        assert sorted(each.request_id for each in self.queue.waiting) == sorted(
            each.request_id for each in self.waiting
        )

    @invariant()
    def nobody_sleeps_beyond_the_next_time(self) -> None:
        later = [each.scheduled_at for each in self.waiting if each.scheduled_at > self.now]
        next_at = self.queue.next_at()
        assert not later or (next_at is not None and next_at <= min(later))


QueueMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=60)
TestQueue = QueueMachine.TestCase


# --- the loop ---------------------------------------------------------------------------------------------------------


Act = Callable[["Desk"], Awaitable[None]]


class Desk:
    """A dispatcher, with the start and end times of its work."""

    def __init__(self, cap: int) -> None:
        self.dispatcher = Dispatcher(clock=VirtualClock(), bus=Bus(), cap=cap)
        self.began: list[tuple[str, float]] = []
        self.ended: list[tuple[str, float]] = []
        self.tasks: dict[str, asyncio.Task[object]] = {}
        self.most_at_once = 0

    def ask(self, name: str, priority: int = 0, at: float = 0.0, seconds: float = 1.0) -> bool:
        async def poll() -> None:
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

        return self.dispatcher.submit(request(name, priority, at), poll)

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
def test_no_more_polls_are_under_way_than_the_cap_and_all_are_taken_in_the_end() -> None:
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
def test_a_match_that_waits_or_is_polled_is_not_taken_a_second_time() -> None:
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


def test_a_cancelled_poll_frees_its_slot_and_its_match_and_ends_no_other() -> None:
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


def test_work_that_raises_is_reported_as_a_bug_and_the_others_go_on() -> None:
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


def test_stopping_ends_every_poll_that_is_under_way() -> None:
    async def act(desk: Desk) -> None:
        for number in range(3):
            desk.ask(f"M{number}", seconds=10_000)

    desk = Desk(cap=2)
    desk.play(act, 7)

    assert sorted(desk.ended) == [("M0", 7), ("M1", 7)]
