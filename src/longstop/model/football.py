"""Football's own nouns: sides, goals, cards, substitutions, decisions of the video referee, periods, kicks, results.

Which side an event belongs to is in its key. Players are the source's keys; their names are in the match's `players`.
A minute is `None` where the source gives none, as for a card shown on the bench.
"""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=0)]


class Side(StrEnum):
    HOME = "home"
    AWAY = "away"

    @property
    def other(self) -> "Side":
        return Side.AWAY if self is Side.HOME else Side.HOME


class Goals(Struct, frozen=True, kw_only=True):
    """A score at one moment."""

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
    """A goal, under the side that it counts for, also when a player of the other one scored it."""

    minute: Count | None
    #: Minutes after the 45th, 90th, 105th or 120th; `None` when the source does not say.
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
    #: `None` for somebody who does not play, such as a coach.
    player: str | None = None
    card: CardKind


class Substitution(Struct, frozen=True, kw_only=True, tag="substitution", tag_field="kind"):
    minute: Count | None
    added: Count | None = None
    player_in: str | None = None
    player_out: str | None = None
    is_injury: bool = False


class VarDecision(Struct, frozen=True, kw_only=True, tag="var", tag_field="kind"):
    """What the video referee has found."""

    minute: Count | None
    added: Count | None = None
    #: In the source's words, as in `goal not awarded`.
    decision: str
    player: str | None = None


class MissedPenalty(Struct, frozen=True, kw_only=True, tag="missed_penalty", tag_field="kind"):
    """A penalty in play that gave no goal."""

    minute: Count | None
    added: Count | None = None
    player: str | None = None


class PeriodEnd(Struct, frozen=True, kw_only=True, tag="period", tag_field="kind"):
    """A part of the match that has ended, with the score then; of a shoot-out, its own."""

    #: As the source calls it: `HT`, `FT`, `PEN` …
    period: str
    #: `None` for a shoot-out, which no clock times.
    minute: Count | None = None
    #: How many minutes were announced to be added; `None` when that was not said.
    added: Count | None = None
    home: Count
    away: Count


class Kick(Struct, frozen=True, kw_only=True, tag="kick", tag_field="kind"):
    """One kick of a shoot-out."""

    #: From 1, both sides counted together.
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
    #: After what: `FT`, `AET`, `AP` (penalties), `abandoned`, `cancelled`, `walkover`.
    after: str
    #: Goals, those of a shoot-out apart; `None` when nothing was played.
    home: Count | None = None
    away: Count | None = None
    #: The shoot-out's score; `None` when there was none.
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


#: What happens at a minute of play.
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
