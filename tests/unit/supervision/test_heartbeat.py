"""Unresponsive children: how silence is counted, and what follows."""

import asyncio
from typing import cast

import pytest

from longstop.model.recovery import RecoveryKind
from longstop.supervision.child_runner import ChildRunner
from longstop.supervision.heartbeat import COUNTED_SECONDS, FIRST_PATIENCE_SECONDS, HeartbeatMonitor, HeartbeatWatch
from longstop.telemetry.bus import Bus
from longstop.testing import VirtualClock, run_virtual
from tests.memory import MemorySink

pytestmark = pytest.mark.req("NFR-005")


def listened(beats: str, watch: HeartbeatWatch | None = None, *, pid: int = 7, began: float = 0.0) -> HeartbeatWatch:
    """Return the watch after a look each second: `x` for a beat, `-` for none."""
    watch = watch or HeartbeatWatch(patience=5.0)
    for second, beat in enumerate(beats):
        watch = watch.check(pid, began + second, has_beaten=beat == "x")
    return watch


def test_a_child_that_beats_stands_not_still() -> None:
    assert not listened("x----" * 100).is_unresponsive


def test_a_child_that_falls_silent_stands_still_after_the_patience() -> None:
    assert not listened("xx----").is_unresponsive
    assert listened("xx-----").is_unresponsive
    assert listened("xx-----").silent_seconds == 5.0


def test_a_child_that_has_not_beaten_yet_has_more_time() -> None:
    seconds = round(FIRST_PATIENCE_SECONDS)

    assert not listened("-" * seconds).is_unresponsive
    assert listened("-" * (seconds + 1)).is_unresponsive


def test_a_patience_above_the_first_one_counts_from_the_start() -> None:
    assert not listened("-" * 90, HeartbeatWatch(patience=100.0)).is_unresponsive


def test_the_next_life_begins_without_the_silence_of_the_last() -> None:
    silent = listened("xx----")

    renewed = listened("-" * 10, silent, pid=8, began=6.0)

    assert not renewed.is_unresponsive
    assert not renewed.has_beaten


def test_one_that_is_given_up_is_given_up_once_and_again_when_it_is_still_there_much_later() -> None:
    given_up = listened("xx-----")

    later = listened("-", given_up, began=7.0)

    assert not later.is_unresponsive
    assert listened("-" * 60, later, began=8.0).is_unresponsive


def test_time_in_which_nobody_looked_is_not_the_childs() -> None:
    watch = listened("xx")

    thawed = watch.check(7, 3600.0, has_beaten=False)

    assert thawed.silent_seconds == COUNTED_SECONDS
    assert not thawed.is_unresponsive


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
def test_a_silent_child_is_renewed_unless_it_was_asked_to_stop(is_stopping: bool, restarted: list[int]) -> None:
    runner, sink = SilentRunner(is_stopping=is_stopping), MemorySink()

    async def monitor_heartbeat() -> None:
        monitor = HeartbeatMonitor([cast(ChildRunner, runner)], patience=5.0, bus=Bus([sink]), clock=VirtualClock())
        task = asyncio.create_task(monitor.run())
        await asyncio.sleep(8)
        task.cancel()

    run_virtual(monitor_heartbeat())

    assert runner.restarted[:1] == restarted
    assert bool(sink.named("process.unresponsive")) is not is_stopping
