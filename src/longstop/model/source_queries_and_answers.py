"""Queries to a source and its answers, for every sport: listings, and observations of one match."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from longstop.errors import ObservationError, SourceError
from longstop.model.match import MatchStatus

#: Resources of every sport: the list of matches, a match's live state, its rendered page.
LIST, LIVE, RENDERED = "list", "live", "drawn"


class Query(Struct, frozen=True, kw_only=True):
    #: One of the three above, or one of the sport's.
    resource: str
    #: The source's id of the match; empty for a listing, and offline where any match fits.
    source_id: str = ""
    #: For a list with pages: the start of the next page; `None` for the first.
    cursor: str | None = None
    #: For names: the keys to resolve.
    players: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    #: Whether the page may not exist yet: then a 404 is not an error.
    is_optional: bool = False

    def __str__(self) -> str:
        return f"{self.resource} {self.source_id}".rstrip()


class ListingEntry(Struct, frozen=True, kw_only=True):
    """The live state of a match, as a listing's entry or the match's own page shows it."""

    source_id: str
    status: MatchStatus
    #: The site's text about the last event, break or result.
    headline: str
    start_at: datetime | None = None
    #: Equal fingerprints mean that nothing changed that we store.
    fingerprint: str = ""
    #: Whether an unchanged entry means that nothing happened. An entry with only the score does not show cards: then
    #: the match's own pages are polled every time, and a long time without news is not a break.
    shows_every_change: bool = True
    #: Why this answer may be altered; empty for a clean one. Never part of the fingerprint or of a payload.
    suspicions: tuple[str, ...] = ()

    @property
    def teams(self) -> tuple[str, ...]:
        """Return the keys of the teams, in an order that never changes; sports override it."""
        return ()

    def shows_less_than(self, other: "ListingEntry") -> bool:
        """Return whether this entry shows less play than the other one; sports compare their scores too."""
        return self.status is MatchStatus.UPCOMING and other.status is not MatchStatus.UPCOMING


class Listing(Struct, frozen=True, kw_only=True):
    """The matches that a site lists now; possibly none."""

    boards: tuple[ListingEntry, ...]
    #: Listed matches whose entry cannot be parsed: neither missing nor finished.
    unreadable: tuple[str, ...] = ()


class Keys(Struct, frozen=True, kw_only=True):
    """By one source's keys of players and teams: the stored keys, or their names."""

    players: Mapping[str, str] = {}
    teams: Mapping[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.players or self.teams)


class Observation(Struct, frozen=True, kw_only=True):
    """What one poll of one source showed about a match."""

    #: When the last byte arrived.
    captured_at: datetime
    #: The sport's record of what was shown; `None` when nothing changed since the last poll.
    view: Any
    #: Optional resources that failed: unknown, not empty.
    absent: Mapping[str, SourceError] = {}
    #: Why the view is of the rendered page, which shows no events; `None` if it is of the data.
    replaced: SourceError | None = None
    #: Digests of the first bodies of a poll, by resource.
    digests: Mapping[str, bytes] = {}
    #: The mapping of the source's keys to the stored ones.
    keys: Keys = Keys()
    #: Why an answer of the poll may have been altered.
    suspicions: tuple[str, ...] = ()
    #: How the poll contradicts the stored match: then the view was read as if nothing was stored.
    contradiction: ObservationError | None = None
