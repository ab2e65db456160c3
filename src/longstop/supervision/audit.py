"""The audit: every action that nobody asked for is written down when it begins, and again when its outcome was seen.

Whoever acts never waits for a disk: a task writes at once, and tries again until the disk takes it.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from threading import Lock
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Clock
from longstop.errors import IllegalTransition, StorageError
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome, check_outcome
from longstop.storage.base import RECOVERIES_KEPT, AuditStore
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import RecordsFailed, RecoveryFailed, RecoveryStarted, RecoverySucceeded
from longstop.telemetry.records import CLOSE_WITHIN, PeriodicFlush

RETRY_EVERY_SECONDS = 5.0
_UNSEEN = "the process that did this ended before it saw an outcome"
_STOPPED = "the process that did this was asked to stop before it saw an outcome"


class Ticket(Struct, frozen=True):
    """What `begin` gives and `end` takes."""

    recovery: Recovery
    began: float


class Recoveries:
    """One process's part of the audit. Entries may begin at any time; they are written while `writing` lasts."""

    def __init__(self, store: AuditStore, *, process: str, clock: Clock) -> None:
        self._process = process
        self._clock = clock
        self._store = store
        self._lock = Lock()
        self._unwritten: dict[str, Recovery] = {}
        #: Begun, and its outcome not seen yet.
        self._open: set[str] = set()
        self._has_tidied = False
        self._background = PeriodicFlush("recoveries", self._flush, every_seconds=RETRY_EVERY_SECONDS)
        self._bus = Bus()

    def begin(self, kind: RecoveryKind, *, trigger: str, subject: str, pids_before: Collection[int] = ()) -> Ticket:
        """Write down that something is going to be done, and why."""
        recovery = Recovery(
            id=uuid4().hex,
            kind=kind,
            trigger=trigger,
            subject=subject,
            process=self._process,
            began_at=self._clock.now(),
            pids_before=tuple(sorted(pids_before)),
        )
        self._open.add(recovery.id)
        self._put(recovery)
        self._bus.emit(RecoveryStarted(id=recovery.id, kind=kind.value, trigger=trigger, subject=subject))
        return Ticket(recovery, self._clock.monotonic())

    def end(
        self, ticket: Ticket, outcome: RecoveryOutcome, *, observed: str, pids_after: Collection[int] | None = None
    ) -> Recovery:
        """Write down what was seen to come of it, in a sentence. An outcome that nobody saw is none."""
        begun = ticket.recovery
        if begun.id not in self._open:
            raise IllegalTransition(f"the outcome of recovery {begun.id} was told before")
        check_outcome(begun.outcome, outcome)
        ended = replace(
            begun,
            outcome=outcome,
            observed=observed,
            duration_seconds=round(self._clock.monotonic() - ticket.began, 3),
            pids_after=None if pids_after is None else tuple(sorted(pids_after)),
        )
        self._open.remove(begun.id)
        self._put(ended)
        self._bus.emit(_told(ended))
        return ended

    @asynccontextmanager
    async def writing(self, bus: Bus) -> AsyncIterator[None]:
        """Write what is begun and ended; what happens is told to the bus too."""
        self._bus = bus
        async with self._background.running(bus):
            yield
        await self._leave(bus)

    async def _leave(self, bus: Bus) -> None:
        """Close what is open: after an orderly end nobody is going to see what comes of it."""
        try:
            if self._open:
                async with asyncio.timeout(CLOSE_WITHIN):
                    await self._store.give_up(self._process, _STOPPED)
        except TimeoutError:
            bus.emit(RecordsFailed(records="recoveries", error_message=f"no answer within {CLOSE_WITHIN:.0f} s"))
        except StorageError as error:
            bus.emit(RecordsFailed(records="recoveries", error_message=str(error)))

    def _put(self, recovery: Recovery) -> None:
        with self._lock:
            self._unwritten[recovery.id] = recovery
            for oldest in list(self._unwritten)[:-RECOVERIES_KEPT]:
                del self._unwritten[oldest]
        self._background.wake()

    async def _flush(self) -> bool:
        if not self._has_tidied:  # before anything of this life is written: whatever waits there is of a former one
            await self._store.give_up(self._process, _UNSEEN)
            self._has_tidied = True
        with self._lock:
            taken = dict(self._unwritten)
        if not taken:
            return False
        await self._store.write(taken.values())
        with self._lock:
            # What has moved on meanwhile is written again.
            self._unwritten = {key: each for key, each in self._unwritten.items() if each != taken.get(key)}
        return True


def _told(recovery: Recovery) -> RecoverySucceeded | RecoveryFailed:
    tell = RecoverySucceeded if recovery.outcome is RecoveryOutcome.RECOVERED else RecoveryFailed
    return tell(
        id=recovery.id,
        kind=recovery.kind.value,
        subject=recovery.subject,
        observed=recovery.observed or "",
        duration_seconds=recovery.duration_seconds or 0.0,
    )
