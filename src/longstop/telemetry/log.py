"""The log sink: one JSON object a line."""

import sys
from typing import TextIO

import msgspec

from longstop.clock import Clock, to_iso
from longstop.telemetry.events import Severity, Telemetry
from longstop.text import printable_json

#: Longer fields are cut: one event must not fill a disk.
MAX_FIELD_CHARACTERS = 8192

#: From the least to the most severe.
_LEVELS = list(Severity)


class LogSink:
    """Writes events at or above a level as JSON lines."""

    def __init__(self, *, process: str, level: Severity, clock: Clock, stream: TextIO | None = None) -> None:
        self._process = process
        self._written = _LEVELS[_LEVELS.index(level) :]
        self._clock = clock
        self._stream = stream or sys.stderr

    def take(self, event: Telemetry) -> None:
        if event.severity not in self._written:
            return
        line = {
            "process": self._process,
            "timestamp": to_iso(self._clock.now()),
            "severity": event.severity.value,
            **event.fields(MAX_FIELD_CHARACTERS),
            "event": event.name,
        }
        # One call for each line: lines of several threads must not mix.
        self._stream.write(printable_json(msgspec.json.encode(line).decode()) + "\n")
        self._stream.flush()
