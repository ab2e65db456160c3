"""The final truth of a match: what really happened, whatever a site said first."""

from collections.abc import Iterable

from msgspec import Struct

from longstop.model.cricket import Dismissal, Overs, Result, Runs

BALLS_PER_OVER = 6


class Player(Struct, frozen=True, kw_only=True):
    key: str
    name: str


class Side(Struct, frozen=True, kw_only=True):
    """A team with its players in batting order."""

    key: str
    name: str
    players: tuple[Player, ...]


class Out(Struct, frozen=True, kw_only=True):
    """A batter gone."""

    kind: Dismissal
    player: str
    #: Whether the scoreboard counts it; a batter who retires hurt is no wicket.
    counts: bool = True


class Ball(Struct, frozen=True, kw_only=True):
    """One delivery; players are keys."""

    batter: str
    non_striker: str
    bowler: str
    runs: Runs = Runs()
    boundary: int | None = None
    outs: tuple[Out, ...] = ()

    @property
    def wickets(self) -> int:
        return sum(out.counts for out in self.outs)


class Over(Struct, frozen=True, kw_only=True):
    #: From 0.
    number: int
    balls: tuple[Ball, ...]

    @property
    def legal_balls(self) -> int:
        return sum(ball.runs.is_legal for ball in self.balls)


class Target(Struct, frozen=True, kw_only=True):
    """What the side batting second needs, and in how many overs."""

    runs: int
    overs: Overs


class Innings(Struct, frozen=True, kw_only=True):
    batting: Side
    bowling: Side
    overs: tuple[Over, ...]
    target: Target | None = None
    is_super_over: bool = False

    @property
    def balls(self) -> Iterable[Ball]:
        return (ball for over in self.overs for ball in over.balls)

    @property
    def runs(self) -> int:
        return sum(ball.runs.total for ball in self.balls)

    @property
    def wickets(self) -> int:
        return sum(ball.wickets for ball in self.balls)


class Game(Struct, frozen=True, kw_only=True):
    """A whole match."""

    key: str
    #: The match's number in its series.
    number: int
    #: "T20" or "ODI".
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
        return {player.key: player.name for side in self.sides for player in side.players}


def won_by(winner: str, *, runs: int = 0, wickets: int = 0) -> str:
    """Say who won and by how much, as a site does."""
    count, unit = (runs, "run") if runs else (wickets, "wicket")
    return f"{winner} won by {count} {unit}{'' if count == 1 else 's'}"
