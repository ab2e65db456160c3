"""Watches the processes of a deployment: all that ever ran, which write the store, and which are orphans."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from time import monotonic

from bench.chaos.arena import Figures
from bench.chaos.processes_strikes import CHILDREN
from bench.frame import rounded
from longstop.errors import UsageError
from longstop.process.processes import Identity, Process, command_line, find_process, kill
from longstop_lab.deployment import Deployment
from longstop_lab.processes import DeploymentProcesses
from tests.background import background
from tests.process_tree import writes

LOOK_EVERY = 0.25
#: What was ended may take so long to vanish.
GONE_WITHIN = 10.0


class Census:
    """Looks at all that belongs to a deployment, over and over."""

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
        """Return how many of them are dead, and nobody waits for them."""
        deadline = monotonic() + GONE_WITHIN
        while True:
            people = await asyncio.to_thread(self._processes.find)
            dead = sum(each.state == "Z" for each in people)
            if not dead or monotonic() > deadline:
                return dead
            await asyncio.sleep(LOOK_EVERY)

    async def aftermath(self) -> Figures:
        """Return how many are left, and how long the last one took to go; end those who did not.

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
            await asyncio.sleep(LOOK_EVERY)

    @property
    def _processes(self) -> DeploymentProcesses:
        if self._known is None:
            raise UsageError("nobody was counted yet")
        return self._known

    async def _count(self, deployment: Deployment) -> None:
        while True:
            await asyncio.to_thread(self._look, deployment)
            await asyncio.sleep(LOOK_EVERY)

    def _look(self, deployment: Deployment) -> None:
        up, store = deployment.up_pid, deployment.data / "matches.db"
        supervisor, people = find_process(up), self._processes.find()
        writers = [each for each in people if each.name.startswith("python") and writes(each.pid, store)]
        self.most_writers = max(self.most_writers, len(writers))
        owners = {each.pid for each in people if is_owner(each, command_line(each.pid), up)}
        is_up = supervisor is not None and supervisor.state != "Z"
        self.abandoned.take(without_owner(people, owners, up), monotonic(), is_up=is_up)


class Abandoned:
    """For how long anybody belonged to nobody, while a supervisor ran that should have seen to it.

    While none runs all belong to nobody, and no time counts: they can be ended from the moment on at which one does.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self._seconds: dict[Identity, float] = {}
        self._looked_at: float | None = None

    def take(self, abandoned: Collection[Identity], at: float, *, is_up: bool) -> None:
        passed = at - self._looked_at if is_up and self._looked_at is not None else 0.0
        self._looked_at = at if is_up else None
        before = self._seconds
        self._seconds = {each: before[each] + passed if each in before else 0.0 for each in abandoned}
        self.longest = max(self.longest, *self._seconds.values(), 0.0)


def is_owner(process: Process, arguments: Collection[str], up: int) -> bool:
    """Return whether others may live below a process: the simulator, or a child that the supervisor has started.

    Not everybody below the supervisor is that: it adopts what its children leave when they die.
    """
    return "simulate" in arguments or (process.parent == up and any(verb in arguments for verb in CHILDREN))


def without_owner(people: Collection[Process], owners: Collection[int], up: int) -> set[Identity]:
    """Return the living who are neither an owner nor below one, nor the supervisor."""
    owned = set(owners)
    while more := {each.pid for each in people if each.parent in owned} - owned:
        owned |= more
    return {each.identity for each in people if each.pid not in owned and each.pid != up and each.state != "Z"}
