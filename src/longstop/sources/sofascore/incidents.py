"""sofascore's incidents: goals, cards, substitutions, decisions, kicks and periods."""

import re
from collections.abc import Callable, Iterable
from typing import NoReturn

from msgspec import UNSET, Struct, UnsetType

from longstop.errors import ImpossibleObservation, LayoutChanged
from longstop.sources.sofascore.wire import Minute, Player
from longstop.sources.wire import Id, Small, decode, tidy
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

#: Stands where a number has no meaning.
_NO_NUMBER = 999
#: A match with extra time, its added time included.
_LAST_MINUTE, _MOST_ADDED = 130, 60


class _Item(Struct, frozen=True):
    """An incident; which fields must be there depends on its type."""

    incidentType: str
    id: Id | UnsetType = UNSET
    isHome: bool | UnsetType = UNSET
    time: Minute | UnsetType = UNSET
    addedTime: Small | UnsetType = UNSET
    incidentClass: str | UnsetType = UNSET
    homeScore: Small | UnsetType = UNSET
    awayScore: Small | UnsetType = UNSET
    player: Player | None = None
    assist1: Player | None = None
    playerIn: Player | None = None
    playerOut: Player | None = None
    injury: bool = False
    text: str | UnsetType = UNSET
    isLive: bool = False
    length: Small | UnsetType = UNSET
    sequence: Small | UnsetType = UNSET


class IncidentsBody(Struct, frozen=True):
    incidents: list[_Item]


_GOALS = {"regular": GoalKind.REGULAR, "penalty": GoalKind.PENALTY, "ownGoal": GoalKind.OWN_GOAL}
_CARDS = {"yellow": CardKind.YELLOW, "yellowRed": CardKind.SECOND_YELLOW, "red": CardKind.RED}
_CAPITAL = re.compile(r"(?<!^)([A-Z])")


def read_incidents(body: bytes) -> Incidents:
    """Read the list, which is newest first, and whole."""
    items = decode(body, IncidentsBody).incidents[::-1]
    if items and not any(item.incidentType in _READERS or item.incidentType in _NO_EVENTS for item in items):
        raise LayoutChanged(f"none of the {len(items)} incidents is of a known type")
    context = _Context(items)
    seen: dict[tuple[str, str], SeenIncident] = {}
    for item in items:
        # The part that is being played has a mark of its own, which is no end.
        if item.incidentType in _READERS and not item.isLive:
            incident = _READERS[item.incidentType](item, context)
            seen.setdefault((item.incidentType, incident.source_event_id), incident)
    people = (person for item in items for person in (item.player, item.assist1, item.playerIn, item.playerOut))
    named = {str(person.id): tidy(person.name) for person in people if person and person.name.strip()}
    return Incidents(items=tuple(seen.values()), players=named)


class _Context:
    """What one incident can only be read with the help of others."""

    def __init__(self, items: Iterable[_Item]) -> None:
        #: The scores after each goal, by how many goals there were.
        self._scores = {0: Goals(home=0, away=0)}
        #: Minutes announced to be added, by the minute that they are added to.
        self.announced: dict[int, int] = {}
        for item in items:
            if item.incidentType == "goal":
                score = _score_after(item)
                self._scores[score.total] = score
            elif item.incidentType == "injuryTime" and item.time is not UNSET and item.length is not UNSET:
                # What was announced may be raised, and both announcements may stand in the list.
                self.announced[item.time] = max(item.length, self.announced.get(item.time, 0))

    def credited(self, score: Goals) -> Side | None:
        """Return the side whose score a goal has raised; `None` when the goal before it is not known."""
        before = self._scores.get(score.total - 1)
        if before is None or (score.home < before.home or score.away < before.away):
            return None
        return Side.HOME if score.home > before.home else Side.AWAY


def _to_goal(item: _Item, context: _Context) -> SeenIncident:
    score, how = _score_after(item), _GOALS.get(_class(item), GoalKind.OTHER)
    side = _side(item)
    if how is GoalKind.OWN_GOAL:
        # Some editors write the side of the player, some the side that it counts for.
        side = context.credited(score) or side
    minute, added = _clock(item)
    goal = Goal(
        minute=minute,
        added=added,
        scorer=_key(item.player),
        assist=_key(item.assist1),
        how=how,
        home=score.home,
        away=score.away,
    )
    return _shown(item, side, goal)


def _to_card(item: _Item, _context: _Context) -> SeenIncident:
    minute, added = _clock(item)
    card = _CARDS.get(_class(item), CardKind.OTHER)
    return _shown(item, _side(item), Card(minute=minute, added=added, player=_key(item.player), card=card))


def _to_substitution(item: _Item, _context: _Context) -> SeenIncident:
    minute, added = _clock(item)
    change = Substitution(
        minute=minute,
        added=added,
        player_in=_key(item.playerIn),
        player_out=_key(item.playerOut),
        is_injury=item.injury,
    )
    return _shown(item, _side(item), change)


def _to_decision(item: _Item, _context: _Context) -> SeenIncident:
    minute, added = _clock(item)
    decision = _CAPITAL.sub(r" \1", _class(item)).lower()
    found = VarDecision(minute=minute, added=added, decision=decision, player=_key(item.player))
    return _shown(item, _side(item), found)


def _to_missed(item: _Item, _context: _Context) -> SeenIncident:
    minute, added = _clock(item)
    return _shown(item, _side(item), MissedPenalty(minute=minute, added=added, player=_key(item.player)))


def _to_kick(item: _Item, _context: _Context) -> SeenIncident:
    score = _score_after(item)
    kick = Kick(
        sequence=_number(item, "sequence", item.sequence),
        player=_key(item.player),
        is_scored=_class(item) == "scored",
        home=score.home,
        away=score.away,
    )
    return _shown(item, _side(item), kick)


def _to_period(item: _Item, context: _Context) -> SeenIncident:
    """Read a part's end; it has no id, so its name is one."""
    score, minute = _score_after(item), _number(item, "time", item.time)
    if item.text is UNSET or not item.text.strip():
        _lacks(item, "text")
    end = PeriodEnd(
        period=item.text.strip(),
        minute=None if minute == _NO_NUMBER else minute,
        added=context.announced.get(minute),
        home=score.home,
        away=score.away,
    )
    return SeenIncident(source_event_id=f"period-{end.period}", side=None, content=end)


_READERS: dict[str, Callable[[_Item, _Context], SeenIncident]] = {
    "goal": _to_goal,
    "card": _to_card,
    "substitution": _to_substitution,
    "varDecision": _to_decision,
    "inGamePenalty": _to_missed,
    "penaltyShootout": _to_kick,
    "period": _to_period,
}
#: Told within others.
_NO_EVENTS = frozenset({"injuryTime"})


def _shown(item: _Item, side: Side, content: Incident) -> SeenIncident:
    return SeenIncident(source_event_id=str(_number(item, "id", item.id)), side=side, content=content)


def _clock(item: _Item) -> tuple[int | None, int | None]:
    """Return minute and added time; a card shown on the bench stands at minute -5."""
    minute = _number(item, "time", item.time)
    if minute < 0:
        return None, None
    added = None if item.addedTime is UNSET or item.addedTime == _NO_NUMBER else item.addedTime
    if minute > _LAST_MINUTE or (added or 0) > _MOST_ADDED:
        raise ImpossibleObservation(f"{item.incidentType} {item.id} in minute {minute}+{added}")
    return minute, added


def _score_after(item: _Item) -> Goals:
    home = _number(item, "homeScore", item.homeScore)
    return Goals(home=home, away=_number(item, "awayScore", item.awayScore))


def _side(item: _Item) -> Side:
    if item.isHome is UNSET:
        _lacks(item, "isHome")
    return Side.HOME if item.isHome else Side.AWAY


def _class(item: _Item) -> str:
    if item.incidentClass is UNSET:
        _lacks(item, "incidentClass")
    return item.incidentClass


def _number(item: _Item, field: str, value: int | UnsetType) -> int:
    if value is UNSET:
        _lacks(item, field)
    return value


def _lacks(item: _Item, field: str) -> NoReturn:
    raise LayoutChanged(f"an incident of type {item.incidentType[:40]!r} has no {field!r}")


def _key(person: Player | None) -> str | None:
    return str(person.id) if person else None
