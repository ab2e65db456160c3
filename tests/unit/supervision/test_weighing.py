"""Acting on what a child weighs: what could not be done is done at the next look."""

import asyncio
import errno
from collections.abc import Collection
from typing import cast

import pytest

from longstop.model.recovery import RecoveryKind
from longstop.process import processes
from longstop.supervision.keeper import Keeper
from longstop.supervision.memory import MEGABYTE, MemoryLimits
from longstop.supervision.weighing import Weighing
from longstop.telemetry.bus import Bus
from tests.memory import MemorySink

LIMITS = MemoryLimits(soft_bytes=100 * MEGABYTE, hard_bytes=200 * MEGABYTE)


class HeavyKeeper:
    """A keeper whose child is above the hard limit; it fails to end it as often as is said."""

    name = "scraper"
    pid = 4711
    is_over = False

    def __init__(self, failures: int) -> None:
        self._failures = failures
        self.renewed: list[tuple[int, RecoveryKind]] = []

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

    async def renew(self, pid: int, kind: RecoveryKind, _reason: str, *, within: float) -> None:
        assert within == 0
        self.renewed.append((pid, kind))
        if len(self.renewed) <= self._failures:
            raise OSError(errno.EMFILE, "Too many open files")


async def weigh(keeper: HeavyKeeper, times: int) -> MemorySink:
    sink = MemorySink()
    weighing = Weighing([cast(Keeper, keeper)], LIMITS, bus=Bus([sink]), stop_within=1.0)
    for _ in range(times):
        await weighing.look()
        await asyncio.sleep(0)  # what it began is done
    return sink


@pytest.mark.req("FR-006")
async def test_a_child_that_could_not_be_killed_is_tried_again_at_the_next_look() -> None:
    keeper = HeavyKeeper(failures=2)

    sink = await weigh(keeper, times=6)

    assert keeper.renewed == [(4711, RecoveryKind.HARD_RESTART)] * 3
    assert len(sink.named("poll.postponed")) == 2


async def test_a_child_that_is_being_stopped_is_not_weighed_any_more() -> None:
    keeper = HeavyKeeper(failures=0)
    keeper.is_over = True

    sink = await weigh(keeper, times=2)

    assert (keeper.renewed, sink.events) == ([], [])
