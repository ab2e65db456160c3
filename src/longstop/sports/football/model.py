"""Football's records: stored contents, views that a source parses, and the state of a match.

The side of an event is in its key. Players are the source's keys; their names are in the match's `players`. A minute is
`None` if the source has none, such as for a card shown on the bench.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from math import inf
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from longstop.model.event import Event
from longstop.model.source_queries_and_answers import Keys, ListingEntry
from longstop.sports.base import MatchState, keys_in

Count = Annotated[int, Meta(ge=0)]

#: Resources of a football source, in addition to list, live state and rendered page.
INCIDENTS, LINEUPS, STATISTICS = "incidents", "lineups", "statistics"


class FootballKind(StrEnum):
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


class Goals(Struct, frozen=True, kw_only=True):
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


class Timed(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """An event of one minute of play."""

    minute: Count | None
    #: Minutes after the 45th, 90th, 105th or 120th; `None` if unknown.
    added: Count | None = None


class Goal(Timed, frozen=True, kw_only=True, tag="goal"):
    """A goal, under the side that it counts for, even if it is an own goal of the other side."""

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


class Card(Timed, frozen=True, kw_only=True, tag="card"):
    #: `None` for a coach or another person who does not play.
    player: str | None = None
    card: CardKind
    #: The source's word, such as `Foul`.
    reason: str | UnsetType = UNSET
    #: Whether the card was taken back.
    is_rescinded: bool | UnsetType = UNSET


class Substitution(Timed, frozen=True, kw_only=True, tag="substitution"):
    player_in: str | None = None
    player_out: str | None = None
    is_injury: bool = False


class VarDecision(Timed, frozen=True, kw_only=True, tag="var"):
    """A decision of the video referee."""

    #: The source's text, such as `goal not awarded`.
    decision: str
    player: str | None = None
    #: As the source marks it; it does not say what it means.
    is_confirmed: bool | UnsetType = UNSET


class MissedPenalty(Timed, frozen=True, kw_only=True, tag="missed_penalty"):
    """A missed penalty during play."""

    player: str | None = None
    #: Why it was missed, in the source's words, such as `Goalkeeper save`.
    reason: str | UnsetType = UNSET


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
    #: The source says that the match is over, and shows neither a score nor a winner.
    UNKNOWN = "unknown"


#: What a match ends after if it is awarded without being played.
AWARDED = "awarded"


class FootballResult(Struct, frozen=True, kw_only=True, tag="football_result", tag_field="kind"):
    """The end of a match."""

    outcome: Outcome
    #: `FT`, `AET`, `AP` (penalties), `abandoned`, `cancelled`, `walkover`, `awarded` or the source's word.
    after: str
    #: Goals as played, without the shoot-out; `None` if nothing was played.
    home: Count | None = None
    away: Count | None = None
    #: The shoot-out's score; `None` if there was none.
    home_penalties: Count | None = None
    away_penalties: Count | None = None
    #: The winner, where the outcome does not name one: after a walkover, and of a match that is awarded without an end.
    winner: Side | UnsetType = UNSET
    #: The score that a decision off the pitch gave to the match; it replaces the one that was played.
    awarded: Goals | UnsetType = UNSET

    @property
    def text(self) -> str:
        score = f" {self.home}-{self.away}" if self.home is not None and self.away is not None else ""
        if self.awarded is not UNSET:
            given = f" {self.awarded.home}-{self.awarded.away}"
            score = f"{given} (awarded)" if score in ("", given) else f"{given} (awarded, played{score})"
        kicks = f" ({self.home_penalties}-{self.away_penalties})" if self.home_penalties is not None else ""
        after = "" if self.after == AWARDED else f" {self.after}"
        match self.outcome:
            case Outcome.HOME | Outcome.AWAY:
                return f"{self.outcome} won{score}{kicks}{after}"
            case Outcome.DRAW:
                return f"draw{score}{kicks}{after}"
            case Outcome.UNKNOWN:
                return f"{self.after}, result unknown"
            case _:
                return f"{self.outcome}{score}"


Incident = Goal | Card | Substitution | VarDecision | MissedPenalty | PeriodEnd | Kick

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


class PeriodScore(Struct, frozen=True, kw_only=True, rename={"name": "period"}):
    #: `period1`, `period2`, `extra1` or `extra2`.
    name: str
    home: Count
    away: Count


class StatusDetail(StrEnum):
    """Why a match is not played as planned; `MatchStatus` does not tell these apart."""

    POSTPONED = "postponed"
    DELAYED = "delayed"
    INTERRUPTED = "interrupted"
    SUSPENDED = "suspended"
    #: On another day.
    WILL_CONTINUE = "will_continue"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"
    WALKOVER = "walkover"
    RETIRED = "retired"


class MatchClock(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The clock of the period in play, as numbers that stay equal while it runs.

    The clock shows `initial_seconds` plus the time since `period_started_at`.
    """

    period_started_at: datetime
    initial_seconds: Count
    #: Where the period ends without added time.
    max_seconds: Count | None = None


class Tie(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The other leg of a tie of two matches."""

    #: Goals of both legs together, by this match's sides.
    aggregate: Goals | None = None
    #: The source's id of the first leg.
    previous_leg: str | None = None


class MatchDetails(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts about a match that do not change during play; absent if the source does not show them."""

    #: Such as `Quarterfinals`.
    round_name: str | None = None
    #: The source's group of tournaments: a country, a continent, `World`.
    category: str | None = None
    country: str | None = None
    #: `men` or `women`.
    gender: str | None = None
    venue: str | None = None
    city: str | None = None
    referee: str | None = None


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
    details: MatchDetails = MatchDetails()
    status_detail: StatusDetail | None = None
    #: `None` unless a period is in play.
    clock: MatchClock | None = None
    #: Announced minutes, by the name of the period.
    added_time: Mapping[str, int] = {}
    tie: Tie | None = None
    #: The sides whose event the video referee is checking.
    var_in_progress: tuple[Side, ...] = ()

    @property
    def teams(self) -> tuple[str, ...]:
        keys = (self.home.key, self.away.key)
        return keys if all(keys) else ()

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
    #: Why this list may be altered; empty for a clean one.
    suspicions: tuple[str, ...] = ()

    @property
    def keys(self) -> set[str]:
        """Return the keys of all players in the events."""
        return keys_in((item.content for item in self.items), PLAYER_KEYS)


class LineupPlayer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A player of a squad. A missing value is `UNSET`; a value that the source sets to null is `None`."""

    key: str
    name: str
    is_captain: bool = False
    position: str | UnsetType | None = UNSET
    shirt: Count | UnsetType | None = UNSET
    #: Missing if the player was not rated, for example after a short appearance.
    rating: float | UnsetType | None = UNSET
    #: Minutes on the pitch; missing if the player has not played.
    minutes: Count | UnsetType | None = UNSET


class MissingPlayer(Struct, frozen=True, kw_only=True, rename={"kind": "type"}):
    key: str
    name: str
    #: `missing` or `doubtful`.
    kind: str
    #: The source's number of the reason.
    reason: int | UnsetType = UNSET
    description: str | UnsetType = UNSET
    #: When the player is expected back, as the source writes it.
    expected_end: str | UnsetType = UNSET


class Squad(Struct, frozen=True, kw_only=True):
    #: As in 4-3-3; the goalkeeper is not counted.
    formation: str | UnsetType | None = UNSET
    #: In formation order from the goalkeeper.
    starters: tuple[LineupPlayer, ...]
    bench: tuple[LineupPlayer, ...]
    missing: tuple[MissingPlayer, ...] | UnsetType = UNSET

    @property
    def players(self) -> tuple[LineupPlayer, ...]:
        return (*self.starters, *self.bench)


class Lineups(Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"is_confirmed": "confirmed"}):
    """The squads of both sides; a prediction until confirmed."""

    is_confirmed: bool
    #: `None` if the source shows no squad of this side.
    home: Squad | None = None
    away: Squad | None = None

    @property
    def squads(self) -> tuple[Squad, ...]:
        return tuple(squad for squad in (self.home, self.away) if squad)

    @property
    def keys(self) -> set[str]:
        """Return the keys of all players."""
        return {player.key for squad in self.squads for player in squad.players}


class Statistic(Struct, frozen=True, kw_only=True):
    """One figure of both sides; with a total, a ratio such as 12 of 20."""

    home: float
    away: float
    home_total: float | UnsetType = UNSET
    away_total: float | UnsetType = UNSET


class Statistics(Struct, frozen=True, kw_only=True):
    #: By the source's name of the period (`ALL` for the whole match), then by its name of the figure.
    periods: Mapping[str, Mapping[str, Statistic]]


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
        case Timed() as timed:
            clock = inf if timed.minute is None else timed.minute
            return (clock, timed.added or 0, 0, event.key.numbers[-1])
        case other:
            raise TypeError(f"{type(other).__name__} is not a football event")


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
    #: Since when this run knows the players of the line-ups; `None` if it has only those of earlier runs, or none.
    squad_since: datetime | None = None
    #: The recorded differences between board and events.
    differences: frozenset[Difference] = frozenset()
    doubt: Doubt | None = None

    @property
    def known_teams(self) -> tuple[str, ...]:
        if shown := super().known_teams:
            return shown
        served = self.served_teams
        return (served["home"], served["away"]) if served else ()

    @property
    def is_contradicted(self) -> bool:
        return bool(self.differences) or self.doubt is not None

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
        return keys_in((event.content for event in self.incidents), PLAYER_KEYS)

    @property
    def latest(self) -> "StoredParts":
        """Return the latest line-ups and statistics: of this run, else those in the snapshot."""
        stored = msgspec.json.decode(self.snapshot.payload, type=StoredParts) if self.snapshot else StoredParts()
        return StoredParts(
            lineups=self.lineups or stored.lineups,
            statistics=self.statistics.periods if self.statistics else stored.statistics,
        )

    @property
    def squad_keys(self) -> set[str]:
        """Return the players in the latest line-ups."""
        lineups = self.latest.lineups
        return lineups.keys if lineups else set()


class StoredParts(Struct, frozen=True, kw_only=True):
    """The parts of a payload that are read once a minute; absent until the source has shown them."""

    lineups: Lineups | None = None
    statistics: Mapping[str, Mapping[str, Statistic]] | None = None


# --- keys of players and teams ---------------------------------------------------------------------------------

#: The fields that hold them, by record.
PLAYER_KEYS: Mapping[type, tuple[str, ...]] = {
    Goal: ("scorer", "assist"),
    Card: ("player",),
    Substitution: ("player_in", "player_out"),
    VarDecision: ("player",),
    MissedPenalty: ("player",),
    Kick: ("player",),
    Incidents: ("players",),
    LineupPlayer: ("key",),
    MissingPlayer: ("key",),
}
TEAM_KEYS: Mapping[type, tuple[str, ...]] = {FootballTeam: ("key",)}


def names_in(board: FootballBoard, incidents: Incidents | None, lineups: Lineups | None) -> Keys:
    """Return the names that these show, by key."""
    shown = lineups.squads if lineups else ()
    listed = {player.key: player.name for squad in shown for player in squad.players if player.name}
    absent = {player.key: player.name for squad in shown for player in squad.missing or () if player.name}
    mentioned = incidents.players if incidents else {}
    teams = {team.key: team.name for team in (board.home, board.away) if team.name}
    return Keys(players={**absent, **mentioned, **listed}, teams=teams)
