"""How much a site may show of a match, or in a listing. What shows more is refused. Pure."""

from collections.abc import Mapping, Sized

from msgspec import Struct
from msgspec.structs import astuple

from longstop.errors import LimitExceeded
from longstop.sports.base import Draft

#: Larger numbers lose digits in JSON, and do not fit into a column.
MAX_NUMBER = 2**53


class Limits(Struct, frozen=True, kw_only=True):
    """The settings `scraper.limits`; each field names its variable: `events` is `SCRAPER_MAX_EVENTS`."""

    #: All pages of one poll; their count restarts if it reads the match again.
    poll_bytes: int = 12_000_000
    poll_pages: int = 600
    #: Each list of a page.
    items: int = 2_000
    #: A match, and the lists of all pages of one poll.
    events: int = 10_000
    #: What a sport counts in `Sport.extent`.
    innings: int = 50
    overs: int = 500
    #: A listing.
    entries: int = 5_000
    #: Matches of a source that are watched; those that ended are watched for another day.
    matches: int = 2_000
    #: Characters of one text.
    text: int = 500
    payload_bytes: int = 1_000_000
    #: Parsing of a large page, or the comparison of a large match.
    parse_seconds: float = 5.0

    def check(self, name: str, count: float, what: str) -> None:
        """Raise if there is more than the limit of this name."""
        most = getattr(self, name)
        if count > most:
            raise LimitExceeded(f"{count:,} {what}; the limit is {most:,} (SCRAPER_MAX_{name.upper()})")

    def check_view(self, view: object) -> int:
        """Return the size of the longest list of a parsed page; raise if a list, text or number in it is too large."""
        longest, found = 0, [view]
        while found:
            each = found.pop()
            # The most frequent types come first: this runs for every field of every changed page.
            if each is None:
                continue
            if isinstance(each, str):
                if len(each) > self.text:
                    self.check("text", len(each), f"characters in a text that starts with {each[:20]!r}")
            elif isinstance(each, int):
                if abs(each) > MAX_NUMBER:
                    raise LimitExceeded(f"a number with {each.bit_length()} bits; no match needs more than 53")
            elif isinstance(each, Struct):
                found += astuple(each)
            elif isinstance(each, tuple | list | frozenset | Mapping):
                longest = max(longest, self._items(each))
                found += each
                if isinstance(each, Mapping):
                    found += each.values()
        return longest

    def _items(self, many: Sized) -> int:
        if len(many) > self.items:
            self.check("items", len(many), "items in a list")
        return len(many)

    def check_extent(self, extent: Mapping[str, int]) -> None:
        """Raise if a match has more of something than the limit; what has no limit is not checked."""
        for name, count in extent.items():
            if name in self.__struct_fields__:
                self.check(name, count, name)

    def check_draft(self, draft: Draft) -> None:
        """Raise if a match would become too large, given what a poll adds."""
        after = draft.state
        self.check("events", len(after.events), "events")
        self.check("items", max(len(after.players), len(after.teams), len(after.findings)), "names or open findings")
        if draft.payload is not None:
            self.check("payload_bytes", len(draft.payload), "bytes of payload")
