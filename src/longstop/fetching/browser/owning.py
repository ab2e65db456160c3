"""Waiting for something that has to be closed: who stops waiting does not leave it behind."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")
#: Tasks that undo what nobody waits for any more; the loop itself holds them only weakly.
_UNDOING: set[asyncio.Task[Any]] = set()


async def owned(work: Awaitable[T], undo: Callable[[T], Awaitable[object]]) -> T:
    """Return what the work makes; if the wait is given up before, undo it as soon as it is made."""
    making = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        if not making.cancelled():
            task = asyncio.ensure_future(_undone(making, undo))
            _UNDOING.add(task)
            task.add_done_callback(_UNDOING.discard)
        raise


async def _undone(making: asyncio.Future[T], undo: Callable[[T], Awaitable[object]]) -> None:
    try:
        made = await making
    except Exception:
        return  # it was never made
    await undo(made)
