"""A thread for calls that may hang, such as reads from a failing disk."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Condition, Thread
from typing import Any, TypeVar

Result = TypeVar("Result")

#: How many calls may wait; more are refused at once.
MAX_WAITING = 64
#: An idle thread stays for this long: on a machine that is out of threads, a new one could not start.
IDLE_SECONDS = 60.0
_Job = tuple[Future[Any], Callable[[], Any]]


class DaemonThread:
    """Runs calls one after the other, outside the event loop.

    The caller sets a time-out with `asyncio.timeout`. A call that hangs blocks the thread, but neither the event loop
    nor the exit of the process: a pool of the standard library is joined at exit, this thread is not.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._news = Condition()
        self._waiting: deque[_Job] = deque()
        self._is_running = False

    async def run(self, call: Callable[[], Result]) -> Result:
        """Return the result of the call; raise `TimeoutError` at once when too many calls are waiting.

        If cancelled before the call starts, the call is never made; later, it still runs to its end.
        """
        answer: Future[Result] = Future()
        self._enqueue((answer, call))
        return await asyncio.wrap_future(answer)

    def _enqueue(self, job: _Job) -> None:
        with self._news:
            if len(self._waiting) >= MAX_WAITING:
                raise TimeoutError(f"{self._name}: {MAX_WAITING} calls are already waiting")
            if not self._is_running:
                Thread(target=self._work, name=self._name, daemon=True).start()
                self._is_running = True
            self._waiting.append(job)
            self._news.notify()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            _run(*job)
            del job  # it would keep the result until the next call

    def _next(self) -> _Job | None:
        """Return the next job; `None` ends the thread, and the next call starts a new one."""
        with self._news:
            if self._news.wait_for(lambda: bool(self._waiting), IDLE_SECONDS):
                return self._waiting.popleft()
            self._is_running = False
            return None


def _run(answer: Future[Any], call: Callable[[], Any]) -> None:
    if not answer.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # it is the caller's; the thread goes on
        answer.set_exception(error)
    else:
        answer.set_result(result)
