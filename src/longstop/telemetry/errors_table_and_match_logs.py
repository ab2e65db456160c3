"""Sinks that write to disk in the background: the errors table and the log of each match.

The emitter of an event never waits for a disk. A disk that fails is reported on the bus, and polling continues.
"""

import gzip
import os
import shutil
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import msgspec

from longstop.clock import Clock, to_iso
from longstop.daemon_thread import DaemonThread
from longstop.storage.base import ErrorStore
from longstop.telemetry.bus import Bus
from longstop.telemetry.episodes import MAX_PENDING, Episodes
from longstop.telemetry.events import Severity, Telemetry, matches, processes
from longstop.telemetry.periodic_flush import PeriodicFlush
from longstop.text import printable_json

#: How long records wait to be written together.
FLUSH_EVERY_SECONDS = 1.0
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
#: The closing line; no event has its name.
_FULL = b'{"event":"log.full"}\n'


class ErrorsTable:
    """Stores failures as episodes. Takes events from any thread, also before `writing`."""

    def __init__(self, store: ErrorStore, *, node: str, clock: Clock) -> None:
        self._clock = clock
        self._store = store
        #: Whether the unresolved episodes of the store were loaded.
        self._is_loaded = False
        self._lock = Lock()
        self._episodes = Episodes(node)
        self._prune_at = clock.monotonic()
        self._flusher = PeriodicFlush("errors", self._flush, every_seconds=FLUSH_EVERY_SECONDS)
        self._bus = Bus()

    def take(self, event: Telemetry) -> None:
        with self._lock:
            self._episodes.take(event, self._clock.now())

    def writing(self, bus: Bus) -> AbstractAsyncContextManager[None]:
        """Write episodes; report a failing disk, and how many changes were dropped meanwhile."""
        self._bus = bus
        return self._flusher.running(bus)

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
        if dropped:
            reason = f"dropped {dropped:,} changes: more than {MAX_PENDING:,} were waiting"
            self._bus.emit(processes.RecordsFailed(records="errors", error_message=reason))


class _Entry(NamedTuple):
    match_id: int
    at: datetime
    event: Telemetry


class MatchLogs:
    """Writes the events of each match to a file of its own, in a thread. Takes events from any thread.

    A file is open only while it is written, so that the number of matches is not limited by descriptors.
    """

    def __init__(self, folder: Path, *, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        #: Whether there may be more logs than allowed: an earlier run may have left them.
        self._needs_pruning = True
        #: `append` and `popleft` of a deque are thread-safe.
        self._waiting: deque[_Entry] = deque(maxlen=MAX_WAITING)
        self._thread = DaemonThread("writer of match logs")
        self._flusher = PeriodicFlush("match logs", self._flush, every_seconds=FLUSH_EVERY_SECONDS)

    def take(self, event: Telemetry) -> None:
        match_id = getattr(event, "match_id", None)
        if event.severity is Severity.DEBUG or not isinstance(match_id, int):
            return
        self._waiting.append(_Entry(match_id, self._clock.now(), event))
        if isinstance(event, matches.MatchFinished):
            self._flusher.wake()

    def writing(self, bus: Bus) -> AbstractAsyncContextManager[None]:
        """Write events; report a failing disk. What it did not accept is lost."""
        return self._flusher.running(bus)

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
            prune(self._folder, MAX_LOGS)
            self._needs_pruning = False
        return bool(by_match)

    def _write(self, folder: Path, entries: Sequence[_Entry]) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        append(folder / LOG, [_line(entry) for entry in entries], MAX_LOG_BYTES)
        phases = (entry.event.after for entry in entries if isinstance(entry.event, matches.MatchPhaseChanged))
        if "archived" in phases:
            pack(folder)
            self._needs_pruning = True


def append(path: Path, lines: Sequence[bytes], max_bytes: int) -> None:
    """Append lines up to the maximum size; a closing line replaces the first that does not fit."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "rb+") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(_FULL)))
        if file.read() == _FULL:
            return
        for line in lines:
            size += len(line)
            file.write(line if size <= max_bytes else _FULL)
            if size > max_bytes:
                return


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
    head = {"timestamp": to_iso(entry.at), "event": event.name, "severity": event.severity.value}
    encoded = msgspec.json.encode(head | event.fields(MAX_FIELD_CHARACTERS)).decode()
    return printable_json(encoded).encode() + b"\n"
