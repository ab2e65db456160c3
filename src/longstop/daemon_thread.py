"""A thread for calls that may hang, such as reads of a disk that does not answer."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Condition, Thread
from typing import Any, TypeVar

Result = TypeVar("Result")

#: How many calls wait behind the one that runs; the next is refused at once.
MAX_WAITING = 64
#: A thread without work stays for this long: a machine that has no more threads to give must not stop those at work.
IDLE_SECONDS = 60.0
_Job = tuple[Future[Any], Callable[[], Any]]


class DaemonThread:
    """Makes calls one after the other, outside the event loop.

    The caller sets its own time-out with `asyncio.timeout`. A call that hangs keeps the thread for as long as it takes,
    but neither the loop nor the end of the process: a pool of the standard library is joined at exit, this is not.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._news = Condition()
        self._waiting: deque[_Job] = deque()
        self._is_running = False

    async def run(self, call: Callable[[], Result]) -> Result:
        """Return what the call returns; raise `TimeoutError` at once when too many are waiting.

        Cancelled before the call has begun, it is never made; cancelled later, it still comes to its end.
        """
        answer: Future[Result] = Future()
        self._enqueue((answer, call))
        return await asyncio.wrap_future(answer)

    def _enqueue(self, job: _Job) -> None:
        with self._news:
            if len(self._waiting) >= MAX_WAITING:
                raise TimeoutError(f"{self._name}: {MAX_WAITING} calls are waiting already")
            if not self._is_running:
                Thread(target=self._work, name=self._name, daemon=True).start()
                self._is_running = True
            self._waiting.append(job)
            self._news.notify()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            answer, call = job
            if answer.set_running_or_notify_cancel():
                _make(call, answer)

    def _next(self) -> _Job | None:
        """Return the next job; `None` ends the thread, and the next call starts another one."""
        with self._news:
            if self._news.wait_for(lambda: bool(self._waiting), IDLE_SECONDS):
                return self._waiting.popleft()
            self._is_running = False
            return None


def _make(call: Callable[[], Any], answer: Future[Any]) -> None:
    try:
        result = call()
    except BaseException as error:  # it belongs to the caller, and the next call is made
        answer.set_exception(error)
    else:
        answer.set_result(result)
