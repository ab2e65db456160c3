"""What crex says of the moment, in words or in a code, and what that means for the match."""

import re
from typing import NamedTuple

from longstop.model.cricket import InningsScore, Result
from longstop.model.match import MatchStatus
from longstop.sources.results import result_in

#: A code while the ball is live (`4`, `wd`, `w`, `o`, `^2` = caught, not two runs), else a text.
_CODE = re.compile(r"\^?\d{0,2}(wd|nb\d?|lb|b|p|w|o|B|e|bc|u|no|ba|cd|f|fh|ruka)?(\+.*)?")
_INNINGS_OVER = re.compile(r"^(innings break|super over)\b", re.IGNORECASE)


class Moment(NamedTuple):
    """Where a match stands, by what is said of it."""

    status: MatchStatus
    #: The site's own words; empty while there is a code, or nothing.
    headline: str
    result: Result | None
    is_innings_over: bool


def is_code(said: str) -> bool:
    """Return whether this is no text for people; nothing at all is none either."""
    return _CODE.fullmatch(said) is not None


def moment(said: str, first: InningsScore | None) -> Moment:
    """Return what the site's word for the last event means, beside the score of the first innings."""
    headline = "" if is_code(said) else said.strip()
    result = result_in(headline)
    is_over = result is not None or _INNINGS_OVER.search(headline) is not None
    return Moment(_status(said, headline, first, result), headline, result, is_over)


def _status(said: str, headline: str, first: InningsScore | None, result: Result | None) -> MatchStatus:
    if result is not None:
        return MatchStatus.COMPLETED
    if headline:
        return MatchStatus.BREAK
    if not said and (first is None or first.is_blank):
        return MatchStatus.UPCOMING
    return MatchStatus.LIVE
