"""Memory limits: when a child is restarted or killed."""

import asyncio
import errno
from collections.abc import Collection
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.model.recovery import RecoveryKind
from longstop.process import processes
from longstop.settings import Settings
from longstop.supervision.memory_watch import (
    MEGABYTE,
    MemoryLevel,
    MemoryLimits,
    MemoryMonitor,
    MemoryWatch,
    within_container,
)
from longstop.supervision.supervised_child import ChildRunner
from longstop.telemetry.bus import Bus
from tests.memory import MemorySink

LIMITS = MemoryLimits(soft_bytes=1000, hard_bytes=1500)
REPORT, RECOVERED, RESTART, KILL = (
    MemoryLevel.HIGH,
    MemoryLevel.NORMAL,
    MemoryLevel.SOFT,
    MemoryLevel.HARD,
)


def acts(*sizes: int, pid: int = 1) -> list[MemoryLevel | None]:
    watch = MemoryWatch(limits=LIMITS, pid=pid)
    return [watch.observe(pid, size) for size in sizes]


@pytest.mark.req("FR-006")
def test_the_limits_are_those_of_the_specification() -> None:
    memory = Settings().scraper.resources.memory

    assert (memory.soft_limit_mb, memory.hard_limit_mb, memory.min_available_mb) == (1536, 2048, 500)


@pytest.mark.req("FR-006", "US2.1")
@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((799, 799), [None, None]),
        ((799, 800), [None, REPORT]),  # 80 % of soft
        ((800, 799, 800, 701, 999), [REPORT, None, None, None, None]),  # once, however it sways
        ((800, 699), [REPORT, RECOVERED]),
        ((800, 699, 800), [REPORT, RECOVERED, REPORT]),
        ((800, 1000), [REPORT, RESTART]),
        ((10, 1000), [None, RESTART]),  # a jump
        ((1000, 1000, 1499), [RESTART, None, None]),  # asked once
        ((1000, 10), [RESTART, None]),  # and not taken back
        ((1000, 1500), [RESTART, KILL]),
        ((10, 1500), [None, KILL]),
        ((1500, 1500, 10), [KILL, None, None]),  # killed once
    ],
)
def test_each_size_means_one_thing(sizes: tuple[int, ...], expected: list[MemoryLevel | None]) -> None:
    assert acts(*sizes) == expected


def test_the_next_process_starts_normal_and_the_old_level_is_reported_as_over() -> None:
    watch = MemoryWatch(limits=LIMITS)
    watch.observe(1, 1000)

    assert watch.observe(2, 100) is RECOVERED
    assert watch.observe(2, 1000) is RESTART


def test_a_next_process_that_is_too_large_at_once_is_acted_on_at_once() -> None:
    watch = MemoryWatch(limits=LIMITS)
    watch.observe(1, 1500)

    assert watch.observe(2, 1600) is KILL


@given(st.lists(st.integers(min_value=0, max_value=2000), max_size=60))
def test_one_process_is_reported_restarted_and_killed_in_turn_and_never_twice(sizes: list[int]) -> None:
    reported = [act for act in acts(*sizes) if act is not None]

    assert reported.count(RESTART) <= 1
    assert reported.count(KILL) <= 1
    assert KILL not in reported or reported[-1] is KILL
    assert (KILL in reported) == any(size >= 1500 for size in sizes)
    for one, other in pairwise(reported):
        assert one is not other


def test_without_a_container_the_operators_limits_count() -> None:
    assert within_container(LIMITS, None) == LIMITS


def test_a_small_container_lowers_both_limits_below_its_own() -> None:
    wanted = MemoryLimits(soft_bytes=1536 * MEGABYTE, hard_bytes=2048 * MEGABYTE)

    limits = within_container(wanted, 1000 * MEGABYTE)

    assert limits == MemoryLimits(soft_bytes=700 * MEGABYTE, hard_bytes=850 * MEGABYTE)


def test_a_large_container_changes_nothing() -> None:
    assert within_container(LIMITS, 1_000_000) == LIMITS


MEGABYTE_LIMITS = MemoryLimits(soft_bytes=100 * MEGABYTE, hard_bytes=200 * MEGABYTE)


class HeavyRunner:
    """A runner whose child is above the hard limit; its first kills fail."""

    name = "scraper"
    pid = 4711
    is_stopping = False

    def __init__(self, failures: int) -> None:
        self._failures = failures
        self.restarted: list[tuple[int, RecoveryKind]] = []

    def tree(self, _among: Collection[processes.Process] | None = None) -> list[processes.Process]:
        return [
            processes.Process(
                identity=processes.Identity(self.pid, 1),
                name="python",
                state="S",
                parent=1,
                session=1,
                cpu_seconds=0,
                rss_bytes=300 * MEGABYTE,
            )
        ]

    async def restart(self, pid: int, kind: RecoveryKind, _reason: str, *, within: float) -> None:
        assert within == 0
        self.restarted.append((pid, kind))
        if len(self.restarted) <= self._failures:
            raise OSError(errno.EMFILE, "Too many open files")


async def measure(runner: HeavyRunner, times: int) -> MemorySink:
    sink = MemorySink()
    monitor = MemoryMonitor([cast(ChildRunner, runner)], MEGABYTE_LIMITS, bus=Bus([sink]), stop_within=1.0)
    for _ in range(times):
        await monitor.measure()
        await asyncio.sleep(0)  # what it began is done
    return sink


@pytest.mark.req("FR-006")
async def test_a_kill_that_failed_is_retried_at_the_next_measurement() -> None:
    runner = HeavyRunner(failures=2)

    sink = await measure(runner, times=6)

    assert runner.restarted == [(4711, RecoveryKind.HARD_RESTART)] * 3
    assert len(sink.named("poll.postponed")) == 2


async def test_a_child_that_is_stopping_is_not_measured() -> None:
    runner = HeavyRunner(failures=0)
    runner.is_stopping = True

    sink = await measure(runner, times=2)

    assert (runner.restarted, sink.events) == ([], [])
