"""When "not found" means that a match is over: only when it lasts, and no list shows the match either. Pure."""

import msgspec
from msgspec import Struct

#: So many times a page must be missing, each time long enough after the last.
CONFIRMATIONS = 3


class Absence(Struct, frozen=True, kw_only=True):
    """How often in a row a match's page was not found."""

    times: int = 0
    #: When it was counted last.
    counted_at: float = 0.0

    def after_missing(self, now: float, *, apart: float) -> "Absence":
        """Count one more, unless it is so soon after the last that it says nothing new."""
        if self.times and now - self.counted_at < apart:
            return self
        return msgspec.structs.replace(self, times=self.times + 1, counted_at=now)

    def is_gone(self, *, is_listed: bool) -> bool:
        return self.times >= CONFIRMATIONS and not is_listed
