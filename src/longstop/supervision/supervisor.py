"""The supervisor: one keeper for each child process, stopped in the order in which the children are listed."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from longstop.clock import Clock
from longstop.process.cgroups import ChildGroup
from longstop.supervision.backoff import RestartPolicy, time_to_stop
from longstop.supervision.exits import Exit
from longstop.supervision.keeper import Audit, ChildSpec, Keeper
from longstop.supervision.loops import keep_going
from longstop.supervision.parent import life_line_of_children
from longstop.telemetry.bus import Bus, failure_of

#: Seconds in which all children together must have stopped; what has not is killed.
STOP_WITHIN = 30.0

#: A loop beside the keepers, with its name.
Loop = tuple[str, Callable[[], Awaitable[None]]]


class Supervisor:
    """Starts children, starts them again when they die, and stops them when asked. One child's death is its own."""

    def __init__(
        self,
        children: Sequence[ChildSpec],
        *,
        bus: Bus,
        clock: Clock,
        policy: RestartPolicy | None = None,
        stop_within: float = STOP_WITHIN,
        group_for: Callable[[str], ChildGroup] = lambda name: ChildGroup(),
        audit: Audit | None = None,
    ) -> None:
        self.keepers = tuple(
            Keeper(
                spec,
                bus=bus,
                clock=clock,
                policy=policy or RestartPolicy(),
                group=group_for(spec.name),
                audit=audit,
            )
            for spec in children
        )
        self._bus = bus
        self._clock = clock
        self._stop_within = stop_within
        self._stop_asked = asyncio.Event()
        self._hurry = asyncio.Event()

    def stop(self) -> None:
        """Ask `run` to stop the children and return, and when asked twice to kill them; meant for a signal handler."""
        if self._stop_asked.is_set():
            self._hurry.set()
        self._stop_asked.set()

    def own_pids(self) -> frozenset[int]:
        """Return the children that live and all in their groups."""
        return frozenset(pid for keeper in self.keepers for pid in keeper.own_pids())

    async def run(self, loops: Sequence[Loop] = ()) -> Exit:
        """Keep children and loops alive until asked to stop; no child is left when this returns, however it does."""
        with life_line_of_children() as read_end:
            async with asyncio.TaskGroup() as tasks:
                work = [
                    *(tasks.create_task(self._keep(each, read_end), name=f"keep {each.name}") for each in self.keepers),
                    *(tasks.create_task(self._go(name, loop), name=name) for name, loop in loops),
                ]
                try:
                    await self._stop_asked.wait()
                finally:
                    went = await self._stop_all()
                    for task in work:  # also a keeper's whose child hangs in the kernel, killed as it is
                        task.cancel()
        return Exit.DONE if went else Exit.FORCED

    async def _keep(self, keeper: Keeper, life_line: int) -> None:
        keep = partial(keeper.keep, life_line)
        await keep_going(f"keep {keeper.name}", keep, bus=self._bus, clock=self._clock, is_over=lambda: keeper.is_over)

    async def _go(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        await keep_going(name, loop, bus=self._bus, clock=self._clock, is_over=self._stop_asked.is_set)

    async def _stop_all(self) -> bool:
        """Stop one child after the other, all within one deadline; return whether all went by themselves."""
        deadline = self._clock.monotonic() + self._stop_within
        went = True
        for behind, keeper in reversed(list(enumerate(reversed(self.keepers)))):
            within = time_to_stop(deadline - self._clock.monotonic(), behind, self._stop_within)
            went = await self._stop_one(keeper, within) and went
        return went

    async def _stop_one(self, keeper: Keeper, within: float) -> bool:
        try:
            return await keeper.stop(within, self._hurry)
        except Exception as error:  # the others have to be stopped all the same
            self._bus.emit(failure_of(error, f"stop {keeper.name}"))
            return False
