"""What a source shows of a match: queries, lines, listings, observations. Whatever the sport."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from longstop.errors import SourceError
from longstop.model.match import MatchRef, MatchStatus

#: Resources that every sport has: the list of matches, a match's own state, its page as the script has drawn it.
LIST, LIVE, RENDERED = "list", "live", "drawn"


class Query(Struct, frozen=True, kw_only=True):
    """What to ask a site."""

    #: One of the three above, or one of the sport's own.
    resource: str
    #: The source's id of the match; empty for a listing, and offline where any match will do.
    source_id: str = ""
    #: For a list in pages: where the next page begins; `None` for the first.
    cursor: str | None = None
    #: For names: the keys to resolve.
    players: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    #: Whether the site may not have the page yet: then "not found" is an answer, and no error.
    is_optional: bool = False

    def __str__(self) -> str:
        return f"{self.resource} {self.source_id}".rstrip()


class ListingEntry(Struct, frozen=True, kw_only=True):
    """What a listing's entry, or a match's own page, shows at a glance."""

    source_id: str
    status: MatchStatus
    #: The site's own words for the last event, break or result.
    headline: str
    start_at: datetime | None = None
    #: Equal fingerprints mean: nothing that we keep of this line has changed.
    fingerprint: str = ""
    #: Whether an equal line means that nothing has happened. One that shows the score alone does not tell of cards:
    #: then the match's own pages are polled every time, and a long silence is no break.
    tells_all: bool = True

    def shows_less_than(self, other: "ListingEntry") -> bool:
        """Return whether this line would be a step back after the other one; sports compare their scores too."""
        return self.status is MatchStatus.UPCOMING and other.status is not MatchStatus.UPCOMING


class Listing(Struct, frozen=True, kw_only=True):
    """The matches a site shows now. An empty one is an answer; a failed one is an error."""

    boards: tuple[ListingEntry, ...]
    #: Matches that are in the list with an entry we cannot read: neither missing nor finished.
    unreadable: tuple[str, ...] = ()


class Keys(Struct, frozen=True, kw_only=True):
    """From one source's keys of players and teams to those stored, where they differ or are known to be the same."""

    players: Mapping[str, str] = {}
    teams: Mapping[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.players or self.teams)


class Coverage(StrEnum):
    """What it proves that an observation does not show an event."""

    #: The whole event list was read: what is not there is gone.
    FULL = "full"
    #: The list was read back to something known: nothing is said of what lies before.
    SINCE = "since"
    #: The source shows its newest events only.
    WINDOW = "window"
    #: Only the page as drawn could be read: nothing is said of any event.
    DOM = "dom"


class Observation(Struct, frozen=True, kw_only=True):
    """What one poll of one source showed of a match."""

    feed: MatchRef
    #: The clock when the last byte of what it shows had come.
    captured_at: datetime
    #: The sport's own record of what was shown; `None` when all of it is as it was at the last poll.
    view: Any
    coverage: Coverage
    #: Resources that are good to have and failed: unknown, not empty.
    absent: Mapping[str, SourceError] = {}
    #: By resource, the digests of the bodies that every poll begins with.
    digests: Mapping[str, bytes] = {}
    #: How the source's keys map onto those stored.
    keys: Keys = Keys()
