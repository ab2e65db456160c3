"""Parses sofascore's event: the live state of a match, and an entry of the live list."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from longstop.errors import LayoutChanged, ParseError, WrongMatch
from longstop.model.match import MatchStatus
from longstop.model.source_queries_and_answers import Listing
from longstop.sources.bodies_and_urls import Id, Small, clean_name, decode, read_listing
from longstop.sports.football.model import FootballBoard, FootballResult, FootballTeam, Goals, Outcome, PeriodScore

_Seconds = Annotated[int, Meta(ge=0, le=4_102_444_800)]


class _Status(Struct, frozen=True):
    code: Small
    type: str
    description: str = ""


class _Team(Struct, frozen=True):
    id: Id
    name: str


class _Score(Struct, frozen=True):
    """A side's goals; empty before kick-off, and if nothing was played."""

    current: Small | None = None
    display: Small | None = None
    period1: Small | None = None
    period2: Small | None = None
    extra1: Small | None = None
    extra2: Small | None = None
    penalties: Small | None = None

    @property
    def goals(self) -> int | None:
        """Return the goals without the shoot-out, which `current` includes."""
        if self.display is not None or self.current is None:
            return self.display
        return self.current - (self.penalties or 0)


class _Named(Struct, frozen=True):
    name: str | None = None


class _Season(Struct, frozen=True):
    year: str | int | None = None


class _Round(Struct, frozen=True):
    round: Small | None = None


class _Event(Struct, frozen=True):
    """The fields that are used. Translations, colours and follower counts change constantly."""

    id: Id
    status: _Status
    homeTeam: _Team
    awayTeam: _Team
    homeScore: _Score
    awayScore: _Score
    startTimestamp: _Seconds
    winnerCode: Small | None = None
    homeRedCards: Small = 0
    awayRedCards: Small = 0
    tournament: _Named = _Named()
    season: _Season = _Season()
    roundInfo: _Round = _Round()


class EventBody(Struct, frozen=True):
    event: _Event


class ListedEvents(Struct, frozen=True):
    events: list[_Event]


class _ListBody(Struct, frozen=True):
    events: list[msgspec.Raw]


class _Head(Struct, frozen=True):
    id: Id


def read_live_list(body: bytes) -> Listing:
    entries = [bytes(raw) for raw in decode(body, _ListBody).events]
    return read_listing(
        ((_id_of(entry), entry) for entry in entries), lambda _, entry: _to_board(decode(entry, _Event))
    )


def _id_of(entry: bytes) -> str:
    try:
        return str(decode(entry, _Head).id)
    except ParseError:
        return "?"


def read_event(source_id: str, body: bytes) -> FootballBoard:
    event = decode(body, EventBody).event
    if source_id and str(event.id) != source_id:
        raise WrongMatch(f"the event is of match {event.id}")
    return _to_board(event)


def _to_board(event: _Event) -> FootballBoard:
    status = _status(event.status)
    return FootballBoard(
        source_id=str(event.id),
        status=status,
        headline=event.status.description.strip(),
        start_at=datetime.fromtimestamp(event.startTimestamp, UTC) if event.startTimestamp else None,
        fingerprint=_fingerprint(event),
        # A list entry has only score, status and red cards of a match in play.
        shows_every_change=status is not MatchStatus.LIVE,
        home=FootballTeam(key=str(event.homeTeam.id), name=clean_name(event.homeTeam.name)),
        away=FootballTeam(key=str(event.awayTeam.id), name=clean_name(event.awayTeam.name)),
        score=_pair(event.homeScore.goals, event.awayScore.goals),
        periods=tuple(_periods(event.homeScore, event.awayScore)),
        penalties=_pair(event.homeScore.penalties, event.awayScore.penalties),
        result=_result(event),
        tournament=event.tournament.name,
        season=None if event.season.year is None else str(event.season.year),
        round=event.roundInfo.round,
    )


def _fingerprint(event: _Event) -> str:
    status, home, away = event.status, event.homeScore, event.awayScore
    scores = [f"{home.goals}-{away.goals}", f"{home.penalties}-{away.penalties}"]
    cards = f"{event.homeRedCards}-{event.awayRedCards}"
    return "|".join((str(status.code), *scores, cards, str(event.winnerCode), str(event.startTimestamp)))


#: Half-time, waiting for extra time or penalties, half-time of extra time.
_BREAK_CODES = frozenset({31, 32, 33, 34})
_ABANDONED, _WALKOVER = 90, 91
_AFTER = {100: "FT", 110: "AET", 120: "AP"}
_WINNERS = {1: Outcome.HOME, 2: Outcome.AWAY, 3: Outcome.DRAW}


def _status(status: _Status) -> MatchStatus:
    match status.type:
        case "notstarted" | "postponed":
            return MatchStatus.UPCOMING
        case "inprogress":
            return MatchStatus.BREAK if status.code in _BREAK_CODES else MatchStatus.LIVE
        case "finished" | "canceled":
            return MatchStatus.COMPLETED
    # Interrupted, suspended, or unknown: not over, and it may resume.
    return MatchStatus.BREAK


def _result(event: _Event) -> FootballResult | None:
    code, kind = event.status.code, event.status.type
    if kind == "canceled":
        called_off = Outcome.ABANDONED if code == _ABANDONED else Outcome.CANCELLED
        return _ended(event, called_off, called_off.value)
    if kind != "finished":
        return None
    if code == _WALKOVER:
        return _ended(event, Outcome.WALKOVER, "walkover")
    return _ended(event, _winner(event), _AFTER.get(code, event.status.description.strip()))


def _ended(event: _Event, outcome: Outcome, after: str) -> FootballResult:
    score = _pair(event.homeScore.goals, event.awayScore.goals)
    kicks = _pair(event.homeScore.penalties, event.awayScore.penalties)
    return FootballResult(
        outcome=outcome,
        after=after,
        home=score.home if score else None,
        away=score.away if score else None,
        home_penalties=kicks.home if kicks else None,
        away_penalties=kicks.away if kicks else None,
    )


def _winner(event: _Event) -> Outcome:
    """Return the winner; by the score if the site does not name one."""
    if event.winnerCode in _WINNERS:
        return _WINNERS[event.winnerCode]
    home, away = event.homeScore, event.awayScore
    if home.goals is None or away.goals is None:
        raise LayoutChanged(f"match {event.id} is finished but has neither a winner nor a score")
    ahead = home.goals - away.goals or (home.penalties or 0) - (away.penalties or 0)
    return Outcome.HOME if ahead > 0 else Outcome.AWAY if ahead < 0 else Outcome.DRAW


def _pair(home: int | None, away: int | None) -> Goals | None:
    return None if home is None or away is None else Goals(home=home, away=away)


def _periods(home: _Score, away: _Score) -> Iterable[PeriodScore]:
    for name in ("period1", "period2", "extra1", "extra2"):
        pair = _pair(getattr(home, name), getattr(away, name))
        if pair is not None:
            yield PeriodScore(name=name, home=pair.home, away=pair.away)
