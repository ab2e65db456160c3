"""Parses sofascore's rendered match page: both sides, the score, and the status.

The site generates its class names, so its `data-testid` marks are used; beside them stand the simulator's names. One
page was recorded, of a finished match. *Unverified*: a page before and during play, and the texts of its status.
"""

import re

from msgspec import Struct

from longstop.errors import LayoutChanged
from longstop.model.match import MatchStatus
from longstop.sources.bodies_and_urls import clean_name
from longstop.sources.dom import Field, RenderedPage, Selector, at_any
from longstop.sports.football.model import FootballDomBoard, FootballTeam, Goals, Side

_SCORE = re.compile(r"(\d{1,2}) ?[:–-] ?(\d{1,2})", re.ASCII)
_NO_SCORE = re.compile(r"[-–] ?: ?[-–]")
_MINUTE = re.compile(r"\d{1,3}(?: ?\+ ?\d{1,2})?['′]", re.ASCII)
_TITLE = re.compile(r"(?P<home>.+?) (?:vs?\.?|–) (?P<away>.+?)(?: live score\b.*)?", re.IGNORECASE)

#: The site's status texts, as in its event; a minute means play.
_STATUSES = {
    MatchStatus.UPCOMING: ("not started", "postponed", "start delayed"),
    MatchStatus.LIVE: ("1st half", "2nd half", "1st extra", "2nd extra", "penalties", "started"),
    MatchStatus.BREAK: (
        "halftime",
        "awaiting extra time",
        "extra time halftime",
        "awaiting penalties",
        "interrupted",
        "suspended",
        "will continue",
    ),
    MatchStatus.COMPLETED: ("ended", "finished", "aet", "ap", "canceled", "abandoned", "walkover", "retired"),
}
_STATUS_BY_TEXT = {text: status for status, texts in _STATUSES.items() for text in texts}


class _ShownScore(Struct, frozen=True):
    """The score element: goals, or `None` for dashes."""

    goals: Goals | None


def _score(text: str) -> _ShownScore | None:
    if _NO_SCORE.fullmatch(text):
        return _ShownScore(None)
    found = _SCORE.fullmatch(text)
    return _ShownScore(Goals(home=int(found[1]), away=int(found[2]))) if found else None


def _status(text: str) -> tuple[MatchStatus, str] | None:
    """Return the status and the text, which is the headline."""
    status = MatchStatus.LIVE if _MINUTE.fullmatch(text) else _STATUS_BY_TEXT.get(text.casefold())
    return (status, text) if status else None


def _name(text: str) -> str | None:
    return clean_name(text) or None


def _team(side: Side) -> Field[str]:
    def from_title(text: str) -> str | None:
        found = _TITLE.fullmatch(text)
        return _name(found[side.value]) if found else None

    nth, other, place = ("first", "last", "left") if side is Side.HOME else ("last", "first", "right")
    # The heading has the whole names, the elements beside the score may have short ones. A single name is of no side.
    heading = f'[data-testid="breadcrumb_title"] bdi:{nth}-of-type:not(:{other}-of-type)'
    places = (
        f'.team-title[data-side="{side}"], {heading}',
        f'[data-side="{side}"], [data-testid="{place}_team"] bdi',
    )
    return Field(name=f"{side} team", selectors=(*at_any(_name, *places), Selector("title", from_title)))


#: The element around both numbers, and the one after it. Neither has a mark of its own.
_SCORES = 'span:has(> [data-testid="left_score"])'
_AFTER_SCORES = f"div:has(> {_SCORES}) + div"

_SCORE_FIELD = Field(name="score", selectors=at_any(_score, f".event-score, {_SCORES}", "[data-score]", "main p"))
_STATUS_FIELD = Field(
    name="status", selectors=at_any(_status, f".event-status, {_AFTER_SCORES}", "[role=status]", "main p")
)
_HOME, _AWAY = (_team(side) for side in Side)


def read_rendered(source_id: str, body: bytes) -> FootballDomBoard:
    """Return the board of a rendered match page; raise if sides, score or status are missing."""
    page = RenderedPage(body)
    score, (status, headline) = page.need(_SCORE_FIELD), page.need(_STATUS_FIELD)
    if score.goals is None and status in (MatchStatus.LIVE, MatchStatus.BREAK):
        raise LayoutChanged("the rendered page shows a match in play but no score")
    home, away = page.need(_HOME), page.need(_AWAY)
    return FootballDomBoard(
        source_id=source_id,
        status=status,
        headline=headline,
        fingerprint=f"drawn|{home}|{away}|{headline}|{score.goals}",
        # The page does not show cards.
        shows_every_change=status is not MatchStatus.LIVE,
        home=FootballTeam(key="", name=home),
        away=FootballTeam(key="", name=away),
        score=score.goals,
        selectors=page.served,
    )
