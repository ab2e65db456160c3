"""The month's bytes through the proxy: how many are used, and which matches may use more.

Towards its end the budget is reserved by priority: finished matches stop first, then upcoming ones, live ones last.
The budget is never exceeded knowingly. The count survives restarts.
"""

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

import msgspec

from longstop.clock import Clock
from longstop.model.match import Priority
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.browsers import BudgetReached

#: The first share of the budget that is reported.
WARN_SHARE = 0.8
#: The share of the budget at which each priority stops.
SHARES = MappingProxyType({Priority.COMPLETED: 0.9, Priority.IMMINENT: 0.95, Priority.LIVE: 1.0})
_STEPS = (WARN_SHARE, *SHARES.values())
#: The most that a crash can lose of the count.
WRITE_EVERY_BYTES = 1_000_000


class Spending(msgspec.Struct, frozen=True):
    #: As `2026-11`, in UTC.
    month: str = ""
    used_bytes: int = 0


def spent(spending: Spending, used_bytes: int, now: datetime) -> Spending:
    """Return the spending with more bytes used; a new month starts at zero."""
    month = f"{now:%Y-%m}"
    before = spending.used_bytes if spending.month == month else 0
    return Spending(month, before + used_bytes)


def may_spend(spending: Spending, budget_bytes: int, priority: Priority, now: datetime) -> bool:
    """Return whether this priority may use more bytes; a budget of zero means no limit."""
    return not budget_bytes or spent(spending, 0, now).used_bytes < SHARES[priority] * budget_bytes


def step_reached(before: Spending, after: Spending, budget_bytes: int) -> float | None:
    """Return the highest share of the budget that was reached between two moments; `None` if none was."""
    if not budget_bytes:
        return None
    had = before.used_bytes if before.month == after.month else 0
    reached = [step for step in _STEPS if had < step * budget_bytes <= after.used_bytes]
    return max(reached, default=None)


class ProxyMeter:
    """Counts the bytes of a whole node; only one process writes the file."""

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
            self._report(share)
        is_new_month = self._spending.month != self._written.month
        if share or is_new_month or self._spending.used_bytes - self._written.used_bytes >= WRITE_EVERY_BYTES:
            self.flush()

    def may_spend(self, priority: Priority) -> bool:
        return may_spend(self._spending, self._budget_bytes, priority, self._clock.now())

    def flush(self) -> None:
        """Write the count to disk; a full disk must not stop polling."""
        if self._spending == self._written:
            return
        self._written = self._spending
        draft = self._path.with_name(f"{self._path.name}.new")
        with suppress(OSError):
            draft.write_bytes(msgspec.json.encode(self._spending))
            draft.replace(self._path)

    def _report(self, share: float) -> None:
        event = BudgetReached(
            percent=round(100 * share),
            used_bytes=self._spending.used_bytes,
            budget_bytes=self._budget_bytes,
            stopped=tuple(priority.name.lower() for priority, bound in SHARES.items() if share >= bound),
        )
        self._bus.emit(event)


def _read(path: Path) -> Spending:
    """Return the stored count; an unreadable file counts as empty."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(path.read_bytes(), type=Spending)
    return Spending()
