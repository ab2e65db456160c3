"""While memory is low, new matches are refused, and idle ones are dropped."""

import asyncio

import pytest

from longstop.supervision.resources import IDLE_SECONDS, RETRY_SECONDS, MemoryCheck
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import WatchStopped
from longstop.telemetry.events.processes import MemoryInsufficient
from longstop.testing import VirtualClock, run_virtual
from longstop.watching.admission import MatchAdmission
from tests.memory import MemorySink
from tests.unit.watching.running import Running, match, script

MB = 1 << 20


class FakeMemoryCheck(MemoryCheck):
    """A check whose free memory a test sets."""

    def __init__(self, free_mb: int) -> None:
        super().__init__(500 * MB, lambda: self.free_mb * MB)
        self.free_mb = free_mb


def admission_for(check: FakeMemoryCheck, sink: MemorySink) -> MatchAdmission:
    return MatchAdmission("crex", memory_check=check, clock=VirtualClock(), bus=Bus([sink]))


@pytest.mark.req("EC6")
def test_while_memory_is_short_nobody_is_let_in_and_the_room_is_asked_once_a_minute() -> None:
    check, sink = FakeMemoryCheck(free_mb=499), MemorySink()

    async def play() -> list[bool]:
        admission, said = admission_for(check, sink), []
        said.append(admission.admits(3))
        check.free_mb = 600
        await asyncio.sleep(RETRY_SECONDS - 1)
        said.append(admission.admits(3))
        await asyncio.sleep(2)
        said.append(admission.admits(3))
        return said

    assert run_virtual(play()) == [False, False, True]
    (refused,) = sink.named("memory.insufficient")
    assert isinstance(refused, MemoryInsufficient)
    assert (refused.wanted, refused.available_bytes, refused.seconds) == (3, 499 * MB, 60.0)


def test_who_wants_nothing_asks_for_no_room() -> None:
    sink = MemorySink()

    async def play() -> bool:
        return admission_for(FakeMemoryCheck(free_mb=1), sink).admits(0)

    assert run_virtual(play())
    assert not sink.events


@pytest.mark.req("EC6")
def test_idle_ones_are_shown_out_only_while_memory_is_short_and_the_longest_idle_first() -> None:
    check = FakeMemoryCheck(free_mb=100)

    async def play() -> tuple[list[str], list[str]]:
        admission = admission_for(check, MemorySink())
        now = VirtualClock().monotonic()
        active = {"new": now, "old": now - IDLE_SECONDS - 5, "older": now - IDLE_SECONDS - 50}
        before = admission.idle(active)
        admission.admits(1)
        return before, admission.idle(active)

    assert run_virtual(play()) == ([], ["older", "old"])


@pytest.mark.req("EC6")
def test_a_new_match_waits_for_memory_and_comes_in_by_itself_while_the_others_go_on() -> None:
    check = FakeMemoryCheck(free_mb=600)
    one, two = match("M1", "1"), match("M2", "1")
    two.is_listed = False
    running = Running(one, two, memory_check=check)

    def shorten() -> None:
        check.free_mb = 100
        two.is_listed = True

    def free() -> None:
        one.bowl("4")
        check.free_mb = 600

    watched: list[set[str]] = []

    def note() -> None:
        watched.append({str(record.ref) for record in running.scheduler.records})

    script(running, (5.0, shorten), (20.0, free), (40.0, note), (75.0, note), until=76.0)

    assert watched == [{"crex_M1"}, {"crex_M1", "crex_M2"}]
    assert running.age("M1", 76.0) < 5


@pytest.mark.req("EC6")
def test_a_match_that_is_over_and_idle_is_let_go_for_a_new_one() -> None:
    check = FakeMemoryCheck(free_mb=600)
    over, new = match("M1", "1"), match("M2", "1")
    over.headline, over.is_listed = "Reds won by 3 runs", True
    new.is_listed = False
    running = Running(over, new, memory_check=check)

    def shorten() -> None:
        check.free_mb = 100
        new.is_listed = True

    script(running, (IDLE_SECONDS + 60.0, shorten), until=IDLE_SECONDS + 180.0)

    (ended,) = running.sink.named("watch.stopped")
    assert isinstance(ended, WatchStopped)
    assert ended.ref == "crex_M1"
    assert not running.scheduler.records
