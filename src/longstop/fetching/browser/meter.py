"""The meter of the proxy: counts the bytes that are paid for, and keeps the count over restarts."""

from contextlib import suppress
from pathlib import Path

import msgspec

from longstop.clock import Clock
from longstop.fetching.browser.byte_budget import Spending, may_spend, spent, step_reached, stopped_at
from longstop.fetching.browser.events import BudgetReached
from longstop.model.match import Priority
from longstop.telemetry.bus import Bus

#: What a crash may make us forget.
WRITE_EVERY_BYTES = 1_000_000


class ProxyMeter:
    """Counts for a whole node; one process writes the file."""

    def __init__(self, path: Path, *, budget_bytes: int, clock: Clock, bus: Bus) -> None:
        self._path = path
        self._budget_bytes = budget_bytes
        self._clock = clock
        self._bus = bus
        self._spending = self._written = _read(path)

    @property
    def used_bytes(self) -> int:
        """What this month has used."""
        return spent(self._spending, 0, self._clock.now()).used_bytes

    def count(self, used_bytes: int) -> None:
        before, self._spending = self._spending, spent(self._spending, used_bytes, self._clock.now())
        share = step_reached(before, self._spending, self._budget_bytes)
        if share is not None:
            self._tell(share)
        is_new_month = self._spending.month != self._written.month
        if share or is_new_month or self._spending.used_bytes - self._written.used_bytes >= WRITE_EVERY_BYTES:
            self.flush()

    def may_spend(self, priority: Priority) -> bool:
        return may_spend(self._spending, self._budget_bytes, priority, self._clock.now())

    def flush(self) -> None:
        """Write the count down; a disk that is full must not end the reading."""
        if self._spending == self._written:
            return
        self._written = self._spending
        draft = self._path.with_name(f"{self._path.name}.new")
        with suppress(OSError):
            draft.write_bytes(msgspec.json.encode(self._spending))
            draft.replace(self._path)

    def _tell(self, share: float) -> None:
        self._bus.emit(
            BudgetReached(
                percent=round(100 * share),
                used_bytes=self._spending.used_bytes,
                budget_bytes=self._budget_bytes,
                stopped=tuple(priority.name.lower() for priority in stopped_at(share)),
            )
        )


def _read(path: Path) -> Spending:
    """Return what is written; a file that cannot be read says nothing."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(path.read_bytes(), type=Spending)
    return Spending()
