"""The log sink: one JSON object a line."""

import logging
import sys
from typing import Any, TextIO

import msgspec
import structlog

from longstop.clock import Clock, to_iso
from longstop.telemetry.events import Severity, Telemetry

#: Longer fields are cut: one event must not fill a disk.
MAX_FIELD_CHARACTERS = 8192

_LEVELS = {
    Severity.DEBUG: logging.DEBUG,
    Severity.INFO: logging.INFO,
    Severity.WARN: logging.WARNING,
    Severity.ERROR: logging.ERROR,
    Severity.CRITICAL: logging.CRITICAL,
}


class LogSink:
    """Writes events at or above a level as JSON lines."""

    def __init__(self, *, process: str, level: Severity, clock: Clock, stream: TextIO | None = None) -> None:
        self._clock = clock
        self._logger = structlog.wrap_logger(
            structlog.WriteLogger(stream or sys.stderr),
            processors=[_cap_fields, structlog.processors.JSONRenderer(serializer=_to_json)],
            wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
            process=process,
        )

    def take(self, event: Telemetry) -> None:
        self._logger.log(
            _LEVELS[event.severity],
            event.name,
            timestamp=to_iso(self._clock.now()),
            severity=event.severity.value,
            **msgspec.structs.asdict(event),
        )


def _cap_fields(_logger: Any, _method: str, fields: structlog.types.EventDict) -> structlog.types.EventDict:
    return {name: value[:MAX_FIELD_CHARACTERS] if isinstance(value, str) else value for name, value in fields.items()}


def _to_json(fields: Any, **_options: Any) -> str:
    return msgspec.json.encode(fields).decode()
