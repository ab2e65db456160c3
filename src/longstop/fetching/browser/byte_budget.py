"""The month's bytes through the proxy: what is used, and who may still use some. Pure.

Towards its end the budget is kept for those who need it most: matches that are over stop first, then those to come,
and live ones last. Nobody goes beyond it.
"""

from datetime import datetime
from types import MappingProxyType

from msgspec import Struct

from longstop.model.match import Priority

#: From here on it is told.
WARN_SHARE = 0.8
#: The share of the budget that each priority may see used, and still go on.
SHARES = MappingProxyType({Priority.COMPLETED: 0.9, Priority.IMMINENT: 0.95, Priority.LIVE: 1.0})
_STEPS = (WARN_SHARE, *SHARES.values())


class Spending(Struct, frozen=True):
    """What one month has used."""

    #: As `2026-11`, by UTC.
    month: str = ""
    used_bytes: int = 0


def spent(spending: Spending, used_bytes: int, now: datetime) -> Spending:
    """Return the spending with more bytes used; a new month begins at nothing."""
    month = f"{now:%Y-%m}"
    before = spending.used_bytes if spending.month == month else 0
    return Spending(month, before + used_bytes)


def may_spend(spending: Spending, budget_bytes: int, priority: Priority, now: datetime) -> bool:
    """Return whether somebody with this priority may use more; a budget of nothing is none, and bounds nobody."""
    return not budget_bytes or spent(spending, 0, now).used_bytes < SHARES[priority] * budget_bytes


def step_reached(before: Spending, after: Spending, budget_bytes: int) -> float | None:
    """Return the highest share of the budget that was reached between two moments; `None` when it was none."""
    if not budget_bytes:
        return None
    had = before.used_bytes if before.month == after.month else 0
    reached = [step for step in _STEPS if had < step * budget_bytes <= after.used_bytes]
    return max(reached, default=None)


def stopped_at(share: float) -> tuple[Priority, ...]:
    """Return who may use nothing more once this share is used."""
    return tuple(priority for priority, bound in SHARES.items() if share >= bound)
