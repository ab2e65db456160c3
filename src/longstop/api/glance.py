"""The newest answer of something that may be slow or hang: asked for in a thread, had at once by whoever needs it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Generic, TypeVar

from msgspec import Struct

from longstop.clock import Clock
from longstop.errors import StorageError
from longstop.telemetry.bus import Bus
from longstop.telemetry.lacks import failure_of

T = TypeVar("T")

LOOK_EVERY_SECONDS = 1.0


class Taken(Struct, Generic[T], frozen=True):
    """An answer, and when it was asked for: by the clock that never jumps."""

    value: T
    at: float


class Glance(Generic[T]):
    """Asks again and again. An answer that does not come leaves the last one standing, and it grows old."""

    def __init__(self, what: str, ask: Callable[[], T], *, clock: Clock, bus: Bus) -> None:
        self._what = what
        self._ask = ask
        self._clock = clock
        self._bus = bus
        self.newest: Taken[T] | None = None
        #: When the question was asked that is not answered yet.
        self._asking_since: float | None = None

    @property
    def age_seconds(self) -> float | None:
        """Return how old the newest answer is; `None` before the first."""
        newest = self.newest
        return None if newest is None else max(0.0, round(self._clock.monotonic() - newest.at, 3))

    @property
    def waiting_seconds(self) -> float:
        """Return for how long an answer has been waited for; 0 when none is."""
        since = self._asking_since
        return 0.0 if since is None else self._clock.monotonic() - since

    def look(self) -> None:
        """Ask once."""
        asked_at = self._asking_since = self._clock.monotonic()
        try:
            self.newest = Taken(self._ask(), asked_at)
        except StorageError:
            return  # its age says it
        except Exception as error:  # a bug in one answer must not leave all later ones unasked
            self._bus.emit(failure_of(error, f"glance at {self._what}"))
        finally:
            self._asking_since = None

    @contextmanager
    def looking(self, every_seconds: float = LOOK_EVERY_SECONDS) -> Iterator[None]:
        """Ask in a thread meanwhile; one that hangs in the end is not waited for."""
        ending = Event()

        def work() -> None:
            while not ending.is_set():
                self.look()
                ending.wait(every_seconds)

        Thread(target=work, name=f"glance at {self._what}", daemon=True).start()
        try:
            yield
        finally:
            ending.set()
