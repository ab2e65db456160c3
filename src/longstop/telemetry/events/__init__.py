"""Telemetry events: frozen values whose names are shared by logs, metrics, alerts and tests.

`docs/reference/events.md` says when each is emitted; a docstring adds what that table does not say.
"""

from enum import StrEnum
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import asdict

from longstop.text import change_texts


class Severity(StrEnum):
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


class Telemetry(Struct, frozen=True, kw_only=True):
    name: ClassVar[str]
    severity: ClassVar[Severity] = Severity.INFO

    def fields(self, max_characters: int) -> dict[str, Any]:
        """Return the fields by name, with text that is cut and cleaned."""
        return {
            name: change_texts(value, lambda text: clean(text, max_characters)) for name, value in asdict(self).items()
        }


def clean(text: str, max_characters: int) -> str:
    """Cut foreign text, and replace lone surrogates, which neither JSON nor a database accepts."""
    return text[:max_characters].encode(errors="replace").decode()
