"""Football's records: stored contents, views that a source parses, and the state of a match.

The side of an event is in its key. Players are the source's keys; their names are in the match's `players`. A minute is
`None` if the source has none, such as for a card shown on the bench.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from math import inf
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from longstop.model.event import Event
from longstop.model.observation import Keys, ListingEntry
from longstop.sports.base import MatchState

Count = Annotated[int, Meta(ge=0)]

#: Resources of a football source, in addition to list, live state and rendered page.
INCIDENTS, LINEUPS, STATISTICS = "incidents", "lineups", "statistics"


class FootballKind(StrEnum):
    """The kinds of event."""

    GOAL = "goal"
    CARD = "card"
    SUBSTITUTION = "substitution"
    VAR = "var"
    MISSED_PENALTY = "missed_penalty"
    PERIOD = "period"
    KICK = "kick"
    RESULT = "result"


#: The kinds in a list of incidents.
INCIDENT_KINDS = frozenset(FootballKind) - {FootballKind.RESULT}


class Side(StrEnum):
    HOME = "home"
    AWAY = "away"

    @property
    def other(self) -> "Side":
        return Side.AWAY if self is Side.HOME else Side.HOME


class Goals(Struct, frozen=True, kw_only=True):
    """A score."""

    home: Count
    away: Count

    @property
    def total(self) -> int:
        return self.home + self.away

    def of(self, side: Side) -> int:
        return self.home if side is Side.HOME else self.away


class GoalKind(StrEnum):
    REGULAR = "regular"
    PENALTY = "penalty"
    OWN_GOAL = "own goal"
    OTHER = "other"


class Goal(Struct, frozen=True, kw_only=True, tag="goal", tag_field="kind"):
    """A goal, under the side that it counts for, even if it is an own goal of the other side."""

    minute: Count | None
    #: Minutes after the 45th, 90th, 105th or 120th; `None` if unknown.
    added: Count | None = None
    scorer: str | None = None
    assist: str | None = None
    how: GoalKind
    #: The score after it.
    home: Count
    away: Count


class CardKind(StrEnum):
    YELLOW = "yellow"
    SECOND_YELLOW = "second yellow"
    RED = "red"
    OTHER = "other"


class Card(Struct, frozen=True, kw_only=True, tag="card", tag_field="kind"):
    minute: Count | None
    added: Count | None = None
    #: `None` for a coach or another person who does not play.
    player: str | None = None
    card: CardKind


class Substitution(Struct, frozen=True, kw_only=True, tag="substitution", tag_field="kind"):
    minute: Count | None
    added: Count | None = None
    player_in: str | None = None
    player_out: str | None = None
    is_injury: bool = False


class VarDecision(Struct, frozen=True, kw_only=True, tag="var", tag_field="kind"):
    """A decision of the video referee."""

    minute: Count | None
    added: Count | None = None
    #: The source's text, such as `goal not awarded`.
    decision: str
    player: str | None = None


class MissedPenalty(Struct, frozen=True, kw_only=True, tag="missed_penalty", tag_field="kind"):
    """A missed penalty during play."""

    minute: Count | None
    added: Count | None = None
    player: str | None = None


class PeriodEnd(Struct, frozen=True, kw_only=True, tag="period", tag_field="kind"):
    """The end of a period, with the score; for a shoot-out, the score of the shoot-out."""

    #: The source's name: `HT`, `FT`, `PEN` …
    period: str
    #: `None` for a shoot-out.
    minute: Count | None = None
    #: Announced added time; `None` if unknown.
    added: Count | None = None
    home: Count
    away: Count


class Kick(Struct, frozen=True, kw_only=True, tag="kick", tag_field="kind"):
    """One kick of a shoot-out."""

    #: From 1, across both sides.
    sequence: Count
    player: str | None = None
    is_scored: bool
    #: The shoot-out's score after it.
    home: Count
    away: Count


class Outcome(StrEnum):
    """How a match ended."""

    HOME = "home"
    AWAY = "away"
    DRAW = "draw"
    ABANDONED = "abandoned"
    CANCELLED = "cancelled"
    WALKOVER = "walkover"


class FootballResult(Struct, frozen=True, kw_only=True, tag="football_result", tag_field="kind"):
    """The end of a match."""

    outcome: Outcome
    #: `FT`, `AET`, `AP` (penalties), `abandoned`, `cancelled` or `walkover`.
    after: str
    #: Goals without the shoot-out; `None` if nothing was played.
    home: Count | None = None
    away: Count | None = None
    #: The shoot-out's score; `None` if there was none.
    home_penalties: Count | None = None
    away_penalties: Count | None = None

    @property
    def text(self) -> str:
        """Return the result in words."""
        score = f" {self.home}-{self.away}" if self.home is not None and self.away is not None else ""
        kicks = f" ({self.home_penalties}-{self.away_penalties})" if self.home_penalties is not None else ""
        match self.outcome:
            case Outcome.HOME | Outcome.AWAY:
                return f"{self.outcome} won{score}{kicks} {self.after}"
            case Outcome.DRAW:
                return f"draw{score}{kicks} {self.after}"
            case _:
                return f"{self.outcome}{score}"


#: Events with a minute.
Timed = Goal | Card | Substitution | VarDecision | MissedPenalty
Incident = Timed | PeriodEnd | Kick
FootballContent = Incident | FootballResult

_SEVERITY = {CardKind.OTHER: 0, CardKind.YELLOW: 1, CardKind.SECOND_YELLOW: 2, CardKind.RED: 3}


def is_step_back(old: object, new: object) -> bool:
    """Return whether an event shows less than before: a lower score, a milder card."""
    if isinstance(old, Card) and isinstance(new, Card):
        return _SEVERITY[new.card] < _SEVERITY[old.card]
    if isinstance(old, Goal | PeriodEnd | Kick) and isinstance(new, Goal | PeriodEnd | Kick):
        return new.home < old.home or new.away < old.away
    return False


# --- views: what `parse` of a source returns -----------------------------------------------------------------


class FootballTeam(Struct, frozen=True, kw_only=True):
    key: str
    name: str


class PeriodScore(Struct, frozen=True, kw_only=True):
    """The goals of one period."""

    #: The site's name: `period1`, `extra1`, `penalties` …
    name: str
    home: int
    away: int


class FootballBoard(ListingEntry, frozen=True, kw_only=True):
    """The live state of a match, or its entry in a listing."""

    home: FootballTeam
    away: FootballTeam
    #: Goals without the shoot-out; `None` before kick-off, and if nothing was played.
    score: Goals | None = None
    #: By period, in order, as far as the site shows them.
    periods: tuple[PeriodScore, ...] = ()
    penalties: Goals | None = None
    result: FootballResult | None = None
    tournament: str | None = None
    season: str | None = None
    round: int | None = None

    def shows_less_than(self, other: ListingEntry) -> bool:
        if super().shows_less_than(other) or not isinstance(other, FootballBoard):
            return super().shows_less_than(other)
        has_lost_result = other.result is not None and self.result is None
        scores = ((other.score, self.score), (other.penalties, self.penalties))
        return has_lost_result or any(_has_fewer(old, new) for old, new in scores)


def _has_fewer(old: Goals | None, new: Goals | None) -> bool:
    if old is None:
        return False
    return new is None or new.home < old.home or new.away < old.away


class FootballDomBoard(FootballBoard, frozen=True, kw_only=True):
    """The board of a rendered page: its sides have names, and empty keys."""

    #: By field, the index of the selector that was used; above 0 the page has changed.
    selectors: Mapping[str, int] = {}


class SeenIncident(Struct, frozen=True, kw_only=True):
    """An event as a source shows it, before it is matched with stored ones."""

    #: The source's id; unique within its kind.
    source_event_id: str
    #: `None` for an event of both sides, such as the end of a period.
    side: Side | None
    content: Incident


class Incidents(Struct, frozen=True, kw_only=True):
    """The complete list of events, oldest first."""

    items: tuple[SeenIncident, ...]
    #: Names of the players in the list, by key.
    players: Mapping[str, str] = {}


class LineupPlayer(Struct, frozen=True, kw_only=True):
    """A player of a squad. A missing value is `UNSET`; a value that the source sets to null is `None`."""

    key: str
    name: str
    is_starter: bool
    is_captain: bool = False
    position: str | UnsetType | None = UNSET
    shirt: int | UnsetType | None = UNSET
    rating: float | UnsetType | None = UNSET
    minutes: int | UnsetType | None = UNSET


class MissingPlayer(Struct, frozen=True, kw_only=True):
    key: str
    name: str
    #: `missing` or `doubtful`.
    kind: str
    #: The source's number of the reason.
    reason: int | UnsetType = UNSET
    description: str | UnsetType = UNSET


class Squad(Struct, frozen=True, kw_only=True):
    formation: str | UnsetType | None = UNSET
    #: Starters first, in formation order from the goalkeeper.
    players: tuple[LineupPlayer, ...]
    missing: tuple[MissingPlayer, ...] | UnsetType = UNSET


class Lineups(Struct, frozen=True, kw_only=True):
    """The squads of both sides; a prediction until confirmed."""

    is_confirmed: bool
    #: `None` if the source shows no squad of this side.
    home: Squad | None
    away: Squad | None


class Statistic(Struct, frozen=True, kw_only=True):
    """One figure of both sides; with a total, a ratio such as 12 of 20."""

    key: str
    home: float
    away: float
    home_total: float | UnsetType = UNSET
    away_total: float | UnsetType = UNSET


class Statistics(Struct, frozen=True, kw_only=True):
    #: By the source's name of the period; `ALL` for the whole match.
    periods: Mapping[str, tuple[Statistic, ...]]


class FootballView(Struct, frozen=True, kw_only=True):
    """The result of one poll."""

    board: FootballBoard
    #: `None` if the site has no list for this match.
    incidents: Incidents | None
    #: As read in this poll; `None` if not requested, missing or rejected.
    lineups: Lineups | None = None
    statistics: Statistics | None = None
    #: When both were requested (monotonic); `None` if they were not.
    parts_asked_at: float | None = None


# --- state ---------------------------------------------------------------------------------------------------

#: The lists of players in a stored squad.
_PARTS = ("starters", "bench")
#: A side, its goals by the events, its goals on the board.
Difference = tuple[Side, int, int]


def order_of_play(event: Event) -> tuple[float, float, int, int]:
    """Return a sort key: by minute, the end of a period after its events, then the shoot-out, then the result."""
    match event.content:
        case Kick(sequence=sequence):
            return (inf, sequence, 0, 0)
        case PeriodEnd(minute=minute):
            return (inf if minute is None else minute, inf, 0, event.key.numbers[-1])
        case FootballResult():
            return (inf, inf, 1, 0)
        case Goal() | Card() | Substitution() | VarDecision() | MissedPenalty() as timed:
            clock = inf if timed.minute is None else timed.minute
            return (clock, timed.added or 0, 0, event.key.numbers[-1])
        case other:
            raise TypeError(f"{type(other).__name__} is not a football event")


def squads(lineups: Lineups | None) -> tuple[Squad, ...]:
    return tuple(squad for squad in (lineups.home, lineups.away) if squad) if lineups else ()


def squad_keys(lineups: Lineups) -> set[str]:
    return {player.key for squad in squads(lineups) for player in squad.players}


def players_in(contents: Iterable[object]) -> set[str]:
    """Return the keys of all players in these events."""
    named: set[str | None] = set()
    for content in contents:
        match content:
            case Goal():
                named |= {content.scorer, content.assist}
            case Card() | VarDecision() | MissedPenalty() | Kick():
                named.add(content.player)
            case Substitution():
                named |= {content.player_in, content.player_out}
    return {key for key in named if key is not None}


class Doubt(Struct, frozen=True, kw_only=True):
    """A list of incidents that is not accepted yet."""

    items: frozenset[SeenIncident]
    #: How many polls in a row have shown it.
    polls: int


class FootballState(MatchState, frozen=True, kw_only=True):
    """The durable base of a football match, and what this run has learnt since."""

    board: FootballBoard | None = None
    #: As last read by this run; those of earlier runs are in the snapshot.
    lineups: Lineups | None = None
    statistics: Statistics | None = None
    #: When both were last requested (monotonic).
    parts_asked_at: float | None = None
    #: The recorded differences between board and events.
    differences: frozenset[Difference] = frozenset()
    doubt: Doubt | None = None

    @property
    def incidents(self) -> list[Event]:
        """Return the live incidents in the order of play."""
        live = (event for key, event in self.events.items() if key.kind in INCIDENT_KINDS and event.is_live)
        return sorted(live, key=order_of_play)

    @property
    def goals(self) -> Goals:
        """Return the score by the events."""
        sides = [event.key.side for event in self.incidents if event.key.kind == FootballKind.GOAL]
        return Goals(home=sides.count(Side.HOME), away=sides.count(Side.AWAY))

    @property
    def event_players(self) -> set[str]:
        """Return the players in stored events."""
        return players_in(event.content for event in self.incidents)

    @property
    def squad_keys(self) -> set[str]:
        """Return the players in the latest line-ups, of this run or the snapshot."""
        if self.lineups is not None:
            return squad_keys(self.lineups)
        stored = msgspec.json.decode(self.snapshot.payload).get("lineups", {}) if self.snapshot else {}
        squads_stored = [stored[side] for side in Side if side in stored]
        return {player["key"] for squad in squads_stored for part in _PARTS for player in squad[part]}


# --- keys of other sources -------------------------------------------------------------------------------------


def rekey(view: object, keys: Keys) -> object:
    """Return a view with the source's player and team keys replaced by the stored ones."""

    def player(key: str | None) -> str | None:
        return keys.players.get(key, key) if key else key

    def squad(shown: Squad | None) -> Squad | None:
        if shown is None:
            return None
        missing = shown.missing
        return replace(
            shown,
            players=tuple(replace(each, key=player(each.key)) for each in shown.players),
            missing=missing if missing is UNSET else tuple(replace(each, key=player(each.key)) for each in missing),
        )

    match view:
        case FootballBoard(home=home, away=away):
            teams = keys.teams
            return replace(
                view,
                home=replace(home, key=teams.get(home.key, home.key)),
                away=replace(away, key=teams.get(away.key, away.key)),
            )
        case Incidents():
            return Incidents(
                items=tuple(replace(each, content=_rekeyed(each.content, keys.players)) for each in view.items),
                players={keys.players.get(key, key): name for key, name in view.players.items()},
            )
        case Lineups():
            return replace(view, home=squad(view.home), away=squad(view.away))
    return view


#: Fields of an event that hold player keys.
_PLAYERS = ("scorer", "assist", "player", "player_in", "player_out")


def _rekeyed(content: Incident, players: Mapping[str, str]) -> Incident:
    named = {name: key for name in _PLAYERS if (key := getattr(content, name, None)) is not None}
    return replace(content, **{name: players.get(key, key) for name, key in named.items()})


def names_in(view: FootballView) -> Keys:
    """Return the names in a view, by the source's keys."""
    squads_shown = squads(view.lineups)
    listed = {each.key: each.name for squad in squads_shown for each in squad.players if each.name}
    mentioned = view.incidents.players if view.incidents else {}
    teams = {team.key: team.name for team in (view.board.home, view.board.away) if team.name}
    return Keys(players={**mentioned, **listed}, teams=teams)
