"""The match logs: what happened to each match, one JSON object a line, packed when the match is archived."""

import gzip
import os
import shutil
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from longstop.clock import Clock, to_iso
from longstop.daemon_thread import DaemonThread
from longstop.telemetry.background import Background
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Severity, Telemetry
from longstop.telemetry.events.matches import MatchFinished, MatchPhaseChanged

FLUSH_EVERY_SECONDS = 1.0
#: Events that wait to be written; beyond, the oldest are dropped.
MAX_WAITING = 10_000
#: One log; a closing line says that it is full.
MAX_LOG_BYTES = 5_000_000
MAX_FIELD_CHARACTERS = 2_000
#: Matches with a log; beyond, the packed logs that are oldest are removed.
MAX_LOGS = 2_000
LOG = "log.jsonl"
PACKED = "log.jsonl.gz"

#: The name of the closing line; no event is called so.
_FULL = "log.full"
#: Longer than a closing line.
_TAIL_BYTES = 256


class Entry(NamedTuple):
    """An event of a match, and when it was heard."""

    match_id: int
    at: datetime
    event: Telemetry


class MatchLogs:
    """Takes events without waiting, from any thread; a thread of its own writes those of matches to a file for each.

    A file is open only while it is written to: a thousand matches need no thousand handles.
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
        #: Whether there may be more logs than that: an earlier run may have left them.
        self._may_be_full = True
        #: Appending and taking from the other end are safe between threads.
        self._waiting: deque[Entry] = deque(maxlen=MAX_WAITING)
        self._thread = DaemonThread("writer of match logs")
        self._background = Background("match logs", self._flush, every_seconds=flush_every_seconds)

    def take(self, event: Telemetry) -> None:
        match_id = getattr(event, "match_id", None)
        if event.severity is Severity.DEBUG or not isinstance(match_id, int):
            return
        self._waiting.append(Entry(match_id, self._clock.now(), event))
        if isinstance(event, MatchFinished):
            self._background.wake()

    @asynccontextmanager
    async def writing(self, bus: Bus) -> AsyncIterator[None]:
        """Write what is heard; a disk that fails is told to the bus, and what it did not take is gone."""
        async with self._background.running(bus):
            yield

    async def _flush(self) -> bool:
        return await self._thread.run(self._write_waiting)

    def _write_waiting(self) -> bool:
        by_match: dict[int, list[Entry]] = {}
        for _ in range(len(self._waiting)):
            entry = self._waiting.popleft()
            by_match.setdefault(entry.match_id, []).append(entry)
        failed: OSError | None = None
        for match_id, entries in by_match.items():
            try:
                self._write(self._folder / str(match_id), entries)
            except OSError as error:  # the other matches' logs may be well
                failed = error
        if failed is not None:
            raise failed
        if self._may_be_full:
            prune(self._folder, self._max_logs)
            self._may_be_full = False
        return bool(by_match)

    def _write(self, folder: Path, entries: Sequence[Entry]) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        append(folder / LOG, [_line(entry) for entry in entries], self._max_log_bytes)
        if any(isinstance(entry.event, MatchPhaseChanged) and entry.event.after == "archived" for entry in entries):
            pack(folder)
            self._may_be_full = True


def append(path: Path, lines: Sequence[bytes], max_bytes: int) -> None:
    """Add lines to a log up to its size; the first that does not fit is replaced by a closing one."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "rb+") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read()
        if _closing_line() in tail:
            return
        text = b"" if tail.endswith(b"\n") or not tail else b"\n"  # a crash left half a line
        for line in lines:
            if size + len(text) + len(line) > max_bytes:
                text += _closing_line()
                break
            text += line
        file.write(text)


def pack(folder: Path) -> None:
    """Put a log into its packed one, behind what is there; a crash on the way may double lines, and loses none."""
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
    """Remove the oldest packed logs while there are too many; one that is not packed may still be written to."""
    logs = [each for each in folder.iterdir() if each.is_dir()] if folder.exists() else []
    packed = [each for each in logs if (each / PACKED).exists() and not (each / LOG).exists()]
    packed.sort(key=lambda each: (each / PACKED).stat().st_mtime)
    for each in packed[: max(0, len(logs) - keep)]:
        shutil.rmtree(each)


def _line(entry: Entry) -> bytes:
    event = entry.event
    fields = {name: _cut(value) for name, value in msgspec.structs.asdict(event).items()}
    head = {"timestamp": to_iso(entry.at), "event": event.name, "severity": event.severity.value}
    return msgspec.json.encode(head | fields) + b"\n"


def _closing_line() -> bytes:
    return msgspec.json.encode({"event": _FULL}) + b"\n"


def _cut(value: Any) -> Any:
    """Return what JSON takes: of text the first part, without a site's broken halves of characters."""
    return value[:MAX_FIELD_CHARACTERS].encode(errors="replace").decode() if isinstance(value, str) else value
