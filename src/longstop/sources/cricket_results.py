"""The result of a cricket match, parsed from a site's text. Breaks such as "Tea" are not results."""

import re

from longstop.sports.cricket.model import Result, ResultKind

#: The order matters: a tie decided by a super over also contains "won".
_RESULTS: tuple[tuple[re.Pattern[str], ResultKind], ...] = (
    (re.compile(r"^match tied\b", re.IGNORECASE), ResultKind.TIE),
    (re.compile(r"^(match )?drawn?\b", re.IGNORECASE), ResultKind.DRAW),
    (re.compile(r"^no result\b", re.IGNORECASE), ResultKind.NO_RESULT),
    (re.compile(r"^(match )?abandoned\b", re.IGNORECASE), ResultKind.ABANDONED),
    (re.compile(r"^(match )?cancell?ed\b", re.IGNORECASE), ResultKind.CANCELLED),
    (re.compile(r"\b(walkover|conceded)\b", re.IGNORECASE), ResultKind.WALKOVER),
    (re.compile(r"(?<!toss )\bwon by\b", re.IGNORECASE), ResultKind.WON),
)


def result_in(text: str) -> Result | None:
    """Return the result that a text states; `None` for any other text."""
    for pattern, outcome in _RESULTS:
        if pattern.search(text):
            return Result(outcome=outcome, text=text)
    return None
