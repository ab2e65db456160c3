"""Watches the processes of a deployment: all that ever ran, which write the store, and which are orphans."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from time import monotonic

from bench.chaos.harness import Figures
from bench.chaos.process_faults import CHILDREN
from bench.reporting import rounded
from longstop.errors import UsageError
from longstop.process.processes import Identity, Process, command_line, find_process, kill
from longstop_lab.deployment import Deployment
from longstop_lab.processes import DeploymentProcesses
from tests.background import background
from tests.process_tree import writes

POLL_SECONDS = 0.25
#: Seconds for killed processes to vanish.
GONE_WITHIN = 10.0


class ProcessObserver:
    """Polls the processes of a deployment."""

    def __init__(self) -> None:
        self.most_writers = 0
        self.abandoned = Abandoned()
        self._known: DeploymentProcesses | None = None

    @asynccontextmanager
    async def taken(self, deployment: Deployment) -> AsyncIterator[None]:
        """Count while the block runs."""
        self._known = DeploymentProcesses.of(deployment.data)
        async with background(self._count(deployment)):
            yield

    async def lasting_zombies(self) -> int:
        """Return the number of zombies that stay."""
        deadline = monotonic() + GONE_WITHIN
        while True:
            processes = await asyncio.to_thread(self._processes.find)
            dead = sum(each.state == "Z" for each in processes)
            if not dead or monotonic() > deadline:
                return dead
            await asyncio.sleep(POLL_SECONDS)

    async def aftermath(self) -> Figures:
        """Return the number of processes left and how long the last one took to end; kill the others.

        Some are halted: they would be left for ever.
        """
        began = monotonic()
        while True:
            left = await asyncio.to_thread(self._processes.running)
            seconds = monotonic() - began
            if not left or seconds > GONE_WITHIN:
                for each in left:
                    kill(each.identity)
                return {"processes": len(self._processes.seen), "orphans": len(left), "gone_s": rounded(seconds, 1)}
            await asyncio.sleep(POLL_SECONDS)

    @property
    def _processes(self) -> DeploymentProcesses:
        if self._known is None:
            raise UsageError("the observer has not started")
        return self._known

    async def _count(self, deployment: Deployment) -> None:
        while True:
            await asyncio.to_thread(self._poll, deployment)
            await asyncio.sleep(POLL_SECONDS)

    def _poll(self, deployment: Deployment) -> None:
        up, store = deployment.up_pid, deployment.data / "matches.db"
        supervisor, processes = find_process(up), self._processes.find()
        writers = [each for each in processes if each.name.startswith("python") and writes(each.pid, store)]
        self.most_writers = max(self.most_writers, len(writers))
        owners = {each.pid for each in processes if is_owner(each, command_line(each.pid), up)}
        is_up = supervisor is not None and supervisor.state != "Z"
        self.abandoned.take(without_owner(processes, owners, up), monotonic(), is_up=is_up)


class Abandoned:
    """How long any process was an orphan while a supervisor ran.

    While no supervisor runs, every process is an orphan and no time counts: only a running supervisor can end them.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self._seconds: dict[Identity, float] = {}
        self._polled_at: float | None = None

    def take(self, abandoned: Collection[Identity], at: float, *, is_up: bool) -> None:
        passed = at - self._polled_at if is_up and self._polled_at is not None else 0.0
        self._polled_at = at if is_up else None
        before = self._seconds
        self._seconds = {each: before[each] + passed if each in before else 0.0 for each in abandoned}
        self.longest = max(self.longest, *self._seconds.values(), 0.0)


def is_owner(process: Process, arguments: Collection[str], up: int) -> bool:
    """Return whether others may live below a process: the simulator, or a child that the supervisor has started.

    Not everybody below the supervisor is that: it adopts what its children leave when they die.
    """
    return "simulate" in arguments or (process.parent == up and any(verb in arguments for verb in CHILDREN))


def without_owner(processes: Collection[Process], owners: Collection[int], up: int) -> set[Identity]:
    """Return the running processes that are neither an owner, nor its descendant, nor the supervisor."""
    owned = set(owners)
    while more := {each.pid for each in processes if each.parent in owned} - owned:
        owned |= more
    return {each.identity for each in processes if each.pid not in owned and each.pid != up and each.state != "Z"}
