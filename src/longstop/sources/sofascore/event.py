"""Parses sofascore's event: the live state of a match, and an entry of the live list.

A side's score is a set of numbers that need not agree. `current` includes a shoot-out, `display` usually does not, and
`normaltime` has the goals of the first 90 minutes. Which of them is the score depends on the status.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from longstop.errors import ParseError, WrongMatch
from longstop.model.match import IN_PLAY, MatchStatus
from longstop.model.source_queries_and_answers import Listing
from longstop.sources.bodies_and_urls import Id, Small, clean_name, decode, read_listing
from longstop.sports.football.model import (
    AWARDED,
    FootballBoard,
    FootballResult,
    FootballTeam,
    Goals,
    MatchClock,
    MatchDetails,
    Outcome,
    PeriodScore,
    Side,
    StatusDetail,
    Tie,
)

_MAX_SECONDS = 4_102_444_800
_Seconds = Annotated[int, Meta(ge=0, le=_MAX_SECONDS)]


class _Status(Struct, frozen=True):
    code: Small
    type: str
    description: str = ""


class _Team(Struct, frozen=True):
    id: Id
    name: str
    gender: Any = None


#: Negative where the site subtracts a shoot-out that it never added, or takes back a goal of the first half.
_Goals = Annotated[int, Meta(ge=-9_999, le=9_999)]


class _Score(Struct, frozen=True):
    """A side's goals; empty before kick-off, and if nothing was played."""

    current: _Goals | None = None
    display: _Goals | None = None
    period1: _Goals | None = None
    period2: _Goals | None = None
    normaltime: _Goals | None = None
    extra1: _Goals | None = None
    extra2: _Goals | None = None
    overtime: _Goals | None = None
    penalties: _Goals | None = None
    aggregated: _Goals | None = None

    def goals(self, *, has_shoot_out: bool) -> int | None:
        """Return the goals without those of a shoot-out."""
        if not has_shoot_out:
            # The site subtracts `penalties` from `display`, even if there was no shoot-out.
            is_display_whole = self.display is not None and self.penalties is None
            return _counted(self.display if is_display_whole else self.current)
        if self.normaltime is not None:
            extra = (self.extra1 or 0) + (self.extra2 or 0) if self.overtime is None else self.overtime
            return _counted(self.normaltime + extra)
        if self.display is not None or self.current is None:
            return _counted(self.display)
        return _counted(self.current - (self.penalties or 0))

    @property
    def halves(self) -> int | None:
        """Return the goals of both halves; `None` if there is no first half."""
        return None if self.period1 is None else self.period1 + (self.period2 or 0)


def _counted(goals: int | None) -> int | None:
    return None if goals is None or goals < 0 else goals


class _Tournament(Struct, frozen=True):
    name: str | None = None
    category: Any = None


class _Season(Struct, frozen=True):
    year: str | int | None = None


class _Round(Struct, frozen=True):
    round: Small | None = None
    name: Any = None


class _Event(Struct, frozen=True):
    """The fields that are used. Translations, colours and follower counts change constantly.

    A match can be read without the fields of type `Any`: there, any content that is not understood counts as absent.
    """

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
    aggregatedWinnerCode: Any = None
    isAwarded: Any = False
    tournament: _Tournament = _Tournament()
    season: _Season = _Season()
    roundInfo: _Round = _Round()
    previousLegEventId: Any = None
    statusTime: Any = None
    time: Any = None
    varInProgress: Any = None
    venue: Any = None
    referee: Any = None

    @property
    def sides(self) -> tuple[tuple[Side, _Score], ...]:
        return (Side.HOME, self.homeScore), (Side.AWAY, self.awayScore)

    @property
    def has_shoot_out(self) -> bool:
        """Return whether the scores contain a shoot-out. In play, a side may have `penalties` without one."""
        if self.status.code in (_PENALTIES, _AFTER_PENALTIES):
            return True
        return self.status.type != "inprogress" and None not in (self.homeScore.penalties, self.awayScore.penalties)


class EventBody(Struct, frozen=True):
    event: _Event


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
    has_begun = status is not MatchStatus.UPCOMING
    return FootballBoard(
        source_id=str(event.id),
        status=status,
        headline=event.status.description.strip(),
        start_at=datetime.fromtimestamp(event.startTimestamp, UTC) if event.startTimestamp else None,
        fingerprint=_fingerprint(event),
        # A list entry has only score, status and red cards of a match in play.
        shows_every_change=status is not MatchStatus.LIVE,
        suspicions=tuple(_suspicions(event)),
        home=FootballTeam(key=str(event.homeTeam.id), name=clean_name(event.homeTeam.name)),
        away=FootballTeam(key=str(event.awayTeam.id), name=clean_name(event.awayTeam.name)),
        score=_score(event),
        # Some matches have 0-0 before they begin.
        periods=tuple(_periods(event.homeScore, event.awayScore)) if has_begun else (),
        penalties=_kicks(event),
        result=_result(event),
        tournament=event.tournament.name,
        season=None if event.season.year is None else str(event.season.year),
        round=event.roundInfo.round,
        details=_details(event),
        status_detail=_DETAILS.get(event.status.code),
        clock=_clock(event) if status is MatchStatus.LIVE else None,
        added_time=_added_time(event) if has_begun else {},
        tie=_tie(event),
        var_in_progress=tuple(_checked(event)) if status in IN_PLAY else (),
    )


def _fingerprint(event: _Event) -> str:
    score, kicks = _score(event), _kicks(event)
    scores = [f"{each.home}-{each.away}" if each else "None-None" for each in (score, kicks)]
    cards = f"{event.homeRedCards}-{event.awayRedCards}"
    teams = f"{event.homeTeam.id}-{event.awayTeam.id}"
    shown = (str(event.status.code), *scores, cards, str(event.winnerCode), str(event.startTimestamp), teams)
    awarded = _awarded(event)
    return "|".join((*shown, f"{awarded.home}-{awarded.away}") if awarded else shown)


# --- status and score ------------------------------------------------------------------------------------------------

#: Half-time, waiting for extra time or penalties, half-time of extra time.
_BREAK_CODES = frozenset({31, 32, 33, 34})
_PENALTIES, _ABANDONED, _WALKOVER, _AFTER_PENALTIES = 50, 90, 91, 120
_AFTER = {100: "FT", 110: "AET", _AFTER_PENALTIES: "AP"}
_WINNERS = {1: Outcome.HOME, 2: Outcome.AWAY, 3: Outcome.DRAW}
_DETAILS = {
    60: StatusDetail.POSTPONED,
    61: StatusDetail.DELAYED,
    70: StatusDetail.CANCELLED,
    80: StatusDetail.INTERRUPTED,
    81: StatusDetail.SUSPENDED,
    _ABANDONED: StatusDetail.ABANDONED,
    _WALKOVER: StatusDetail.WALKOVER,
    92: StatusDetail.RETIRED,
    140: StatusDetail.WILL_CONTINUE,
}


def _status(status: _Status) -> MatchStatus:
    match status.type:
        case "notstarted" | "postponed" | "delayed":
            return MatchStatus.UPCOMING
        case "inprogress":
            return MatchStatus.BREAK if status.code in _BREAK_CODES else MatchStatus.LIVE
        case "finished" | "canceled":
            return MatchStatus.COMPLETED
    # Interrupted, suspended, continued on another day, or unknown: not over, and it may resume.
    return MatchStatus.BREAK


def _score(event: _Event) -> Goals | None:
    """Return the goals as played, without a shoot-out; `None` before the kick-off."""
    if _status(event.status) is MatchStatus.UPCOMING:
        return None
    home, away = event.homeScore, event.awayScore
    if event.isAwarded is True and not event.has_shoot_out:
        # `display` has the awarded score, and `current` may have it. The halves, if shown, keep what was played.
        shown, current = _pair(home.display, away.display), _pair(home.current, away.current)
        return current if current != shown else _pair(home.halves, away.halves) or current
    return _pair(*(score.goals(has_shoot_out=event.has_shoot_out) for score in (home, away)))


def _kicks(event: _Event) -> Goals | None:
    """Return the score of the shoot-out. While it is under way, only `current` may have it."""
    if not event.has_shoot_out:
        return None
    home, away = event.homeScore, event.awayScore
    shown, played = _pair(home.penalties, away.penalties), _score(event)
    if shown or played is None or home.current is None or away.current is None:
        return shown
    return _pair(home.current - played.home, away.current - played.away)


def _pair(home: int | None, away: int | None) -> Goals | None:
    home, away = _counted(home), _counted(away)
    return None if home is None or away is None else Goals(home=home, away=away)


def _periods(home: _Score, away: _Score) -> Iterable[PeriodScore]:
    for name in _PERIODS:
        pair = _pair(getattr(home, name), getattr(away, name))
        if pair is not None:
            yield PeriodScore(name=name, home=pair.home, away=pair.away)


_PERIODS = ("period1", "period2", "extra1", "extra2")


# --- result ----------------------------------------------------------------------------------------------------------


def _result(event: _Event) -> FootballResult | None:
    code, kind = event.status.code, event.status.type
    if kind == "canceled":
        called_off = Outcome.ABANDONED if code == _ABANDONED else Outcome.CANCELLED
        return _ended(event, called_off, called_off.value)
    if kind == "finished" and code == _WALKOVER:
        return _ended(event, Outcome.WALKOVER, "walkover")
    if kind == "finished":
        return _ended(event, _winner(event), _AFTER.get(code, event.status.description.strip()))
    # A match may be awarded while its status is still that of the day on which it was not played.
    return _ended(event, _winner(event), AWARDED) if _awarded(event) else None


def _ended(event: _Event, outcome: Outcome, after: str) -> FootballResult:
    score, kicks, awarded = _score(event), _kicks(event), _awarded(event)
    return FootballResult(
        outcome=outcome,
        after=after,
        home=score.home if score else None,
        away=score.away if score else None,
        home_penalties=kicks.home if kicks else None,
        away_penalties=kicks.away if kicks else None,
        winner=_decided(event) if outcome in (Outcome.ABANDONED, Outcome.CANCELLED, Outcome.WALKOVER) else UNSET,
        awarded=awarded or UNSET,
    )


def _awarded(event: _Event) -> Goals | None:
    return _pair(event.homeScore.display, event.awayScore.display) if event.isAwarded is True else None


def _winner(event: _Event) -> Outcome:
    """Return the winner; by the score if the site does not name one."""
    named = _WINNERS.get(event.winnerCode or 0)
    awarded, score, kicks = _awarded(event), _score(event), _kicks(event)
    if event.status.code == _AFTER_PENALTIES and named in (None, Outcome.DRAW):
        # The match was drawn, and the shoot-out was not. Its winner may be named as that of the tie, or not at all.
        tie = _WINNERS.get(event.aggregatedWinnerCode) if isinstance(event.aggregatedWinnerCode, int) else None
        decided = tie if tie in (Outcome.HOME, Outcome.AWAY) else _ahead(kicks)
        return decided or _ahead(score) or Outcome.UNKNOWN
    if named is not None:
        return named
    if awarded or score:
        return _ahead(awarded) or _ahead(score) or _ahead(kicks) or Outcome.DRAW
    return Outcome.UNKNOWN


def _decided(event: _Event) -> Side | UnsetType:
    """Return the winner of a match that was not played to its end, if there is one."""
    named = _WINNERS.get(event.winnerCode or 0) or _ahead(_awarded(event))
    return Side(named.value) if named in (Outcome.HOME, Outcome.AWAY) else UNSET


def _ahead(score: Goals | None) -> Outcome | None:
    if score is None or score.home == score.away:
        return None
    return Outcome.HOME if score.home > score.away else Outcome.AWAY


# --- suspicions ------------------------------------------------------------------------------------------------------


def _suspicions(event: _Event) -> Iterable[str]:
    """Yield the contradictions between a side's numbers. The site alters numbers for clients that it takes for bots."""
    for side, score in event.sides if event.isAwarded is not True else ():
        current, shown, normal = score.current, score.display, score.normaltime
        if score.penalties is None and current is not None and shown is not None and current != shown:
            yield f"the {side} score is {current} and is displayed as {shown}, without penalties"
        if score.period2 is not None and normal is not None and score.halves not in (None, normal):
            yield f"the {side} goals of both halves add up to {score.halves}, but normal time has {normal}"


# --- what else is shown ----------------------------------------------------------------------------------------------

_GENDERS = {"M": "men", "F": "women"}


def _details(event: _Event) -> MatchDetails:
    genders = {_text(event.homeTeam.gender), _text(event.awayTeam.gender)}
    return MatchDetails(
        round_name=_text(event.roundInfo.name),
        category=_text(event.tournament.category, "name"),
        country=_text(event.tournament.category, "country", "name"),
        gender=_GENDERS.get(genders.pop() or "") if len(genders) == 1 else None,
        venue=_text(event.venue, "name") or _text(event.venue, "stadium", "name"),
        city=_text(event.venue, "city", "name"),
        referee=_text(event.referee, "name"),
    )


def _clock(event: _Event) -> MatchClock | None:
    started, initial = _number(event.statusTime, "timestamp"), _number(event.statusTime, "initial")
    if not started or initial is None:
        return None
    return MatchClock(
        period_started_at=datetime.fromtimestamp(started, UTC),
        initial_seconds=initial,
        max_seconds=_number(event.statusTime, "max"),
    )


def _added_time(event: _Event) -> dict[str, int]:
    shown = {name: _number(event.time, f"injuryTime{nth}") for nth, name in enumerate(_PERIODS, 1)}
    return {name: minutes for name, minutes in shown.items() if minutes is not None}


def _tie(event: _Event) -> Tie | None:
    aggregate = _pair(event.homeScore.aggregated, event.awayScore.aggregated)
    previous = _number(event.previousLegEventId)
    # Some matches name themselves.
    leg = str(previous) if previous and previous != event.id else None
    return Tie(aggregate=aggregate, previous_leg=leg) if aggregate or leg else None


def _checked(event: _Event) -> Iterable[Side]:
    for side in Side:
        if _at(event.varInProgress, f"{side}Team") is True:
            yield side


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: Any, *path: str) -> str | None:
    found = _at(value, *path)
    return clean_name(found) or None if isinstance(found, str) else None


def _number(value: Any, *path: str) -> int | None:
    found = _at(value, *path)
    return found if type(found) is int and 0 <= found <= _MAX_SECONDS else None
