"""How lively a match is, by its last cycles. Pure: one cycle at a time goes in.

A cycle is one chance to see news: a look, or a line of the listing.
"""

import msgspec
from msgspec import Struct

from longstop.model.match import MatchStatus

#: Over so many cycles liveliness is judged.
CYCLES = 10
#: More than this share of them with news is a busy match.
BUSY_SHARE = 0.5


class Rhythm(Struct, frozen=True, kw_only=True):
    """The last cycles of a match, newest last."""

    #: When something was last seen to change, or the watch began.
    changed_at: float
    #: Whether each of the last cycles brought news.
    news: tuple[bool, ...] = ()
    #: Cycles in a row without news.
    unchanged: int = 0

    def after(self, now: float, *, is_news: bool) -> "Rhythm":
        """Return the rhythm with one cycle more."""
        return msgspec.structs.replace(
            self,
            changed_at=now if is_news else self.changed_at,
            news=(*self.news, is_news)[-CYCLES:],
            unchanged=0 if is_news else self.unchanged + 1,
        )

    @property
    def is_busy(self) -> bool:
        return len(self.news) == CYCLES and sum(self.news) > BUSY_SHARE * CYCLES

    @property
    def is_quiet(self) -> bool:
        """Return whether nothing has happened for some cycles: a good moment to do something else."""
        return self.unchanged >= CYCLES

    def is_break(self, status: MatchStatus, now: float, break_after: float) -> bool:
        """Return whether play has stopped. Balls are 30 s apart: a few equal looks alone are no break."""
        if status is MatchStatus.BREAK and self.is_quiet:
            return True
        return now - self.changed_at >= break_after
