"""Health from memory: background pollers read the files, so that `/health` and `/status` answer while a file hangs."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from longstop.api.health_documents import StatusSnapshot, health_facts, read_live_view, status_document
from longstop.clock import Clock, Moment
from longstop.errors import StorageError, StoreDamaged
from longstop.model.recovery import Recovery
from longstop.model.scraper_report import NodeBeat
from longstop.storage.base import AuditReader, HotReader, MatchReader
from longstop.supervision.health_verdict import (
    HealthStatus,
    HealthVerdict,
    down,
    live_beats,
    silence_reason,
    with_reasons,
    with_store_problems,
)
from longstop.telemetry.bus import Bus, failure_of

T = TypeVar("T")

POLL_EVERY_SECONDS = 1.0
DISK_FULL = "the disk of the data directory is full: nothing is stored until there is room"
#: A live view older than this is at best degraded.
OLD_AFTER_SECONDS = 5.0
#: A live view older than this counts as unreadable.
BLIND_AFTER_SECONDS = 10.0
#: A read takes milliseconds; one that takes longer than this is blocked.
HANGING_AFTER_SECONDS = 1.0


class Polled(Struct, Generic[T], frozen=True):
    """A value and when its read started, in monotonic seconds."""

    value: T
    at: float


class Poller(Generic[T]):
    """Reads a value repeatedly. While reads fail or block, the last value stays and ages."""

    def __init__(self, subject: str, read: Callable[[], Awaitable[T]], *, clock: Clock, bus: Bus) -> None:
        self._subject = subject
        self._read = read
        self._clock = clock
        self._bus = bus
        self.newest: Polled[T] | None = None
        #: Why the latest read failed; `None` after one that succeeded.
        self.error: StorageError | None = None
        #: When the read in progress started.
        self._reading_since: float | None = None

    @property
    def age_seconds(self) -> float | None:
        """Return the age of the newest value; `None` before the first."""
        newest = self.newest
        return None if newest is None else max(0.0, round(self._clock.monotonic() - newest.at, 3))

    @property
    def waiting_seconds(self) -> float:
        """Return how long the read in progress has taken so far; 0 when there is none."""
        since = self._reading_since
        return 0.0 if since is None else self._clock.monotonic() - since

    async def poll(self) -> None:
        started_at = self._reading_since = self._clock.monotonic()
        try:
            self.newest, self.error = Polled(await self._read(), started_at), None
        except StorageError as error:
            self.error = error  # also visible as the growing age
        except Exception as error:  # a bug in one read must not end the polling
            self._bus.emit(failure_of(error, f"poll of {self._subject}"))
        finally:
            self._reading_since = None

    @contextmanager
    def polling(self, every_seconds: float = POLL_EVERY_SECONDS) -> Iterator[None]:
        """Poll in a daemon thread with its own event loop.

        A busy request loop then does not look like a hung file, and a hung file cannot delay the exit.
        """
        stop = Event()

        def run() -> None:
            with asyncio.Runner() as runner:
                while not stop.is_set():
                    runner.run(self.poll())
                    stop.wait(every_seconds)

        Thread(target=run, name=f"poll of {self._subject}", daemon=True).start()
        try:
            yield
        finally:
            stop.set()


class HealthCache:
    """Keeps the newest health. Each poller has its own reader and thread, so no request waits for one."""

    def __init__(
        self,
        *,
        reader: MatchReader,
        hot: HotReader,
        audit: AuditReader,
        clock: Clock,
        started: Moment,
        config: Mapping[str, Any] | None = None,
        bus: Bus | None = None,
        is_disk_full: Callable[[], bool] = lambda: False,
    ) -> None:
        self._reader = reader
        self._is_disk_full = is_disk_full
        self._hot = hot
        self._clock = clock
        self._started = started
        self._config = config or {}
        bus = bus or Bus()
        self._live = Poller("the live view", self._read_live, clock=clock, bus=bus)
        #: Its value is whether the disk is full.
        self._store = Poller("the store", self._read_store, clock=clock, bus=bus)
        self._audit = Poller("the audit", audit.recent, clock=clock, bus=bus)

    async def poll(self) -> None:
        for poller in (self._live, self._store, self._audit):
            await poller.poll()

    @contextmanager
    def polling(self) -> Iterator[None]:
        with ExitStack() as stack:
            for poller in (self._live, self._store, self._audit):
                stack.enter_context(poller.polling())
            yield

    def health(self) -> tuple[int, dict[str, Any]]:
        """Return the status code and the document of `/health`."""
        newest, current = self._live.newest, self._verdict()
        is_useful = current.status is not HealthStatus.DOWN and not current.is_unread
        return 200 if is_useful else 503, {
            "status": current.status,
            "grade": current.grade,
            "reasons": current.reasons,
            "snapshot_age_seconds": self._live.age_seconds,
            "notes": current.notes,
            **(newest.value[1] if newest else health_facts(self._unread(), self._started)),
        }

    def status(self) -> dict[str, Any]:
        """Return the document of `/status`."""
        newest, audit = self._live.newest, self._audit.newest
        snapshot = replace(
            newest.value[0] if newest else self._unread(),
            verdict=self._verdict(),
            recoveries=audit.value if audit else None,
        )
        return status_document(snapshot, self._config) | {
            "snapshot_age_seconds": self._live.age_seconds,
            "store_age_seconds": self._store.age_seconds,
            "audit_age_seconds": self._audit.age_seconds,
        }

    def recoveries(self) -> tuple[Sequence[Recovery], float] | None:
        """Return the audit and its age; `None` until it could be read."""
        newest, age = self._audit.newest, self._audit.age_seconds
        return None if newest is None or age is None else (newest.value, age)

    def is_store_unusable(self) -> bool:
        """Return whether requests must not read the store: a read is blocked, or it is not the file that is written."""
        is_blocked = max(self._live.waiting_seconds, self._store.waiting_seconds) > HANGING_AFTER_SECONDS
        return is_blocked or any(beat.is_store_lost for beat in self._live_beats())

    def unready_reasons(self) -> list[str]:
        """Return why this API should get no traffic; empty when it is ready."""
        lost = next((beat.store_problem for beat in self._live_beats() if beat.is_store_lost), "")
        reasons = [each for each in (self._unreadable("the store cannot be read"), lost) if each]
        newest, now = self._live.newest, Moment.of(self._clock)
        if newest is None or (self._live.age_seconds or 0.0) > BLIND_AFTER_SECONDS:
            reasons.append("the live view cannot be read")
        elif not live_beats(beats := newest.value[0].beats, now):
            reasons.append(silence_reason(beats, now))
        return reasons

    def _live_beats(self) -> Sequence[NodeBeat]:
        newest = self._live.newest
        return live_beats(newest.value[0].beats, Moment.of(self._clock)) if newest else ()

    def _verdict(self) -> HealthVerdict:
        """Return the current verdict: down while the store cannot be read, or the disk is full."""
        verdict, store = self._live_verdict(), self._store.newest
        problems = [self._unreadable(f"the store could not be read for {self._unread_seconds():.0f} s")]
        if store is not None and store.value:
            problems.append(DISK_FULL)
        verdict = with_store_problems(verdict, tuple(each for each in problems if each))
        # Pauses stay in force in the scraper; what is missing is the audit, and commands fail.
        if isinstance(self._audit.error, StoreDamaged):
            reason = f"the operations tables cannot be read: {self._audit.error.cause}"
            verdict = with_reasons(verdict, (*verdict.reasons, reason))
        return verdict

    def _unreadable(self, sentence: str) -> str:
        """Return why the store cannot be read: at once if it is damaged, else when that has lasted for a while."""
        if isinstance(self._store.error, StoreDamaged):
            return f"the store cannot be read: {self._store.error.cause}"
        return sentence if self._unread_seconds() > BLIND_AFTER_SECONDS else ""

    def _unread_seconds(self) -> float:
        # A store that was never read gets the same time, counted from the start.
        age = self._store.age_seconds
        return self._clock.monotonic() - self._started.monotonic if age is None else age

    async def _read_store(self) -> bool:
        """Read the store; return whether its disk is full."""
        await self._reader.match(0)  # no row: a damaged one concerns its match only
        return self._is_disk_full()

    def _live_verdict(self) -> HealthVerdict:
        newest, age = self._live.newest, self._live.age_seconds or 0.0
        if newest is None:
            return down("the live view cannot be read")
        if age > BLIND_AFTER_SECONDS:
            return down(f"the live view could not be read for {age:.0f} s")
        verdict = newest.value[0].verdict
        if age <= OLD_AFTER_SECONDS:
            return verdict
        return with_reasons(verdict, (*verdict.reasons, f"live data is {age:.0f} s old"))

    async def _read_live(self) -> tuple[StatusSnapshot, dict[str, Any]]:
        """Return the live view, and the part of `/health` that does not change until the next read."""
        snapshot = await read_live_view(self._hot, self._clock)
        return snapshot, health_facts(snapshot, self._started)

    def _unread(self) -> StatusSnapshot:
        return StatusSnapshot(verdict=down("the live view cannot be read"), taken_at=Moment.of(self._clock))
