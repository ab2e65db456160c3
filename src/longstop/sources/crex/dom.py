"""crex as its match page draws it: two sides with their scores, and the word for the last ball, break or result.

*Unverified*: the names of classes are those of 2024 to 2026, no drawn page was recorded. "Yet to bat" is the listing's.
"""

import re

from longstop.sources.crex.board import is_code, moment
from longstop.sources.dom import ITSELF, Field, RenderedPage, Selector, at_any
from longstop.sources.results import result_in
from longstop.sports.cricket.model import DomBoard, InningsScore, Overs

#: The side that bats now stands first.
_SIDES = (".team-content", "[data-team]", "main > div:has(> img)")

_SCORE = re.compile(r"(?<![\w/.-])(\d{1,4})[/-](\d{1,2}) ?\((\d{1,3})(?:\.(\d))?\)", re.ASCII)
_YET_TO_BAT = re.compile(r"\byet to bat\b", re.IGNORECASE)
_BREAKS = re.compile(
    r"^(innings break|super over|drinks|lunch|tea|stumps|rain|bad light|wet outfield|timeout|strategic timeout"
    r"|play (?:delayed|stopped|suspended)|start delayed|delayed|match (?:delayed|stopped|suspended)|toss)\b.{0,80}$",
    re.IGNORECASE,
)
_NO_INNINGS = InningsScore(runs=0, wickets=0, overs=Overs(0, 0))


def _score(text: str) -> InningsScore | None:
    found = _SCORE.findall(text)
    if not found and _YET_TO_BAT.search(text):
        return _NO_INNINGS
    if len(found) != 1:
        return None
    runs, wickets, over, ball = (int(part or 0) for part in found[0])
    return InningsScore(runs=runs, wickets=wickets, overs=Overs(over, ball))


def _name(text: str) -> str | None:
    """Return what stands before the score."""
    found = _SCORE.search(text) or _YET_TO_BAT.search(text)
    return (text[: found.start()] if found else text).strip() or None


def _known_word(text: str) -> str | None:
    """Return a text that can be nothing else than what is said of the moment."""
    is_word = (text and is_code(text)) or _BREAKS.search(text) or result_in(text)
    return text if is_word else None


_SCORES = Field(name="score", selectors=at_any(_score, ".runs", "[data-score]", ITSELF))
_NAMES = Field(name="team", selectors=at_any(_name, ".team-name", "[data-team-name]", ITSELF))
#: Where it belongs, any text counts, also none; elsewhere only one that cannot be mistaken.
_SAID = Field(
    name="headline",
    selectors=(
        Selector(".result-box span", str),
        *at_any(_known_word, "[role=status]", "main > div:has(> span:only-child)"),
    ),
)


def read_rendered(source_id: str, body: bytes) -> DomBoard:
    """Return the board of a drawn match page; raise when it does not show both scores and what is said of the play."""
    page = RenderedPage(body)
    batting, bowling = page.blocks("sides", _SIDES, 2)
    now, other = page.need(_SCORES, batting), page.need(_SCORES, bowling)
    names = page.find(_NAMES, batting) or "", page.find(_NAMES, bowling) or ""
    # The scores stand by who bats; until the other side has one, the first innings is under way.
    first, second = (now, None) if other.is_blank else (other, now)
    means = moment(page.need(_SAID), first)
    return DomBoard(
        source_id=source_id,
        status=means.status,
        headline=means.headline,
        fingerprint="|".join(("drawn", *names, means.headline, str(first), str(second))),
        names=names,
        first=first,
        second=second,
        result=means.result,
        is_innings_over=means.is_innings_over,
        selectors=page.served,
    )
