"""Threads for what may hang: few, and nobody waits for them longer than is good."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Any, TypeVar

Result = TypeVar("Result")

#: How many calls wait for a clerk; one more is told at once that nobody is free.
MAX_WAITING = 64
_Job = tuple[Future[Any], Callable[[], Any]]


class Clerks:
    """Make calls for whoever must not wait himself. One whose call hangs is left to it, for as long as that takes.

    They are not a pool of the standard library: that one is waited for when the process ends, however long it hangs.
    """

    def __init__(self, work: str, *, count: int = 1, patience_seconds: float = 2.0) -> None:
        self._work = work
        self._count = count
        self._patience_seconds = patience_seconds
        self._lock = Lock()
        self._waiting: deque[_Job] = deque()
        self._busy = 0

    async def ask(self, call: Callable[[], Result]) -> Result:
        """Return what the call returns; raise `TimeoutError` when that takes too long, or everybody is busy.

        A call that was not begun by then is never made; one that was may still come to its end.
        """
        answer: Future[Result] = Future()
        self._hand_over((answer, call))
        async with asyncio.timeout(self._patience_seconds):
            return await asyncio.wrap_future(answer)

    def _hand_over(self, job: _Job) -> None:
        with self._lock:
            if len(self._waiting) >= MAX_WAITING:
                raise TimeoutError
            if self._busy < self._count:
                Thread(target=self._serve, name=f"clerk: {self._work}", daemon=True).start()
                self._busy += 1
            self._waiting.append(job)

    def _serve(self) -> None:
        while (job := self._next()) is not None:
            answer, call = job
            if answer.set_running_or_notify_cancel():
                _make(call, answer)

    def _next(self) -> _Job | None:
        """Return the next job; whoever finds none goes home."""
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._busy -= 1
            return None


def _make(call: Callable[[], Any], answer: Future[Any]) -> None:
    try:
        result = call()
    except BaseException as error:  # whatever it is, it is told to whoever asked, and the next call is made
        answer.set_exception(error)
    else:
        answer.set_result(result)
