"""Lifetimes of tasks and resources: owned background tasks, cancel-safe creation, and closing after the last use."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class TaskSet:
    """Background tasks of one owner. They are cancelled with it."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task and keep a reference to it; the event loop only keeps a weak one."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait(self) -> None:
        """Wait until all tasks have ended by themselves."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def aclose(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        await self.wait()


#: Undoes what cancelled callers of `cancel_safe` no longer wait for.
_UNDOING = TaskSet()


async def cancel_safe(work: Awaitable[T], undo: Callable[[T], Awaitable[object]]) -> T:
    """Return the result of some work. If the caller is cancelled first, undo the work as soon as it is done."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.cancelled():
            _UNDOING.start(_undo_result(task, undo))
        raise


async def _undo_result(task: asyncio.Future[T], undo: Callable[[T], Awaitable[object]]) -> None:
    try:
        result = await task
    except Exception:
        return  # nothing was created
    await undo(result)


class Shared(Protocol):
    """A resource that counts its users."""

    users: int


S = TypeVar("S", bound=Shared)


class Draining(Generic[S]):
    """Resources that get no new users. Each is closed after its last user, or when its time is over."""

    def __init__(self, close: Callable[[S], Coroutine[Any, Any, object]], seconds: float) -> None:
        self._close = close
        #: How long the remaining users may go on.
        self._seconds = seconds
        #: Each resource with the timer that closes it.
        self._timers: dict[S, asyncio.TimerHandle] = {}
        self._tasks = TaskSet()

    @property
    def all(self) -> tuple[S, ...]:
        return tuple(self._timers)

    def add(self, resource: S) -> None:
        """Close a resource as soon as it has no users; its owner must no longer hand it out."""
        if resource in self._timers:
            return
        self._timers[resource] = asyncio.get_running_loop().call_later(self._seconds, self.close_now, resource)
        self.released(resource)

    def released(self, resource: S) -> None:
        """Note that a user has released a resource, which may not be draining at all."""
        if not resource.users and resource in self._timers:
            self.close_now(resource)

    def close_now(self, resource: S) -> None:
        """Close a resource even if it is in use, unless it is closing already."""
        timer = self._timers.pop(resource, None)
        if timer is not None:
            timer.cancel()
            self._tasks.start(self._close(resource))

    async def aclose(self) -> None:
        """Close all resources and wait until they are closed."""
        for resource in self.all:
            self.close_now(resource)
        await self._tasks.wait()
