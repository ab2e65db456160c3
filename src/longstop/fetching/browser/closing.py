"""The close ladder: page, context, browser, kill. Each step has its own time limit.

Listing all processes takes milliseconds per hundred of them, so it is done in a thread.
"""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

from playwright.async_api import Error as PlaywrightError

from longstop.process.processes import Identity, kill, list_processes, process_tree

#: Time limits of the steps. A browser that hangs at every step is gone after about ten seconds.
PAGE_SECONDS = 2.0
CONTEXT_SECONDS = 2.0
BROWSER_SECONDS = 3.0
DRIVER_SECONDS = 1.5
KILL_SECONDS = 2.0
_POLL_SECONDS = 0.02
#: Raised when the machine is out of files, memory or threads.
EXHAUSTION_ERRORS = (OSError, MemoryError, RuntimeError)
T = TypeVar("T")


class CloseSteps:
    """Runs all steps of a close: one that fails because the machine is exhausted does not prevent the next."""

    def __init__(self) -> None:
        #: The error of the first step that failed; `None` if none did.
        self.error: Exception | None = None

    async def run(self, step: Awaitable[T], otherwise: T) -> T:
        """Return the result of a step, or the other value if it fails."""
        try:
            return await step
        except EXHAUSTION_ERRORS as error:
            self.error = self.error or error
            return otherwise


async def closes_within(closing: Awaitable[object], seconds: float) -> bool:
    """Return whether something closes in time; what is closed already does."""
    try:
        async with asyncio.timeout(seconds):
            await closing
    except TimeoutError:
        return False
    except PlaywrightError:
        return True
    except Exception:  # a dead driver raises whatever its pipe raised
        return False
    return True


async def kill_trees(roots: Iterable[Identity], seconds: float = KILL_SECONDS) -> int:
    """Kill processes with all descendants; return how many are left after the time limit."""
    roots, loop = tuple(roots), asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        left = await asyncio.to_thread(_kill_once, roots)
        if not left or loop.time() > deadline:
            return left
        await asyncio.sleep(_POLL_SECONDS)


def _kill_once(roots: Iterable[Identity]) -> int:
    """Kill process trees as they are now; return how many processes there were."""
    processes = list_processes()
    found = {each.identity for root in roots for each in process_tree(root, processes)}
    for each in found:
        kill(each)
    return len(found)
