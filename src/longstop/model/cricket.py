"""Cricket's own nouns: overs, runs by kind, wickets, deliveries, innings, results."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=0)]


class Overs(Struct, frozen=True, order=True):
    """Overs bowled, as two integers: complete overs, and legal balls of the one under way. Never a float."""

    over: Count
    ball: Count

    def __str__(self) -> str:
        return f"{self.over}.{self.ball}"


class Runs(Struct, frozen=True, kw_only=True):
    """What one delivery gave, by kind."""

    batter: Count = 0
    wides: Count = 0
    noballs: Count = 0
    byes: Count = 0
    legbyes: Count = 0
    penalty: Count = 0

    @property
    def total(self) -> int:
        return self.batter + self.wides + self.noballs + self.byes + self.legbyes + self.penalty

    @property
    def is_legal(self) -> bool:
        """Return whether the delivery counts towards the over."""
        return not (self.wides or self.noballs)


class Dismissal(StrEnum):
    """How a batter's stay ended, in the classes that the sources can tell apart."""

    BOWLED = "bowled"
    CAUGHT = "caught"
    LBW = "lbw"
    RUN_OUT = "run out"
    STUMPED = "stumped"
    HIT_WICKET = "hit wicket"
    #: Hurt, out or not out: the feed does not say which, so the scoreboard may or may not count it.
    RETIRED = "retired"
    OBSTRUCTING = "obstructing the field"
    OTHER = "other"


class Wicket(Struct, frozen=True, kw_only=True):
    """One batter gone."""

    kind: Dismissal
    #: The name as the source wrote it.
    player_out: str
    #: The source's key of that player; `None` when it gave none.
    player_key: str | None = None


class Delivery(Struct, frozen=True, kw_only=True, tag="delivery", tag_field="kind"):
    """One ball bowled."""

    #: The legal-ball label as shown; a wide carries the label of the ball to come.
    label: Overs
    runs: Runs
    #: 4 or 6 when it reached the rope, else `None` (four all-run are four runs and no boundary).
    boundary: int | None = None
    #: Source keys; names are in the match's `players`.
    batter: str | None = None
    bowler: str | None = None
    wickets: tuple[Wicket, ...] = ()


class Score(Struct, frozen=True, kw_only=True):
    """Runs and wickets at one moment."""

    runs: Count
    wickets: Count


class OverSummary(Struct, frozen=True, kw_only=True, tag="over", tag_field="kind"):
    """A completed over, as the source summed it up when it ended."""

    runs: Count
    score: Score
    bowler: str | None = None
    #: Legal balls; umpires miscount. `None` when the source does not say.
    balls: Count | None = None


class InferredBalls(Struct, frozen=True, kw_only=True, tag="inferred", tag_field="kind"):
    """What an over gave beyond the balls that were shown: known as a sum, never as balls."""

    runs: Count
    wickets: Count
    #: Legal balls that nobody saw.
    balls: Count


class InningsSummary(Struct, frozen=True, kw_only=True, tag="innings", tag_field="kind"):
    """A closed innings."""

    #: The batting side's key; `None` while the source has not said which.
    team: str | None
    runs: Count
    wickets: Count
    overs: Overs


class ResultKind(StrEnum):
    """How a match ended."""

    WON = "won"
    DRAW = "draw"
    TIE = "tie"
    NO_RESULT = "no result"
    ABANDONED = "abandoned"
    CANCELLED = "cancelled"
    WALKOVER = "walkover"


class Result(Struct, frozen=True, kw_only=True, tag="result", tag_field="kind"):
    """The end of a match, in the source's words."""

    outcome: ResultKind
    text: str


class InningsScore(Struct, frozen=True, kw_only=True):
    """What a scoreboard shows of one innings."""

    runs: Count
    wickets: Count
    overs: Overs

    @property
    def is_blank(self) -> bool:
        """Return whether this is a zero-filled innings, which sites also show for one that has not begun."""
        return self.runs == 0 and self.wickets == 0 and self.overs == Overs(0, 0)


class Target(Struct, frozen=True, kw_only=True):
    """What the side batting second needs, also after a revision for lost time."""

    runs: Count
    overs: Overs
