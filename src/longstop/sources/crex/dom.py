"""Parses crex's rendered match page: both sides with their scores, and the text for the last ball, break or result.

*Unverified*: no rendered page was recorded. Class names are those of 2024 to 2026; "Yet to bat" is the listing's text.
"""

import re

from longstop.sources.crex.live_list_and_scores import is_code, read_phase
from longstop.sources.dom import ITSELF, Field, RenderedPage, Selector, at_any
from longstop.sports.cricket.model import DomBoard, InningsScore, Overs, result_in

#: The batting side comes first.
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
    """Return the text before the score."""
    found = _SCORE.search(text) or _YET_TO_BAT.search(text)
    return (text[: found.start()] if found else text).strip() or None


def _known_phase(text: str) -> str | None:
    """Return the text if it can only be a code, a break or a result."""
    is_phase = (text and is_code(text)) or _BREAKS.search(text) or result_in(text)
    return text if is_phase else None


_SCORES = Field(name="score", selectors=at_any(_score, ".runs", "[data-score]", ITSELF))
_NAMES = Field(name="team", selectors=at_any(_name, ".team-name", "[data-team-name]", ITSELF))
#: In its usual place any text counts, even an empty one; elsewhere only an unambiguous one.
_PHASE = Field(
    name="headline",
    selectors=(
        Selector(".result-box span", str),
        *at_any(_known_phase, "[role=status]", "main > div:has(> span:only-child)"),
    ),
)


def read_rendered(source_id: str, body: bytes) -> DomBoard:
    """Return the board of a rendered match page; raise if both scores or the phase of play are missing."""
    page = RenderedPage(body)
    batting, bowling = page.blocks("sides", _SIDES, 2)
    now, other = page.need(_SCORES, batting), page.need(_SCORES, bowling)
    names = page.find(_NAMES, batting) or "", page.find(_NAMES, bowling) or ""
    # The batting side's score comes first; while the other side has none, this is the first innings.
    first, second = (now, None) if other.is_blank else (other, now)
    phase = read_phase(page.need(_PHASE), first)
    return DomBoard(
        source_id=source_id,
        status=phase.status,
        headline=phase.headline,
        fingerprint="|".join(("drawn", *names, phase.headline, str(first), str(second))),
        names=names,
        first=first,
        second=second,
        result=phase.result,
        is_innings_over=phase.is_innings_over,
        selectors=page.served,
    )
