"""While memory is low, new matches are refused, and idle ones are dropped."""

import pytest

from longstop.supervision.memory_for_new_matches import IDLE_SECONDS, RETRY_SECONDS, MemoryCheck
from longstop.telemetry.events.matches import WatchStopped
from longstop.telemetry.events.processes import MemoryInsufficient
from tests.unit.watching.running import Running, match, script

MB = 1 << 20


class FakeMemoryCheck(MemoryCheck):
    """A check whose free memory a test sets."""

    def __init__(self, free_mb: int) -> None:
        super().__init__(500 * MB, self._free)
        self.free_mb = free_mb
        self.times = 0

    def _free(self) -> int:
        self.times += 1
        return self.free_mb * MB


@pytest.mark.req("EC6")
def test_while_memory_is_short_no_match_is_let_in_and_memory_is_measured_once_a_minute() -> None:
    check = FakeMemoryCheck(free_mb=499)
    running = Running(match("M1", "1"), match("M2", "1"), match("M3", "1"), memory_check=check)

    script(running, until=RETRY_SECONDS + 30.0)

    assert check.times == 2
    assert running.hot.rows == {}
    refused, _ = running.sink.named("memory.insufficient")
    assert isinstance(refused, MemoryInsufficient)
    assert (refused.wanted, refused.available_bytes, refused.seconds) == (3, 499 * MB, 60.0)


def test_without_a_new_match_memory_is_not_measured() -> None:
    check = FakeMemoryCheck(free_mb=600)

    script(Running(match("M1", "1"), memory_check=check), until=60.0)

    assert check.times == 1


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
