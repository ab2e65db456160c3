"""Telemetry events: frozen values whose names are shared by logs, metrics, alerts and tests."""

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
    """The base of all events."""

    name: ClassVar[str]
    severity: ClassVar[Severity] = Severity.INFO
