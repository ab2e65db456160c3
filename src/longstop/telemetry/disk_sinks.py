"""Sinks that write to disk in the background: the errors table and the log of each match.

The emitter of an event never waits for a disk. A disk that fails is reported on the bus, and polling continues.
"""

import asyncio
import gzip
import os
import shutil
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from longstop.clock import Clock, to_iso
from longstop.daemon_thread import DaemonThread
from longstop.errors import StorageError
from longstop.storage.base import ErrorStore
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.episodes import MAX_PENDING, Episodes
from longstop.telemetry.events import Severity, Telemetry
from longstop.telemetry.events.matches import MatchFinished, MatchPhaseChanged
from longstop.telemetry.events.processes import RecordsFailed

#: How long records wait to be written together.
FLUSH_EVERY_SECONDS = 1.0
#: A hung disk must not delay the end of a process for longer.
CLOSE_WITHIN = 5.0
PRUNE_EVERY_SECONDS = 3600.0

#: Events that wait to be written to match logs; beyond, the oldest are dropped.
MAX_WAITING = 10_000
#: Size of one match log; a closing line says that it is full.
MAX_LOG_BYTES = 5_000_000
MAX_FIELD_CHARACTERS = 2_000
#: Matches with a log; beyond, the oldest compressed logs are removed.
MAX_LOGS = 2_000
LOG = "log.jsonl"
PACKED = "log.jsonl.gz"
#: Name of the closing line; no event has it.
_FULL = "log.full"
#: Longer than a closing line.
_TAIL_BYTES = 256


class PeriodicFlush:
    """Calls `flush` periodically and once more at the end. A failure is reported once until a flush succeeds.

    `flush` returns whether there was anything to write: an empty flush proves nothing about the disk.
    """

    def __init__(self, records: str, flush: Callable[[], Awaitable[bool]], *, every_seconds: float) -> None:
        self._records = records
        self._flush = flush
        self._every = every_seconds
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopping = False
        self._is_failing = False

    def wake(self) -> None:
        """Flush at once. May be called from any thread, and before `running`, which starts with a flush."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed, after the last flush
                self._loop.call_soon_threadsafe(self._woken.set)

    @asynccontextmanager
    async def running(self, bus: Bus) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        task = asyncio.create_task(self._run(bus), name=f"writer of {self._records}")
        try:
            yield
        finally:
            self._is_stopping = True
            self._woken.set()
            await asyncio.wait([task], timeout=CLOSE_WITHIN)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self, bus: Bus) -> None:
        while not self._is_stopping:
            await self._try(bus)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._woken.wait()
            self._woken.clear()
        await self._try(bus)

    async def _try(self, bus: Bus) -> None:
        try:
            if await self._flush():
                self._is_failing = False
        except Exception as error:  # the task must survive every error, or all later records would be lost
            if not self._is_failing:
                self._is_failing = True
                bus.emit(self._failure(error))

    def _failure(self, error: Exception) -> Telemetry:
        if isinstance(error, StorageError | OSError):
            return RecordsFailed(records=self._records, error_message=str(error))
        return failure_of(error, f"writer of {self._records}")


class ErrorsTable:
    """Stores failures as episodes. Takes events from any thread, also before `writing`."""

    def __init__(
        self, store: ErrorStore, *, node: str, clock: Clock, flush_every_seconds: float = FLUSH_EVERY_SECONDS
    ) -> None:
        self._clock = clock
        self._store = store
        #: Whether the unresolved episodes of the store were loaded.
        self._is_loaded = False
        self._lock = Lock()
        self._episodes = Episodes(node)
        self._prune_at = clock.monotonic()
        self._flusher = PeriodicFlush("errors", self._flush, every_seconds=flush_every_seconds)
        self._bus: Bus | None = None

    def take(self, event: Telemetry) -> None:
        with self._lock:
            self._episodes.take(event, self._clock.now())

    @asynccontextmanager
    async def writing(self, bus: Bus) -> AsyncIterator[None]:
        """Write episodes; report a failing disk, and how many changes were dropped meanwhile."""
        self._bus = bus
        async with self._flusher.running(bus):
            yield

    async def _flush(self) -> bool:
        try:
            if not self._is_loaded:
                await self._load()
            was_written = await self._write()
            if self._clock.monotonic() >= self._prune_at:
                await self._store.prune(self._clock.now())
                self._prune_at = self._clock.monotonic() + PRUNE_EVERY_SECONDS
        except BaseException:
            # After a failure the file may have been replaced.
            self._is_loaded = False
            raise
        return was_written

    async def _load(self) -> None:
        known = await self._store.open_episodes()
        with self._lock:
            self._episodes.load(known)
        self._is_loaded = True

    async def _write(self) -> bool:
        with self._lock:
            changes = self._episodes.take_pending()
        if not changes:
            return False
        try:
            await self._store.write(changes)
        except BaseException:
            with self._lock:
                self._episodes.give_back(changes)
            raise
        self._report_dropped()
        return True

    def _report_dropped(self) -> None:
        with self._lock:
            dropped = self._episodes.take_dropped()
        if dropped and self._bus is not None:
            reason = f"dropped {dropped:,} changes: more than {MAX_PENDING:,} were waiting"
            self._bus.emit(RecordsFailed(records="errors", error_message=reason))


class _Entry(NamedTuple):
    match_id: int
    at: datetime
    event: Telemetry


class MatchLogs:
    """Writes the events of each match to a file of its own, in a thread. Takes events from any thread.

    A file is open only while it is written, so that the number of matches is not limited by descriptors.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: Clock,
        max_log_bytes: int = MAX_LOG_BYTES,
        max_logs: int = MAX_LOGS,
        flush_every_seconds: float = FLUSH_EVERY_SECONDS,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._max_log_bytes = max_log_bytes
        self._max_logs = max_logs
        #: Whether there may be more logs than allowed: an earlier run may have left them.
        self._needs_pruning = True
        #: `append` and `popleft` of a deque are thread-safe.
        self._waiting: deque[_Entry] = deque(maxlen=MAX_WAITING)
        self._thread = DaemonThread("writer of match logs")
        self._flusher = PeriodicFlush("match logs", self._flush, every_seconds=flush_every_seconds)

    def take(self, event: Telemetry) -> None:
        match_id = getattr(event, "match_id", None)
        if event.severity is Severity.DEBUG or not isinstance(match_id, int):
            return
        self._waiting.append(_Entry(match_id, self._clock.now(), event))
        if isinstance(event, MatchFinished):
            self._flusher.wake()

    @asynccontextmanager
    async def writing(self, bus: Bus) -> AsyncIterator[None]:
        """Write events; report a failing disk. What it did not accept is lost."""
        async with self._flusher.running(bus):
            yield

    async def _flush(self) -> bool:
        return await self._thread.run(self._write_waiting)

    def _write_waiting(self) -> bool:
        by_match: dict[int, list[_Entry]] = {}
        for _ in range(len(self._waiting)):
            entry = self._waiting.popleft()
            by_match.setdefault(entry.match_id, []).append(entry)
        failed: OSError | None = None
        for match_id, entries in by_match.items():
            try:
                self._write(self._folder / str(match_id), entries)
            except OSError as error:  # the logs of other matches may be writable
                failed = error
        if failed is not None:
            raise failed
        if self._needs_pruning:
            prune(self._folder, self._max_logs)
            self._needs_pruning = False
        return bool(by_match)

    def _write(self, folder: Path, entries: Sequence[_Entry]) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        append(folder / LOG, [_line(entry) for entry in entries], self._max_log_bytes)
        if any(isinstance(entry.event, MatchPhaseChanged) and entry.event.after == "archived" for entry in entries):
            pack(folder)
            self._needs_pruning = True


def append(path: Path, lines: Sequence[bytes], max_bytes: int) -> None:
    """Append lines up to the maximum size; a closing line replaces the first that does not fit."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "rb+") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read()
        if _closing_line() in tail:
            return
        text = b"" if tail.endswith(b"\n") or not tail else b"\n"  # a crash left a partial line
        for line in lines:
            if size + len(text) + len(line) > max_bytes:
                text += _closing_line()
                break
            text += line
        file.write(text)


def pack(folder: Path) -> None:
    """Append a log to its compressed file. A crash meanwhile may duplicate lines, and loses none."""
    log, packed, draft = folder / LOG, folder / PACKED, folder / f"{PACKED}.part"
    with draft.open("wb") as target:
        if packed.exists():
            with packed.open("rb") as before:
                shutil.copyfileobj(before, target)
        with log.open("rb") as lines, gzip.open(target, "wb") as member:
            shutil.copyfileobj(lines, member)
        target.flush()
        os.fsync(target.fileno())
    draft.chmod(0o600)
    draft.replace(packed)
    log.unlink()


def prune(folder: Path, keep: int) -> None:
    """Remove the oldest compressed logs while there are too many; others may still be written."""
    logs = [each for each in folder.iterdir() if each.is_dir()] if folder.exists() else []
    packed = [each for each in logs if (each / PACKED).exists() and not (each / LOG).exists()]
    packed.sort(key=lambda each: (each / PACKED).stat().st_mtime)
    for each in packed[: max(0, len(logs) - keep)]:
        shutil.rmtree(each)


def _line(entry: _Entry) -> bytes:
    event = entry.event
    fields = {name: _clean(value) for name, value in msgspec.structs.asdict(event).items()}
    head = {"timestamp": to_iso(entry.at), "event": event.name, "severity": event.severity.value}
    return msgspec.json.encode(head | fields) + b"\n"


def _closing_line() -> bytes:
    return msgspec.json.encode({"event": _FULL}) + b"\n"


def _clean(value: Any) -> Any:
    """Cut text, and replace lone surrogates, which JSON cannot encode."""
    return value[:MAX_FIELD_CHARACTERS].encode(errors="replace").decode() if isinstance(value, str) else value
