"""Who is listened to: a child that was asked to stop owes nobody a beat."""

import asyncio
from typing import cast

import pytest

from longstop.model.recovery import RecoveryKind
from longstop.supervision.keeper import Keeper
from longstop.supervision.listening import Listening
from longstop.telemetry.bus import Bus
from longstop.testing import VirtualClock, run_virtual
from tests.memory import MemorySink


class SilentKeeper:
    """A keeper whose child gives no sign of life after its first."""

    name = "scraper"
    pid = 4711

    def __init__(self, *, is_over: bool) -> None:
        self.is_over = is_over
        self.renewed: list[int] = []
        self._beats = 1

    def hear(self) -> bool:
        self._beats -= 1
        return self._beats >= 0

    async def renew(self, pid: int, kind: RecoveryKind, _reason: str, *, within: float) -> None:
        assert (kind, within) == (RecoveryKind.HARD_RESTART, 0)
        self.renewed.append(pid)


@pytest.mark.parametrize(("is_over", "renewed"), [(False, [4711]), (True, [])], ids=["at work", "asked to stop"])
def test_a_silent_child_is_renewed_unless_it_was_asked_to_stop(is_over: bool, renewed: list[int]) -> None:
    keeper, sink = SilentKeeper(is_over=is_over), MemorySink()

    async def listen() -> None:
        listening = Listening([cast(Keeper, keeper)], patience=5.0, bus=Bus([sink]), clock=VirtualClock())
        task = asyncio.create_task(listening.run())
        await asyncio.sleep(8)
        task.cancel()

    run_virtual(listen())

    assert keeper.renewed[:1] == renewed
    assert bool(sink.named("process.unresponsive")) is not is_over
