"""Stores the pauses of all sources, so that a restarted scraper keeps them."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

from longstop.clock import Clock, Moment, this_boot
from longstop.errors import StorageError
from longstop.model.request_pause import FormerPause, PauseKind, RequestPause
from longstop.storage.base import PauseStore
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events.processes import RecordsFailed
from longstop.telemetry.periodic_flush import PeriodicFlush

RECORDS = "pauses of requests"
#: A hung disk must not delay polling for longer.
READ_WITHIN_SECONDS = 5.0
#: A pause that could not be written is tried again after this time.
RETRY_EVERY_SECONDS = 1.0
#: A pause is written when it begins: at the end there is rarely anything left.
CLOSE_WITHIN_SECONDS = 1.0
#: An open circuit whose time was over this long ago proves nothing about the site now.
FORGET_AFTER_SECONDS = 3600.0
#: Why a source starts with a half-open circuit.
UNREADABLE = "the stored pauses could not be read"
_CONSEQUENCE = "Pauses that sites asked for are unknown: every source is probed with a few requests first"


class StoredPauses:
    """The pauses in memory, and their copy on disk: it is written in the background as soon as one changes."""

    def __init__(self, store: PauseStore, *, clock: Clock, boot: Callable[[], str | None] = this_boot) -> None:
        self._store = store
        self._clock = clock
        self._boot = boot
        self._pauses: dict[tuple[str, PauseKind, str], RequestPause] = {}
        self._is_unreadable = False
        self._is_written = True
        self._flusher = PeriodicFlush(
            RECORDS, self._flush, every_seconds=RETRY_EVERY_SECONDS, close_within=CLOSE_WITHIN_SECONDS
        )

    async def load(self, bus: Bus) -> None:
        """Read what an earlier run stored, before the first request. A failure is reported, and stops nothing."""
        try:
            async with asyncio.timeout(READ_WITHIN_SECONDS):
                stored = await self._store.read()
        except TimeoutError:
            self._report_unreadable(bus, f"no answer within {READ_WITHIN_SECONDS:.0f} s")
        except StorageError as error:
            self._report_unreadable(bus, str(error))
        except Exception as error:  # a bug here must not stop the scraper
            bus.emit(failure_of(error, RECORDS))
            self._report_unreadable(bus, str(error))
        else:
            kept = [each for each in stored if self._is_kept(each)]
            self._pauses = {(each.source, each.kind, each.subject): each for each in kept}
            self._is_written = len(kept) == len(stored)

    def writing(self, bus: Bus) -> AbstractAsyncContextManager[None]:
        """Write pauses; report a failing disk."""
        return self._flusher.running(bus)

    def of(self, source: str) -> "PausesOfSource":
        return PausesOfSource(self, source)

    def former(self, source: str) -> tuple[FormerPause, ...]:
        if self._is_unreadable:
            return (FormerPause(kind=PauseKind.SOURCE_CIRCUIT, subject=source, seconds=0.0, reason=UNREADABLE),)
        return tuple(
            FormerPause(
                kind=each.kind, subject=each.subject, seconds=max(0.0, self._seconds_left(each)), reason=each.reason
            )
            for each in self._pauses.values()
            if each.source == source
        )

    def put(self, source: str, kind: PauseKind, subject: str, seconds: float, reason: str) -> None:
        now = Moment.of(self._clock)
        self._pauses[source, kind, subject] = RequestPause(
            source=source,
            kind=kind,
            subject=subject,
            until=now.wall + timedelta(seconds=seconds),
            until_monotonic=now.monotonic + seconds,
            boot=self._boot(),
            reason=reason,
        )
        self._write()

    def cut_short(self, source: str, kind: PauseKind, subject: str) -> None:
        pause = self._pauses.get((source, kind, subject))
        if pause is not None and self._seconds_left(pause) > 0:
            self.put(source, kind, subject, 0.0, pause.reason)

    def remove(self, source: str, kind: PauseKind, subject: str) -> None:
        is_known = self._pauses.pop((source, kind, subject), None) is not None
        # A source that answers again needs none of the pauses that could not be read: writing replaces a damaged row.
        if is_known or self._is_unreadable:
            self._write()

    def _is_kept(self, pause: RequestPause) -> bool:
        """Return whether a stored pause still matters: a circuit also after its time, until probes close it."""
        is_circuit = pause.kind is not PauseKind.RETRY_AFTER
        return self._seconds_left(pause) > (-FORGET_AFTER_SECONDS if is_circuit else 0.0)

    def _seconds_left(self, pause: RequestPause) -> float:
        return pause.seconds_left(Moment.of(self._clock), self._boot())

    def _report_unreadable(self, bus: Bus, message: str) -> None:
        self._is_unreadable = True
        bus.emit(RecordsFailed(records=RECORDS, error_message=f"{message}. {_CONSEQUENCE}"))

    def _write(self) -> None:
        self._is_written = False
        self._flusher.wake()

    async def _flush(self) -> bool:
        if self._is_written:
            return False
        # Set first: a change during the write needs another one.
        self._is_written = True
        self._pauses = {key: each for key, each in self._pauses.items() if self._is_kept(each)}
        try:
            await self._store.replace(tuple(self._pauses.values()))
        except BaseException:
            self._is_written = False
            raise
        self._is_unreadable = False
        return True


class PausesOfSource:
    """The pauses of one source."""

    def __init__(self, stored: StoredPauses, source: str) -> None:
        self._stored = stored
        self._source = source

    @property
    def former(self) -> Sequence[FormerPause]:
        return self._stored.former(self._source)

    def begin(self, kind: PauseKind, subject: str, seconds: float, reason: str) -> None:
        self._stored.put(self._source, kind, subject, seconds, reason)

    def cut_short(self, kind: PauseKind, subject: str) -> None:
        self._stored.cut_short(self._source, kind, subject)

    def end(self, kind: PauseKind, subject: str) -> None:
        self._stored.remove(self._source, kind, subject)
