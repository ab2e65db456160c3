"""Whether a page stands still while another one moves on. Pure.

The listing and a match's own pages are two witnesses of the same play. A moment of disagreement is a cache; one that
lasts is a frozen feed, which by itself looks exactly like a break.
"""

from enum import StrEnum

from msgspec import Struct

from longstop.model.match import MatchStatus
from longstop.pipeline.boards import steps_back
from longstop.sources.base import Line

#: A disagreement that lasts for so many usual intervals is no cache: 30 s.
FROZEN_INTERVALS = 12
#: A match in play whose line has not moved for this long is looked at by itself.
CHECK_AFTER = 60.0
#: The same for one of which no play is expected now: in a break, or past its start and not begun.
CHECK_IN_BREAK_AFTER = 300.0
#: Without a break being announced, no game stands still for this long: then even two witnesses are not believed.
SILENT_AFTER = 600.0


class Behind(StrEnum):
    """Who shows less than is known to have been played."""

    NOBODY = "nobody"
    MATCH = "match"
    LIST = "list"
    #: Nobody moves, and only the clock says that somebody should.
    BOTH = "both"


WITNESS = {Behind.MATCH: "list", Behind.LIST: "match", Behind.BOTH: "clock"}


class Lag(Struct, frozen=True, kw_only=True):
    """Who is behind, and since when."""

    behind: Behind = Behind.NOBODY
    since: float = 0.0

    def after(self, now: float, behind: Behind) -> "Lag":
        return self if behind is self.behind else Lag(behind=behind, since=now)

    def has_lasted(self, now: float, frozen_after: float) -> bool:
        if self.behind is Behind.BOTH:
            return True
        return self.behind is not Behind.NOBODY and now - self.since >= frozen_after


def who_is_behind(own: Line | None, listed: Line | None, unchanged_seconds: float) -> Behind:
    """Return which of two scoreboards of the same match shows less than the other."""
    if own is None or listed is None:
        return Behind.NOBODY
    if steps_back(listed, own):
        return Behind.MATCH
    if steps_back(own, listed):
        return Behind.LIST
    # Where much of the play changes nothing that is shown, standing still is usual.
    is_silent = own.tells_all and own.status is MatchStatus.LIVE and unchanged_seconds >= SILENT_AFTER
    return Behind.BOTH if is_silent else Behind.NOBODY
