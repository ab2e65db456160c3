"""Unresponsive children: how silence is counted, and what follows."""

import asyncio
from typing import cast

import pytest

from longstop.model.recovery import RecoveryKind
from longstop.supervision.heartbeat_watch import (
    COUNTED_SECONDS,
    FIRST_PATIENCE_SECONDS,
    HeartbeatMonitor,
    HeartbeatWatch,
)
from longstop.supervision.supervised_child import ChildRunner
from longstop.telemetry.bus import Bus
from longstop.testing import VirtualClock, run_virtual
from tests.memory import MemorySink

pytestmark = pytest.mark.req("NFR-005")


def checked(beats: str, watch: HeartbeatWatch | None = None, *, pid: int = 7, started: float = 0.0) -> HeartbeatWatch:
    """Return the watch after a check each second: `x` for a heartbeat, `-` for none."""
    watch = watch or HeartbeatWatch(patience=5.0)
    for second, beat in enumerate(beats):
        watch = watch.check(pid, started + second, has_beaten=beat == "x")
    return watch


def test_a_child_that_sends_heartbeats_is_responsive() -> None:
    assert not checked("x----" * 100).is_unresponsive


def test_a_silent_child_is_unresponsive_after_the_patience() -> None:
    assert not checked("xx----").is_unresponsive
    assert checked("xx-----").is_unresponsive
    assert checked("xx-----").silent_seconds == 5.0


def test_a_child_without_a_first_heartbeat_has_more_time() -> None:
    seconds = round(FIRST_PATIENCE_SECONDS)

    assert not checked("-" * seconds).is_unresponsive
    assert checked("-" * (seconds + 1)).is_unresponsive


def test_a_patience_above_the_first_one_counts_from_the_start() -> None:
    assert not checked("-" * 90, HeartbeatWatch(patience=100.0)).is_unresponsive


def test_the_next_life_begins_without_the_silence_of_the_last() -> None:
    silent = checked("xx----")

    restarted = checked("-" * 10, silent, pid=8, started=6.0)

    assert not restarted.is_unresponsive
    assert not restarted.has_beaten


def test_one_that_is_given_up_is_given_up_once_and_again_when_it_is_still_there_much_later() -> None:
    given_up = checked("xx-----")

    later = checked("-", given_up, started=7.0)

    assert not later.is_unresponsive
    assert checked("-" * 60, later, started=8.0).is_unresponsive


def test_time_without_checks_does_not_count_as_silence() -> None:
    watch = checked("xx")

    resumed = watch.check(7, 3600.0, has_beaten=False)

    assert resumed.silent_seconds == COUNTED_SECONDS
    assert not resumed.is_unresponsive


class SilentRunner:
    """A runner whose child sends one heartbeat and no other."""

    name = "scraper"
    pid = 4711

    def __init__(self, *, is_stopping: bool) -> None:
        self.is_stopping = is_stopping
        self.restarted: list[int] = []
        self._beats = 1

    def has_beaten(self) -> bool:
        self._beats -= 1
        return self._beats >= 0

    async def restart(self, pid: int, kind: RecoveryKind, _reason: str, *, within: float) -> None:
        assert (kind, within) == (RecoveryKind.HARD_RESTART, 0)
        self.restarted.append(pid)


@pytest.mark.parametrize(("is_stopping", "restarted"), [(False, [4711]), (True, [])], ids=["at work", "asked to stop"])
def test_a_silent_child_is_restarted_unless_it_is_stopping(is_stopping: bool, restarted: list[int]) -> None:
    runner, sink = SilentRunner(is_stopping=is_stopping), MemorySink()

    async def monitor_heartbeat() -> None:
        monitor = HeartbeatMonitor([cast(ChildRunner, runner)], patience=5.0, bus=Bus([sink]), clock=VirtualClock())
        task = asyncio.create_task(monitor.run())
        await asyncio.sleep(8)
        task.cancel()

    run_virtual(monitor_heartbeat())

    assert runner.restarted[:1] == restarted
    assert bool(sink.named("process.unresponsive")) is not is_stopping
