"""The close ladder: what does not go when asked is ended. Each rung has its own time, and none waits for ever.

To look at all processes of a machine takes milliseconds for every hundred of them, so that is done in a thread.
"""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

from playwright.async_api import Error as PlaywrightError

from longstop.process.processes import Identity, kill, list_processes, process_tree

#: Together with what else is done, they stay within the ten seconds after which everything is gone.
PAGE_SECONDS = 2.0
CONTEXT_SECONDS = 2.0
BROWSER_SECONDS = 3.0
DRIVER_SECONDS = 1.5
KILL_SECONDS = 2.0
_LOOK_EVERY = 0.02
#: What is raised for want of a file, of memory, or of a thread.
LACKING = (OSError, MemoryError, RuntimeError)
T = TypeVar("T")


class Ladder:
    """Climbs rung by rung: one that this machine has nothing left for does not keep from the next."""

    def __init__(self) -> None:
        #: What the first rung failed of; `None` when all held.
        self.broke: Exception | None = None

    async def climb(self, rung: Awaitable[T], otherwise: T) -> T:
        """Return what a rung gives, or the other where it breaks."""
        try:
            return await rung
        except LACKING as error:
            self.broke = self.broke or error
            return otherwise


async def went(asked: Awaitable[object], seconds: float) -> bool:
    """Return whether something went when asked to, in time; one that was gone already went."""
    try:
        async with asyncio.timeout(seconds):
            await asked
    except TimeoutError:
        return False
    except PlaywrightError:
        return True
    except Exception:  # a driver that is dead raises whatever its pipe raised
        return False
    return True


async def end_family(heads: Iterable[Identity], seconds: float = KILL_SECONDS) -> int:
    """Kill processes with all that they started; return how many are left after that time."""
    heads = tuple(heads)
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        left = await asyncio.to_thread(_killed, heads)
        if not left or asyncio.get_running_loop().time() > deadline:
            return left
        await asyncio.sleep(_LOOK_EVERY)


async def gone(head: Identity, seconds: float) -> bool:
    """Wait for a family to end by itself; return whether it did."""
    deadline = asyncio.get_running_loop().time() + seconds
    while await asyncio.to_thread(process_tree, head):
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(_LOOK_EVERY)
    return True


def _killed(heads: Iterable[Identity]) -> int:
    """Kill families as they are now; return how many processes that were."""
    people = list_processes()
    left = {each.identity for head in heads for each in process_tree(head, people)}
    for each in left:
        kill(each)
    return len(left)
