"""Shared by all suites: progress on stderr, one JSON line on stdout, and an exit code."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from longstop.errors import LongstopError

_BEGAN = time.monotonic()


class Report(Struct, frozen=True, kw_only=True):
    """The result of a suite. docs/explanation/benchmarks.md defines the keys of `figures`, once for all suites."""

    suite: str
    is_ok: bool
    figures: Mapping[str, Any]
    #: Descriptions of what is wrong.
    details: Sequence[str] = ()

    def encode(self) -> str:
        details = {"details": self.details} if self.details else {}
        return msgspec.json.encode({"suite": self.suite, "ok": self.is_ok, **self.figures, **details}).decode()


def say(sentence: str) -> None:
    """Print progress to stderr."""
    print(f"{time.monotonic() - _BEGAN:6.1f} s  {sentence}", file=sys.stderr, flush=True)


def run(name: str, suite: Awaitable[Report]) -> int:
    """Run a suite, print its line, and return the exit code; a suite that cannot run has failed."""

    async def until_done() -> Report:
        return await suite

    try:
        report = asyncio.run(until_done())
    except LongstopError as error:
        report = Report(suite=name, is_ok=False, figures={}, details=[str(error)])
    print(report.encode(), flush=True)
    return 0 if report.is_ok else 1


def rounded(value: float | None, digits: int = 3) -> float | None:
    return None if value is None else round(value, digits)
