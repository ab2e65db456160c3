"""The final truth of a match: what really happened, whatever a site said first."""

from collections.abc import Iterable

from msgspec import Struct

from longstop.sports.cricket.model import Dismissal, Overs, Result, Runs

BALLS_PER_OVER = 6


class Player(Struct, frozen=True, kw_only=True):
    key: str
    name: str


class Side(Struct, frozen=True, kw_only=True):
    """A team with its eleven in batting order."""

    key: str
    name: str
    players: tuple[Player, ...]
    #: Substitutes for a concussed player, or impact players.
    substitutes: tuple[Player, ...] = ()


class Out(Struct, frozen=True, kw_only=True, gc=False):
    """A batter gone."""

    kind: Dismissal
    player: str
    #: Whether the scoreboard counts it; retiring hurt is not a wicket.
    counts: bool = True


class Ball(Struct, frozen=True, kw_only=True, gc=False):
    """One delivery; players are keys."""

    batter: str
    non_striker: str
    bowler: str
    runs: Runs = Runs()
    boundary: int | None = None
    outs: tuple[Out, ...] = ()

    @property
    def wickets(self) -> int:
        return sum(out.counts for out in self.outs) if self.outs else 0


class Over(Struct, frozen=True, kw_only=True, gc=False):
    #: From 0.
    number: int
    balls: tuple[Ball, ...]

    @property
    def legal_balls(self) -> int:
        return sum(ball.runs.is_legal for ball in self.balls)


class Target(Struct, frozen=True, kw_only=True):
    """What the side batting last needs, and in how many overs."""

    runs: int
    overs: Overs


class Pause(Struct, frozen=True, kw_only=True):
    """A break inside an innings: drinks, rain, a night."""

    #: How many deliveries of the innings lie before it.
    after: int
    text: str
    seconds: float
    #: The target from then on, when time was lost.
    target: Target | None = None


class Innings(Struct, frozen=True, kw_only=True):
    batting: Side
    bowling: Side
    overs: tuple[Over, ...]
    #: As it was set before the first ball.
    target: Target | None = None
    pauses: tuple[Pause, ...] = ()
    is_super_over: bool = False
    is_declared: bool = False
    #: Penalty runs that belong to no ball: from earlier in the match, and awarded after the last ball.
    penalty_before: int = 0
    penalty_after: int = 0
    #: How much longer than usual the break after it is: a meal, a night.
    rest_seconds: float = 0.0

    @property
    def balls(self) -> Iterable[Ball]:
        return (ball for over in self.overs for ball in over.balls)

    @property
    def final_target(self) -> Target | None:
        """Return the target as it was last revised."""
        return next((pause.target for pause in reversed(self.pauses) if pause.target), self.target)

    @property
    def runs(self) -> int:
        return self.penalty_before + sum(ball.runs.total for ball in self.balls) + self.penalty_after

    @property
    def wickets(self) -> int:
        return sum(ball.wickets for ball in self.balls)


class Game(Struct, frozen=True, kw_only=True):
    """A whole match."""

    key: str
    #: The match's number in its series.
    number: int
    #: "T20", "ODI" or "TEST".
    match_format: str
    #: The side that bats first stands first.
    sides: tuple[Side, Side]
    innings: tuple[Innings, ...]
    result: Result

    @property
    def title(self) -> str:
        return f"{self.sides[0].name} v {self.sides[1].name}"

    @property
    def names(self) -> dict[str, str]:
        """Return the players' names by key."""
        return {player.key: player.name for side in self.sides for player in (*side.players, *side.substitutes)}


def won_by(winner: str, *, runs: int = 0, wickets: int = 0, by_an_innings: bool = False) -> str:
    """Return the winner and the margin in the words of a site."""
    count, unit = (runs, "run") if runs else (wickets, "wicket")
    innings = "an innings and " if by_an_innings else ""
    return f"{winner} won by {innings}{count} {unit}{'' if count == 1 else 's'}"
