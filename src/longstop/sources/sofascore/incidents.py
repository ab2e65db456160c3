"""Parses sofascore's incidents: goals, cards, substitutions, VAR decisions, shoot-out kicks and periods."""

import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, NoReturn

from msgspec import UNSET, Meta, Struct, UnsetType

from longstop.errors import ImpossibleObservation, LayoutChanged
from longstop.sources.bodies_and_urls import Id, Small, clean_name, decode
from longstop.sources.sofascore.lineups_and_statistics import SofascorePlayer
from longstop.sports.football.model import (
    Card,
    CardKind,
    Goal,
    GoalKind,
    Goals,
    Incident,
    Incidents,
    Kick,
    MissedPenalty,
    PeriodEnd,
    SeenIncident,
    Side,
    Substitution,
    VarDecision,
)

_Minute = Annotated[int, Meta(ge=-99, le=9_999)]

#: The site's placeholder for "no number".
_NO_NUMBER = 999
#: Including extra time and its added time.
_LAST_MINUTE, _MOST_ADDED = 130, 60
#: A card shown on the bench.
_ON_THE_BENCH = -5
#: The minutes in which a period ends and added time is announced.
_ENDS = frozenset({45, 90, 105, 120, _NO_NUMBER, UNSET})


class _Item(Struct, frozen=True):
    """An incident. Which fields are required depends on its type."""

    incidentType: str
    id: Id | UnsetType = UNSET
    isHome: bool | UnsetType = UNSET
    time: _Minute | UnsetType = UNSET
    addedTime: _Minute | UnsetType = UNSET
    incidentClass: str | UnsetType = UNSET
    homeScore: Small | UnsetType = UNSET
    awayScore: Small | UnsetType = UNSET
    player: SofascorePlayer | None = None
    assist1: SofascorePlayer | None = None
    playerIn: SofascorePlayer | None = None
    playerOut: SofascorePlayer | None = None
    injury: bool = False
    text: str | UnsetType = UNSET
    isLive: bool = False
    length: Small | UnsetType = UNSET
    sequence: Small | UnsetType = UNSET
    #: Not needed to read an incident: any other type counts as absent.
    reason: Any = UNSET
    description: Any = UNSET
    rescinded: Any = UNSET
    confirmed: Any = UNSET


class IncidentsBody(Struct, frozen=True):
    incidents: list[_Item]


_GOALS = {"regular": GoalKind.REGULAR, "penalty": GoalKind.PENALTY, "ownGoal": GoalKind.OWN_GOAL}
_CARDS = {"yellow": CardKind.YELLOW, "yellowRed": CardKind.SECOND_YELLOW, "red": CardKind.RED}
_CAPITAL = re.compile(r"(?<!^)([A-Z])")


def read_incidents(body: bytes) -> Incidents:
    """Parse the list: it is complete, and newest first."""
    items = decode(body, IncidentsBody).incidents[::-1]
    if items and not any(item.incidentType in _READERS or item.incidentType in _NO_EVENTS for item in items):
        raise LayoutChanged(f"none of the {len(items)} incidents has a known type")
    context = _Context(items)
    seen: dict[tuple[str, str], SeenIncident] = {}
    for item in items:
        # The current period has an item too, which is not its end.
        if item.incidentType in _READERS and not item.isLive:
            incident = _seen(item, context)
            seen.setdefault((item.incidentType, incident.source_event_id), incident)
    players = (player for item in items for player in (item.player, item.assist1, item.playerIn, item.playerOut))
    names = {str(player.id): clean_name(player.name) for player in players if player and player.name.strip()}
    return Incidents(items=tuple(seen.values()), players=names, suspicions=tuple(_suspicions(items, context)))


def _suspicions(items: Iterable[_Item], context: "_Context") -> Iterable[str]:
    """Yield what no clean list shows. The site alters numbers for clients that it takes for bots."""
    for item in items:
        what = item.incidentType if item.id is UNSET else f"{item.incidentType} {item.id}"
        if item.addedTime is not UNSET and item.addedTime < 0:
            yield f"{what} has {item.addedTime} minutes of added time"
        if item.time is not UNSET and item.time < 0:
            if (item.incidentType, item.time) != ("card", _ON_THE_BENCH):
                yield f"{what} is in minute {item.time}"
        elif item.incidentType in ("period", "injuryTime") and not item.isLive and item.time not in _ENDS:
            yield f"{what} is in minute {item.time}, in which no period ends"
        if item.incidentType == "goal" and _GOALS.get(_class(item)) is not GoalKind.OWN_GOAL:
            score, side = _score_after(item), _side(item)
            if context.credited(score) not in (None, side):
                yield f"{what} is of the {side} side, but raises the other side's score, to {score.home}-{score.away}"


class _Context:
    """What must be known of other incidents to parse one."""

    def __init__(self, items: Iterable[_Item]) -> None:
        #: The score after each goal, by total goals.
        self._scores = {0: Goals(home=0, away=0)}
        #: Announced added time, by the minute that it follows.
        self.announced: dict[int, int] = {}
        for item in items:
            if item.incidentType == "goal":
                score = _score_after(item)
                self._scores[score.total] = score
            elif item.incidentType == "injuryTime" and item.time is not UNSET and item.length is not UNSET:
                # An announcement may be raised; both may be in the list.
                self.announced[item.time] = max(item.length, self.announced.get(item.time, 0))

    def credited(self, score: Goals) -> Side | None:
        """Return the side that a goal counts for; `None` if the previous score is unknown."""
        before = self._scores.get(score.total - 1)
        if before is None or (score.home < before.home or score.away < before.away):
            return None
        return Side.HOME if score.home > before.home else Side.AWAY


def _seen(item: _Item, context: _Context) -> SeenIncident:
    content = _READERS[item.incidentType](item, context)
    if isinstance(content, PeriodEnd):  # it has no id, so its name is used
        return SeenIncident(source_event_id=f"period-{content.period}", side=None, content=content)
    side = _side(item)
    if isinstance(content, Goal) and content.how is GoalKind.OWN_GOAL:
        # Some entries have the side of the scorer, others the side that the goal counts for.
        side = context.credited(_score_after(item)) or side
    return SeenIncident(source_event_id=str(_number(item, "id", item.id)), side=side, content=content)


def _to_goal(item: _Item, _context: _Context) -> Goal:
    score, how = _score_after(item), _GOALS.get(_class(item), GoalKind.OTHER)
    scorer, assist = _key(item.player), _key(item.assist1)
    return Goal(**_clock(item), scorer=scorer, assist=assist, how=how, home=score.home, away=score.away)


def _to_card(item: _Item, _context: _Context) -> Card:
    return Card(
        **_clock(item),
        player=_key(item.player),
        card=_CARDS.get(_class(item), CardKind.OTHER),
        reason=_text(item.reason),
        is_rescinded=_flag(item.rescinded),
    )


def _to_substitution(item: _Item, _context: _Context) -> Substitution:
    player_in, player_out = _key(item.playerIn), _key(item.playerOut)
    return Substitution(**_clock(item), player_in=player_in, player_out=player_out, is_injury=item.injury)


def _to_decision(item: _Item, _context: _Context) -> VarDecision:
    decision = _CAPITAL.sub(r" \1", _class(item)).lower()
    return VarDecision(**_clock(item), decision=decision, player=_key(item.player), is_confirmed=_flag(item.confirmed))


def _to_missed(item: _Item, _context: _Context) -> MissedPenalty:
    # The reason is a code for the same, such as `goalkeeperSave`.
    reason = _text(item.description) or _text(item.reason)
    return MissedPenalty(**_clock(item), player=_key(item.player), reason=reason)


def _to_kick(item: _Item, _context: _Context) -> Kick:
    score, sequence = _score_after(item), _number(item, "sequence", item.sequence)
    is_scored = _class(item) == "scored"
    return Kick(sequence=sequence, player=_key(item.player), is_scored=is_scored, home=score.home, away=score.away)


def _to_period(item: _Item, context: _Context) -> PeriodEnd:
    score, minute = _score_after(item), _number(item, "time", item.time)
    if item.text is UNSET or not item.text.strip():
        _raise_missing(item, "text")
    return PeriodEnd(
        period=item.text.strip(),
        minute=None if minute == _NO_NUMBER or minute < 0 else minute,
        added=context.announced.get(minute),
        home=score.home,
        away=score.away,
    )


_READERS: dict[str, Callable[[_Item, _Context], Incident]] = {
    "goal": _to_goal,
    "card": _to_card,
    "substitution": _to_substitution,
    "varDecision": _to_decision,
    "inGamePenalty": _to_missed,
    "penaltyShootout": _to_kick,
    "period": _to_period,
}
#: Used only to complete other incidents.
_NO_EVENTS = frozenset({"injuryTime"})


def _clock(item: _Item) -> dict[str, Any]:
    """Return minute and added time; both `None` for a card shown on the bench, and for a minute that is suspect."""
    minute = _number(item, "time", item.time)
    if minute < 0:
        return {"minute": None, "added": None}
    added = None if item.addedTime is UNSET or item.addedTime == _NO_NUMBER or item.addedTime < 0 else item.addedTime
    if minute > _LAST_MINUTE or (added or 0) > _MOST_ADDED:
        raise ImpossibleObservation(f"{item.incidentType} {item.id} in minute {minute}+{added}")
    return {"minute": minute, "added": added}


def _score_after(item: _Item) -> Goals:
    home = _number(item, "homeScore", item.homeScore)
    return Goals(home=home, away=_number(item, "awayScore", item.awayScore))


def _side(item: _Item) -> Side:
    if item.isHome is UNSET:
        _raise_missing(item, "isHome")
    return Side.HOME if item.isHome else Side.AWAY


def _class(item: _Item) -> str:
    if item.incidentClass is UNSET:
        _raise_missing(item, "incidentClass")
    return item.incidentClass


def _number(item: _Item, field: str, value: int | UnsetType) -> int:
    if value is UNSET:
        _raise_missing(item, field)
    return value


def _raise_missing(item: _Item, field: str) -> NoReturn:
    raise LayoutChanged(f"an incident of type {item.incidentType[:40]!r} has no {field!r}")


def _text(value: Any) -> str | UnsetType:
    return clean_name(value) or UNSET if isinstance(value, str) else UNSET


def _flag(value: Any) -> bool | UnsetType:
    return value if isinstance(value, bool) else UNSET


def _key(player: SofascorePlayer | None) -> str | None:
    return str(player.id) if player else None
