"""Departures: what nobody new gets into any more is closed when the last who uses it has left, or after a while."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from longstop.fetching.browser.errands import Errands


class Used(Protocol):
    """Something that knows how many use it now."""

    users: int


U = TypeVar("U", bound=Used)


class Departures(Generic[U]):
    """Those of one owner that leave."""

    def __init__(self, end: Callable[[U], Coroutine[Any, Any, object]], seconds: float) -> None:
        self._end = end
        #: How long those who use it may go on.
        self._seconds = seconds
        #: Each with what ends it when its time is over.
        self._leaving: dict[U, asyncio.TimerHandle] = {}
        self._errands = Errands()

    @property
    def all(self) -> tuple[U, ...]:
        return tuple(self._leaving)

    def see_off(self, one: U) -> None:
        """End it as soon as nobody uses it; who hands it out no longer does."""
        if one in self._leaving:
            return
        self._leaving[one] = asyncio.get_running_loop().call_later(self._seconds, self.end, one)
        self.left(one)

    def left(self, one: U) -> None:
        """Hear that somebody has left."""
        if not one.users and one in self._leaving:
            self.end(one)

    def end(self, one: U) -> None:
        """End it now, whoever uses it."""
        timer = self._leaving.pop(one, None)
        if timer is not None:
            timer.cancel()
        self._errands.run(self._end(one))

    async def aclose(self) -> None:
        """End all that leave, and wait until they have ended."""
        for one in self.all:
            self.end(one)
        await self._errands.finished()
