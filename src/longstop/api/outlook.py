"""How it goes, kept ready: `/health` and `/status` are answered from memory, whatever the files do meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from longstop.api.health import health_facts
from longstop.api.status import status_document
from longstop.clock import Clock, Moment
from longstop.errors import StorageError
from longstop.model.match import MonitoringRecord
from longstop.model.recovery import Recovery
from longstop.storage.base import AuditReader, HotReader, MatchFilter, MatchReader, NodeBeat
from longstop.supervision.telling import silence
from longstop.supervision.verdict import HealthStatus, Verdict, aged, heard, unreadable, verdict
from longstop.telemetry.bus import Bus
from longstop.telemetry.exhaustion import failure_of

T = TypeVar("T")

LOOK_EVERY_SECONDS = 1.0
#: The live view is looked at every second; older than this, what it said is no longer called healthy.
OLD_AFTER_SECONDS = 5.0
#: Older than this, what it said counts for nothing any more.
BLIND_AFTER_SECONDS = 10.0
#: A read takes milliseconds; one that takes longer than this waits for somebody.
HANGING_AFTER_SECONDS = 1.0


class Taken(Struct, Generic[T], frozen=True):
    """An answer, and when it was asked for, in monotonic seconds."""

    value: T
    at: float


class Glance(Generic[T]):
    """Asks again and again. An answer that does not come leaves the last one standing, and it grows old."""

    def __init__(self, what: str, ask: Callable[[], Awaitable[T]], *, clock: Clock, bus: Bus) -> None:
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

    async def look(self) -> None:
        """Ask once."""
        asked_at = self._asking_since = self._clock.monotonic()
        try:
            self.newest = Taken(await self._ask(), asked_at)
        except StorageError:
            return  # its age says it
        except Exception as error:  # a bug in one answer must not leave all later ones unasked
            self._bus.emit(failure_of(error, f"glance at {self._what}"))
        finally:
            self._asking_since = None

    @contextmanager
    def looking(self, every_seconds: float = LOOK_EVERY_SECONDS) -> Iterator[None]:
        """Ask in a daemon thread with a loop of its own meanwhile.

        So a busy loop of requests is never taken for a file that hangs, and one that hangs in the end is not waited
        for.
        """
        ending = Event()

        def work() -> None:
            with asyncio.Runner() as runner:
                while not ending.is_set():
                    runner.run(self.look())
                    ending.wait(every_seconds)

        Thread(target=work, name=f"glance at {self._what}", daemon=True).start()
        try:
            yield
        finally:
            ending.set()


class Sighting(Struct, frozen=True, kw_only=True):
    """What the live view said at one moment, and what `/health` tells of it."""

    beats: Sequence[NodeBeat]
    records: Sequence[MonitoringRecord]
    judged: Verdict
    taken_at: Moment
    #: JSON, without its opening brace: what is said of it now goes before it.
    facts: bytes


class Answer(Struct, frozen=True):
    status: int
    body: bytes


class Outlook:
    """Keeps the newest sighting. Its readers are its own, each used by one thread: no request waits behind them."""

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
    ) -> None:
        self._hot = hot
        self._clock = clock
        self._started = started
        self._config = config or {}
        bus = bus or Bus()
        self._live = Glance("the live view", self._sight, clock=clock, bus=bus)
        self._store = Glance("the store", lambda: reader.matches(MatchFilter(limit=1)), clock=clock, bus=bus)
        self._audit = Glance("the audit", audit.recent, clock=clock, bus=bus)

    async def look(self) -> None:
        """Look at everything once, here and now."""
        for glance in (self._live, self._store, self._audit):
            await glance.look()

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look at everything again and again, each in a thread of its own."""
        with ExitStack() as stack:
            for glance in (self._live, self._store, self._audit):
                stack.enter_context(glance.looking())
            yield

    def health(self) -> Answer:
        """Return the answer to `/health`."""
        newest = self._live.newest
        facts = newest.value.facts if newest else self._facts((), (), Moment.of(self._clock))
        judged = self._judged()
        head = msgspec.json.encode(
            {
                "status": judged.status,
                "grade": judged.grade,
                "reasons": judged.reasons,
                "snapshot_age_seconds": self._live.age_seconds,
                "notes": judged.notes,
            }
        )
        is_of_use = judged.status is not HealthStatus.DOWN and not judged.is_unread
        return Answer(200 if is_of_use else 503, b"%b,%b" % (head[:-1], facts))

    def status(self) -> dict[str, Any]:
        """Return the document of `/status`, made of the newest that is known."""
        newest, audit, now = self._live.newest, self._audit.newest, Moment.of(self._clock)
        seen = newest.value if newest else None
        document = status_document(
            self._judged(),
            seen.beats if seen else (),
            seen.records if seen else (),
            audit.value if audit else None,
            config=self._config,
            now=seen.taken_at if seen else now,
        )
        return document | {
            "snapshot_age_seconds": self._live.age_seconds,
            "store_age_seconds": self._store.age_seconds,
            "audit_age_seconds": self._audit.age_seconds,
        }

    def recoveries(self) -> tuple[Sequence[Recovery], float] | None:
        """Return the audit and its age; `None` while it could not be read."""
        newest, age = self._audit.newest, self._audit.age_seconds
        return None if newest is None or age is None else (newest.value, age)

    def is_hanging(self) -> bool:
        """Return whether live view or store keep a reader waiting: then nobody else should ask them anything."""
        return max(self._live.waiting_seconds, self._store.waiting_seconds) > HANGING_AFTER_SECONDS

    def unready_because(self) -> list[str]:
        """Return why nobody should be sent here; empty when all is well."""
        reasons = []
        store_age = self._store.age_seconds
        if store_age is None or store_age > BLIND_AFTER_SECONDS:
            reasons.append("the store cannot be read")
        newest, now = self._live.newest, Moment.of(self._clock)
        if newest is None or self._is_blind():
            reasons.append("the live view cannot be read")
        elif not heard(newest.value.beats, now):
            reasons.append(silence(newest.value.beats, now))
        return reasons

    def _judged(self) -> Verdict:
        """Return the newest verdict; without a store nothing is served, however well the scrapers are."""
        judged, unread_seconds = self._seen_live(), self._store_unread_seconds()
        if unread_seconds <= BLIND_AFTER_SECONDS:
            return judged
        status = HealthStatus.DEGRADED if judged.status is HealthStatus.HEALTHY else judged.status
        reason = f"the store could not be read for {unread_seconds:.0f} s"
        return replace(judged, status=status, reasons=(*judged.reasons, reason))

    def _store_unread_seconds(self) -> float:
        """Return how long ago the store was last read; one that never was is given time from the start on."""
        age = self._store.age_seconds
        return self._clock.monotonic() - self._started.monotonic if age is None else age

    def _seen_live(self) -> Verdict:
        """Return the verdict on the live view; one who has not seen anything for long cannot judge."""
        newest, age = self._live.newest, self._live.age_seconds or 0.0
        if newest is None:
            return unreadable()
        if age > BLIND_AFTER_SECONDS:
            return unreadable(f"the live view could not be read for {age:.0f} s")
        return aged(newest.value.judged, age) if age > OLD_AFTER_SECONDS else newest.value.judged

    def _is_blind(self) -> bool:
        return (self._live.age_seconds or 0.0) > BLIND_AFTER_SECONDS

    async def _sight(self) -> Sighting:
        beats, records = await self._hot.beats(), await self._hot.records()
        now = Moment.of(self._clock)
        judged = verdict(beats, records, now)
        facts = self._facts(beats, records, now)
        return Sighting(beats=beats, records=records, judged=judged, taken_at=now, facts=facts)

    def _facts(self, beats: Sequence[NodeBeat], records: Sequence[MonitoringRecord], now: Moment) -> bytes:
        return msgspec.json.encode(health_facts(beats, records, started=self._started, now=now))[1:]
