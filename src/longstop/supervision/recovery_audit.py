"""The audit of automatic recoveries: each is recorded when it starts, and again when its outcome is known.

`ChildRunner` (restarts) and `HealthMonitor` (recycles) call `RecoveryAudit` themselves. `RecoveryObserver` does it for
browsers, watches and sweeps: it listens to the events of the process, because such a recovery and its outcome belong to
different parts. One gives up a browser, another starts its successor, a third reads a match with it.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Clock
from longstop.errors import IllegalTransition, StorageError
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.process import processes
from longstop.storage.base import RECOVERIES_KEPT, AuditStore
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.browsers import BrowserClosed, BrowserFailed, BrowserRecycled, BrowserStarted
from longstop.telemetry.events.matches import PollSucceeded, WatchRestarted
from longstop.telemetry.events.processes import (
    OrphanKilled,
    RecordsFailed,
    RecoveryFailed,
    RecoveryStarted,
    RecoverySucceeded,
)
from longstop.telemetry.events.sources import ListingRead
from longstop.telemetry.periodic_flush import CLOSE_WITHIN, PeriodicFlush

RETRY_EVERY_SECONDS = 5.0
#: A recovery without a visible effect within this time counts as not recovered.
OBSERVED_WITHIN_SECONDS = 120.0
#: The time after a sweep at which it is checked whether the killed processes are gone.
SWEEP_SECONDS = 2.0
CHECK_SECONDS = 1.0
LAST_CHECK_SECONDS = 0.1
_KILLED = "the process ended before the outcome was known"
_STOPPED = "the process was stopped before the outcome was known"
#: Restarts that an operator asked for are no automatic recoveries; those of a recycle belong to its own entry.
_NOT_AUTOMATIC = ("asked", "recycled")


class RecoveryAudit:
    """The recoveries of one process. Callers never wait for a disk: a task writes them while `writing` lasts."""

    def __init__(self, store: AuditStore, *, process: str, clock: Clock) -> None:
        self._process = process
        self._clock = clock
        self._store = store
        self._unwritten: dict[str, Recovery] = {}
        #: When each recovery whose outcome is not known yet began, by its id.
        self._open: dict[str, float] = {}
        self._has_tidied = False
        self._flushing = PeriodicFlush("recoveries", self._flush, every_seconds=RETRY_EVERY_SECONDS)
        self._bus = Bus()

    def begin(self, kind: RecoveryKind, *, trigger: str, subject: str, pids_before: Collection[int] = ()) -> Recovery:
        """Record that a recovery starts, and why. `end` takes the returned entry."""
        recovery = Recovery(
            id=uuid4().hex,
            kind=kind,
            trigger=trigger,
            subject=subject,
            process=self._process,
            began_at=self._clock.now(),
            pids_before=tuple(sorted(pids_before)),
        )
        self._open[recovery.id] = self._clock.monotonic()
        self._put(recovery)
        self._bus.emit(RecoveryStarted(id=recovery.id, kind=kind.value, trigger=trigger, subject=subject))
        return recovery

    def seconds_since(self, begun: Recovery) -> float:
        return self._clock.monotonic() - self._open[begun.id]

    def end(
        self, begun: Recovery, outcome: RecoveryOutcome, *, observed: str, pids_after: Collection[int] | None = None
    ) -> Recovery:
        if begun.id not in self._open or outcome is RecoveryOutcome.PENDING:
            raise IllegalTransition(f"the outcome of recovery {begun.id} cannot become {outcome}")
        ended = replace(
            begun,
            outcome=outcome,
            observed=observed,
            duration_seconds=round(self.seconds_since(begun), 3),
            pids_after=None if pids_after is None else tuple(sorted(pids_after)),
        )
        del self._open[begun.id]
        self._put(ended)
        kind = RecoverySucceeded if outcome is RecoveryOutcome.RECOVERED else RecoveryFailed
        event = kind(
            id=ended.id,
            kind=ended.kind.value,
            subject=ended.subject,
            observed=observed,
            duration_seconds=ended.duration_seconds or 0.0,
        )
        self._bus.emit(event)
        return ended

    @asynccontextmanager
    async def writing(self, bus: Bus) -> AsyncIterator[None]:
        """Write recoveries to the store, and emit them as events."""
        self._bus = bus
        async with self._flushing.running(bus):
            yield
        await self._close_open(bus)

    async def _close_open(self, bus: Bus) -> None:
        """Give up what is open: after an orderly stop its outcome cannot be observed."""
        try:
            if self._open:
                async with asyncio.timeout(CLOSE_WITHIN):
                    await self._store.give_up(self._process, _STOPPED)
        except (TimeoutError, StorageError) as error:
            message = str(error) or f"no answer within {CLOSE_WITHIN:.0f} s"
            bus.emit(RecordsFailed(records="recoveries", error_message=message))

    def _put(self, recovery: Recovery) -> None:
        self._unwritten[recovery.id] = recovery
        for oldest in list(self._unwritten)[:-RECOVERIES_KEPT]:
            del self._unwritten[oldest]
        self._flushing.wake()

    async def _flush(self) -> bool:
        if not self._has_tidied:  # before the first write: whatever is open in the store is of an earlier process
            await self._store.give_up(self._process, _KILLED)
            self._has_tidied = True
        taken = dict(self._unwritten)
        if not taken:
            return False
        await self._store.write(taken.values())
        # Keep what has changed during the write.
        self._unwritten = {key: each for key, each in self._unwritten.items() if each != taken.get(key)}
        return True


#: One recovery of a kind at a time for each subject.
_Key = tuple[RecoveryKind, str]
_SWEEP: _Key = (RecoveryKind.SWEEP, "orphans")


class _Open(Struct):
    """A recovery whose outcome is not known yet. The other fields are used for browsers only."""

    recovery: Recovery
    #: Of the replaced browser.
    generation: int = 0
    #: Whether the replaced browser is gone.
    is_closed: bool = False
    #: Its successor; `None` before it has started.
    pid: int | None = None
    has_failed: bool = False


class RecoveryObserver:
    """The sink that records what browsers, watches and sweeps do by themselves, and observes the outcome.

    Several events make one recovery: a browser that is given up, its successor and the first successful poll with it; a
    watch that restarts and its next poll; all processes that one sweep has killed.
    """

    def __init__(self, audit: RecoveryAudit) -> None:
        self._audit = audit
        #: The current browser of each source.
        self._browsers: dict[str, BrowserStarted] = {}
        self._open: dict[_Key, _Open] = {}
        #: Killed, and in no entry yet.
        self._swept: list[OrphanKilled] = []

    def take(self, event: Telemetry) -> None:
        match event:
            case BrowserStarted():
                self._browser_started(event)
            case BrowserRecycled() if not event.reason.startswith("asked"):
                self._browser_replaced(event, None)
            case BrowserFailed():
                self._browser_replaced(event, event.pid)
            case BrowserClosed():
                self._browser_closed(event)
            case OrphanKilled():
                self._swept.append(event)
            case WatchRestarted() if event.reason not in _NOT_AUTOMATIC:
                self._begin((RecoveryKind.WATCH_RESTART, event.ref), event.reason)
            case PollSucceeded():
                self._watch_read(event.ref)
                self._source_read(event.ref.partition("_")[0], event.ref)
            case ListingRead():
                self._source_read(event.source, f"the listing of {event.source}")

    async def run(self) -> None:
        """Check what starts or ends by time, until cancelled."""
        while True:
            self.check()
            await asyncio.sleep(CHECK_SECONDS)

    async def finish(self) -> None:
        """Check until every sweep has an outcome: at the end of a process nothing else will."""
        self.check()
        while _SWEEP in self._open:
            await asyncio.sleep(LAST_CHECK_SECONDS)
            self.check()

    def check(self) -> None:
        """Record new sweeps, and end what has waited long enough for its outcome."""
        if self._swept and _SWEEP not in self._open:
            programs = sorted({each.program for each in self._swept})
            self._begin(_SWEEP, f"orphaned processes: {', '.join(programs)}", [each.pid for each in self._swept])
            self._swept = []
        for key, each in list(self._open.items()):
            seconds = self._audit.seconds_since(each.recovery)
            if key == _SWEEP and seconds >= SWEEP_SECONDS:
                self._end_sweep(each.recovery.pids_before)
            elif seconds >= OBSERVED_WITHIN_SECONDS:
                self._give_up(key, each)

    def _browser_started(self, event: BrowserStarted) -> None:
        self._browsers[event.source] = event
        recovery = self._open.get(_browser(event.source))
        if recovery is not None:
            recovery.pid = event.pid

    def _browser_replaced(self, event: BrowserRecycled | BrowserFailed, pid: int | None) -> None:
        current, recovery = self._browsers.get(event.source), self._open.get(_browser(event.source))
        if current is not None and current.generation != event.generation:
            current = None
        if recovery is not None and (current is None or recovery.pid is None):
            # The successor did not start, or the old browser failed while it drained: still the same recovery.
            recovery.has_failed = True
            return
        if current is not None:
            pid = current.pid
        begun = self._begin(_browser(event.source), event.reason, () if pid is None else (pid,))
        begun.has_failed, begun.generation = pid is None, event.generation

    def _browser_closed(self, event: BrowserClosed) -> None:
        recovery = self._open.get(_browser(event.source))
        if recovery is not None and recovery.generation == event.generation:
            recovery.is_closed = not event.left

    def _source_read(self, source: str, what: str) -> None:
        key = _browser(source)
        recovery = self._open.get(key)
        if recovery is not None and recovery.pid is not None:
            self._end(key, RecoveryOutcome.RECOVERED, f"{what} was read with the next browser", (recovery.pid,))

    def _watch_read(self, ref: str) -> None:
        key = (RecoveryKind.WATCH_RESTART, ref)
        if key in self._open:
            self._end(key, RecoveryOutcome.RECOVERED, f"{ref} was read again")

    def _end_sweep(self, pids: Collection[int]) -> None:
        left, count = [pid for pid in pids if processes.is_running(pid)], len(pids)
        if left:
            self._end(_SWEEP, RecoveryOutcome.NOT_RECOVERED, f"{count} killed, {len(left)} still running", left)
        else:
            self._end(_SWEEP, RecoveryOutcome.RECOVERED, f"{count} killed, none left running", ())

    def _give_up(self, key: _Key, recovery: _Open) -> None:
        within = f"{OBSERVED_WITHIN_SECONDS:.0f} s"
        kind, _ = key
        if kind is RecoveryKind.WATCH_RESTART:
            self._end(key, RecoveryOutcome.NOT_RECOVERED, f"it was not read within {within}")
        elif recovery.pid is not None:
            observed = f"the next browser runs, but nothing was read within {within}"
            self._end(key, RecoveryOutcome.NOT_RECOVERED, observed, (recovery.pid,))
        elif recovery.is_closed and not recovery.has_failed:
            self._end(key, RecoveryOutcome.RECOVERED, "the browser is gone, and no other one was needed since", ())
        else:
            self._end(key, RecoveryOutcome.NOT_RECOVERED, f"no other browser started within {within}", ())

    def _begin(self, key: _Key, trigger: str, pids: Collection[int] = ()) -> _Open:
        if key in self._open:
            self._end(key, RecoveryOutcome.NOT_RECOVERED, f"it was needed again: {trigger}")
        kind, subject = key
        recovery = self._audit.begin(kind, trigger=trigger, subject=subject, pids_before=pids)
        begun = self._open[key] = _Open(recovery)
        return begun

    def _end(self, key: _Key, outcome: RecoveryOutcome, observed: str, pids: Collection[int] | None = None) -> None:
        self._audit.end(self._open.pop(key).recovery, outcome, observed=observed, pids_after=pids)


def _browser(source: str) -> _Key:
    return RecoveryKind.BROWSER_RECYCLE, source
