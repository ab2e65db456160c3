"""sofascore as its match page draws it: both sides, the score, and where the match stands.

*Unverified*: no drawn page was recorded; the classes are those of the simulator, and a real page's are made by machine.
"""

import re
from unicodedata import normalize

from msgspec import Struct

from longstop.errors import LayoutChanged
from longstop.model.match import MatchStatus
from longstop.sources.dom import Field, RenderedPage, Selector, at_any
from longstop.sports.football.model import FootballDomBoard, FootballTeam, Goals, Side

_SCORE = re.compile(r"(\d{1,2}) ?[:–-] ?(\d{1,2})", re.ASCII)
_NO_SCORE = re.compile(r"[-–] ?: ?[-–]")
_MINUTE = re.compile(r"\d{1,3}(?: ?\+ ?\d{1,2})?['′]", re.ASCII)
_TITLE = re.compile(r"(?P<home>.+?) (?:vs?\.?|–) (?P<away>.+?)(?: live score\b.*)?", re.IGNORECASE)

#: The site's words for where a match stands, as its event has them too; a minute means play.
_STATUSES = {
    MatchStatus.UPCOMING: ("not started", "postponed"),
    MatchStatus.LIVE: ("1st half", "2nd half", "1st extra", "2nd extra", "penalties", "started"),
    MatchStatus.BREAK: (
        "halftime",
        "awaiting extra time",
        "extra time halftime",
        "awaiting penalties",
        "interrupted",
        "suspended",
    ),
    MatchStatus.COMPLETED: ("ended", "aet", "ap", "canceled", "abandoned", "walkover"),
}
_BY_WORD = {word: status for status, words in _STATUSES.items() for word in words}


class _Shown(Struct, frozen=True):
    """What stands where the score stands: goals, or the dashes that mean none."""

    goals: Goals | None


class _Standing(Struct, frozen=True):
    status: MatchStatus
    headline: str


def _score(text: str) -> _Shown | None:
    if _NO_SCORE.fullmatch(text):
        return _Shown(None)
    found = _SCORE.fullmatch(text)
    return _Shown(Goals(home=int(found[1]), away=int(found[2]))) if found else None


def _standing(text: str) -> _Standing | None:
    status = MatchStatus.LIVE if _MINUTE.fullmatch(text) else _BY_WORD.get(text.casefold())
    return _Standing(status, text) if status else None


def _name(text: str) -> str | None:
    return normalize("NFC", text) or None


def _team(side: Side) -> Field[str]:
    def from_title(text: str) -> str | None:
        found = _TITLE.fullmatch(text)
        return _name(found[side.value]) if found else None

    places = (f'.team-title[data-side="{side}"]', f'[data-side="{side}"]')
    return Field(name=f"{side} team", selectors=(*at_any(_name, *places), Selector("title", from_title)))


_SCORES = Field(name="score", selectors=at_any(_score, ".event-score", "[data-score]", "main p"))
_STANDINGS = Field(name="status", selectors=at_any(_standing, ".event-status", "[role=status]", "main p"))
_HOME, _AWAY = (_team(side) for side in Side)


def read_rendered(source_id: str, body: bytes) -> FootballDomBoard:
    """Return the board of a drawn match page; raise when it does not show sides, score and status."""
    page = RenderedPage(body)
    shown, standing = page.need(_SCORES), page.need(_STANDINGS)
    if shown.goals is None and standing.status in (MatchStatus.LIVE, MatchStatus.BREAK):
        raise LayoutChanged("the drawn page shows play, and no score")
    home, away = page.need(_HOME), page.need(_AWAY)
    return FootballDomBoard(
        source_id=source_id,
        status=standing.status,
        headline=standing.headline,
        fingerprint=f"drawn|{home}|{away}|{standing.headline}|{shown.goals}",
        # The score says nothing of cards.
        tells_all=standing.status is not MatchStatus.LIVE,
        home=FootballTeam(key="", name=home),
        away=FootballTeam(key="", name=away),
        score=shown.goals,
        selectors=page.served,
    )
