"""Telemetry events: frozen facts with a name that logs, metrics and tests share."""

from enum import StrEnum
from typing import ClassVar

from msgspec import Struct


class Severity(StrEnum):
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


class Telemetry(Struct, frozen=True, kw_only=True):
    """The base: a fact with a name and a severity."""

    name: ClassVar[str]
    severity: ClassVar[Severity] = Severity.INFO
