"""Detects a page that shows old data while play goes on. Pure.

The listing and a match's own pages show the same play. A short disagreement is a cache. One that lasts is a frozen
page, which alone cannot be distinguished from a break.
"""

from enum import StrEnum

from msgspec import Struct

from longstop.model.match import MatchStatus
from longstop.model.observation import ListingEntry

#: A disagreement that lasts this many usual intervals (30 s) is not a cache.
FROZEN_INTERVALS = 12
#: One page must have changed this often while the other did not.
MOVES = 2
#: Without an announced break, play never stops for this long: both pages are then considered frozen.
SILENT_AFTER = 600.0


class Behind(StrEnum):
    """Which page shows less play than the other."""

    NEITHER = "neither"
    MATCH = "match"
    LIST = "list"
    #: Neither page changes, although play should go on.
    BOTH = "both"


#: What shows that a page is frozen.
WITNESS = {Behind.MATCH: "list", Behind.LIST: "match", Behind.BOTH: "clock"}


class Lag(Struct, frozen=True, kw_only=True):
    """Which page is behind, and since when."""

    behind: Behind = Behind.NEITHER
    since: float = 0.0

    def after(self, now: float, behind: Behind) -> "Lag":
        return self if behind is self.behind else Lag(behind=behind, since=now)

    def has_lasted(self, now: float, frozen_after: float) -> bool:
        if self.behind is Behind.BOTH:
            return True
        return self.behind is not Behind.NEITHER and now - self.since >= frozen_after


def page_behind(own: ListingEntry | None, listed: ListingEntry | None, unchanged_seconds: float) -> Behind:
    """Return which of two scoreboards of the same match shows less than the other."""
    if own is None or listed is None:
        return Behind.NEITHER
    if own.shows_less_than(listed):
        return Behind.MATCH
    if listed.shows_less_than(own):
        return Behind.LIST
    # A board that does not show every event may stay the same for long during play.
    is_silent = own.shows_every_change and own.status is MatchStatus.LIVE and unchanged_seconds >= SILENT_AFTER
    return Behind.BOTH if is_silent else Behind.NEITHER
