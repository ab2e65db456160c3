"""Tools for tests, ours and those of third-party sources: time that jumps, and a site that says what it is told."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from longstop.errors import FetchError, PageNotFound, SourceUnreachable, belonging_to
from longstop.fetching.base import FetchRequest, Page

T = TypeVar("T")
Answer = bytes | Page | FetchError
Rule = tuple[Callable[[FetchRequest], bool], Answer]

START = datetime(2026, 1, 1, tzinfo=UTC)
#: Real seconds after which a loop without timers is taken for stuck; only a thread could still wake it.
STUCK_AFTER_SECONDS = 5.0


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that jumps to the next timer where it would have waited.

    `sleep`, `timeout` and `TaskGroup` obey it. It suits tests without sockets or threads: while those are under
    way, the clock jumps ahead of them.
    """

    def __init__(self) -> None:
        self._virtual_time = 0.0
        super().__init__(_JumpingSelector(self._jump))

    def time(self) -> float:
        return self._virtual_time

    def _jump(self, seconds: float) -> None:
        self._virtual_time += seconds


class _JumpingSelector(selectors.DefaultSelector):
    """Passes the wait on to the loop's clock once no file has anything to say."""

    def __init__(self, jump: Callable[[float], None]) -> None:
        super().__init__()
        self._jump = jump

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(STUCK_AFTER_SECONDS if timeout is None else 0)
        if not ready and timeout is None:
            raise RuntimeError("every task waits for something that never comes")
        if not ready and timeout is not None:
            self._jump(timeout)
        return ready


class VirtualClock:
    """A `Clock` that shows the running loop's time, counted from a start moment."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def run_virtual(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time, starting at zero."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)


class ScriptedFetcher:
    """A fetcher that answers from a script and remembers what it was asked.

    The script is a function, or a list of (predicate, answer) of which the first that fits answers, every time.
    An answer is a body, a whole page, or an error to raise; a request that nothing fits is not found.
    """

    def __init__(self, script: Callable[[FetchRequest], Answer] | Sequence[Rule], *, delay_seconds: float = 0) -> None:
        self._answer = script if callable(script) else _first_fitting(script)
        self._delay_seconds = delay_seconds
        self._is_closed = False
        self.requests: list[FetchRequest] = []

    async def fetch(self, request: FetchRequest) -> Page:
        with belonging_to(request.source, str(request)):
            if self._is_closed:
                raise SourceUnreachable("the fetcher is closed")
            self.requests.append(request)
            await asyncio.sleep(self._delay_seconds)
            return self._page(request)

    async def aclose(self) -> None:
        self._is_closed = True

    def _page(self, request: FetchRequest) -> Page:
        answer = self._answer(request)
        if isinstance(answer, FetchError):
            raise copy(answer)  # one error may be raised many times, each for its own request
        return answer if isinstance(answer, Page) else page(answer, request=request)


def page(body: bytes, *, request: FetchRequest, status: int = 200, headers: Mapping[str, str] | None = None) -> Page:
    """Return a page as a fetcher would bring it."""
    return Page(
        request=request,
        status=status,
        headers=headers or {},
        body=body,
        elapsed_seconds=0.0,
        wire_bytes=len(body),
    )


def _first_fitting(rules: Sequence[Rule]) -> Callable[[FetchRequest], Answer]:
    def answer(request: FetchRequest) -> Answer:
        for fits, given in rules:
            if fits(request):
                return given
        return PageNotFound("the script has no answer to this request")

    return answer
