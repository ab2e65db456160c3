"""An innings as it is played, ball by ball: batters, bowlers and the runs still needed."""

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from longstop.sports.cricket.model import Dismissal, Runs
from longstop_lab.simulator.cricket.game import BALLS_PER_OVER, Ball, Out, Over, Side

ALL_OUT = 10
#: The last six of a side bowl, as a rule.
_BOWLERS = 6
#: One over in this many is miscounted: it has five or seven legal balls.
_OVERS_PER_MISCOUNT = 250
#: The share of retirements that are final; the other batters are hurt and may return.
_RETIRED_OUT_SHARE = 0.3
_CONCUSSED_SHARE = 0.4
_DISMISSALS = {
    Dismissal.CAUGHT: 55,
    Dismissal.BOWLED: 17,
    Dismissal.LBW: 9,
    Dismissal.RUN_OUT: 9,
    Dismissal.STUMPED: 3,
    Dismissal.HIT_WICKET: 2,
    Dismissal.RETIRED: 3,
    Dismissal.OBSTRUCTING: 1,
    Dismissal.OTHER: 1,
}
#: A wide or a no-ball allows only some dismissals.
_ON_WIDE = (Dismissal.STUMPED, Dismissal.RUN_OUT, Dismissal.OBSTRUCTING)
_ON_NO_BALL = (Dismissal.RUN_OUT,)


class Given(Struct, frozen=True):
    """A possible outcome of a ball without a wicket, and its weight."""

    weight: float
    runs: Runs
    boundary: int | None = None


class Conditions(Struct, frozen=True, kw_only=True):
    """The playing conditions of a format."""

    given: tuple[Given, ...]
    #: The share of balls that take a wicket.
    wicket_share: float
    overs_per_bowler: int


class Squad:
    """The current players of a side; substitutes change them."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.eleven = [player.key for player in side.players]
        self._bench = [player.key for player in side.substitutes]

    def bring_on(self, gone: str, *, place: int | None = None) -> str:
        """Replace a player by a substitute, who bats at `place` if given."""
        if not self._bench:
            return gone
        came = self._bench.pop(0)
        at = self.eleven.index(gone)
        self.eleven[at] = came
        if place is not None:
            self.eleven.insert(place, self.eleven.pop(at))
        return came


class InningsInPlay:
    """One innings; call `play_over` while it `is_open`."""

    def __init__(
        self,
        batting: Squad,
        bowling: Squad,
        conditions: Conditions,
        dice: Random,
        *,
        overs: int,
        wickets: int = ALL_OUT,
        needed: int | None = None,
    ) -> None:
        self.overs: list[Over] = []
        self.balls = self.runs = self.wickets = 0
        #: The length in overs; rain may shorten it.
        self.limit = overs
        #: Runs still needed; `None` without a target.
        self.needed = needed
        #: Whether the last over aims at a tie.
        self.seeks_tie = False
        self._batting = batting
        self._conditions = conditions
        self._weights = list(accumulate(given.weight for given in conditions.given))
        self._dice = dice
        self._wickets_left = wickets
        self._striker, self._non_striker, *self._waiting = batting.eleven[: wickets + 1]
        self._spells = dict.fromkeys(bowling.eleven[-_BOWLERS:], 0)
        self._bowler = ""
        self._is_over = False

    @property
    def is_finished(self) -> bool:
        """Whether the side is all out or has reached its target; a completed number of overs does not count."""
        return self._is_over

    @property
    def is_open(self) -> bool:
        return not self._is_over and len(self.overs) < self.limit

    def play_over(self) -> None:
        """Bowl one over, or the rest of the innings."""
        self._bowler = self._next_bowler()
        legal, wanted = 0, self._legal_balls()
        balls: list[Ball] = []
        while legal < wanted and not self._is_over:
            ball = self._bowl()
            balls.append(ball)
            legal += ball.runs.is_legal
            self._settle(ball)
        self.overs.append(Over(number=len(self.overs), balls=tuple(balls)))
        self._striker, self._non_striker = self._non_striker, self._striker

    def cut_short(self, balls: int) -> None:
        """Keep only this many balls of the last over, because rain stopped play."""
        last = self.overs[-1]
        gone = last.balls[balls:]
        self.overs[-1] = replace(last, balls=last.balls[:balls])
        self.balls -= len(gone)
        self.runs -= sum(ball.runs.total for ball in gone)
        self.wickets -= sum(ball.wickets for ball in gone)
        self._is_over = True

    def _legal_balls(self) -> int:
        is_last = len(self.overs) == self.limit - 1
        if is_last or self._dice.random() * _OVERS_PER_MISCOUNT >= 1:
            return BALLS_PER_OVER
        return self._dice.choice((BALLS_PER_OVER - 1, BALLS_PER_OVER + 1))

    def _next_bowler(self) -> str:
        most = self._conditions.overs_per_bowler
        fresh = [key for key, overs in self._spells.items() if overs < most and key != self._bowler]
        fewest = sorted(fresh, key=self._spells.__getitem__)[:3]
        bowler = self._dice.choice(fewest)
        self._spells[bowler] += 1
        return bowler

    def _bowl(self) -> Ball:
        given = self._conditions.given[bisect(self._weights, self._dice.random() * self._weights[-1])]
        ball = Ball(
            batter=self._striker,
            non_striker=self._non_striker,
            bowler=self._bowler,
            runs=given.runs,
            boundary=given.boundary,
        )
        if self.needed is not None and self.seeks_tie and len(self.overs) == self.limit - 1:
            return _towards(ball, self.needed - 1)
        if self._dice.random() >= self._conditions.wicket_share:
            return ball
        fallen = self._with_wicket(ball)
        # The winning run ends the match before a wicket can fall.
        return ball if self.needed is not None and fallen.runs.total >= self.needed else fallen

    def _with_wicket(self, ball: Ball) -> Ball:
        kind = self._any_dismissal() if ball.runs.is_legal else self._dice.choice(_possible(ball.runs))
        runs, boundary, player = ball.runs, ball.boundary, ball.batter
        match kind:
            case Dismissal.RUN_OUT:
                crossed = 0 if runs.wides else self._dice.choice((0, 0, 1))
                runs, boundary = Runs(batter=crossed, noballs=runs.noballs, wides=runs.wides), None
                player = self._dice.choice((ball.batter, ball.non_striker))
            case Dismissal.RETIRED:
                pass
            case _ if runs.is_legal:
                runs, boundary = Runs(), None
        counts = kind is not Dismissal.RETIRED or self._dice.random() < _RETIRED_OUT_SHARE
        return replace(ball, runs=runs, boundary=boundary, outs=(Out(kind=kind, player=player, counts=counts),))

    def _any_dismissal(self) -> Dismissal:
        return self._dice.choices(list(_DISMISSALS), list(_DISMISSALS.values()))[0]

    def _settle(self, ball: Ball) -> None:
        """Update the score, rotate the strike, replace batters who are out, and check whether the innings is over."""
        total = ball.runs.total
        self.balls += 1
        self.runs += total
        if _runs_run(ball) % 2:
            self._striker, self._non_striker = self._non_striker, self._striker
        for out in ball.outs:
            self._replace(out)
        if self.needed is not None:
            self.needed -= total
            self._is_over = self._is_over or self.needed <= 0

    def _replace(self, out: Out) -> None:
        self.wickets += out.counts
        self._wickets_left -= out.counts
        if not self._waiting or not self._wickets_left:
            self._is_over = True
            return
        came = self._waiting.pop(0)
        if self._striker == out.player:
            self._striker = came
        else:
            self._non_striker = came
        if not out.counts:
            # A hurt batter returns last; a concussed one is replaced by a substitute.
            is_concussed = self._dice.random() < _CONCUSSED_SHARE
            self._waiting.append(self._batting.bring_on(out.player) if is_concussed else out.player)


def _towards(ball: Ball, missing: int) -> Ball:
    """Return the ball with as many of the missing runs as one hit can score."""
    hit = min(6, missing)
    return replace(ball, runs=Runs(batter=hit), boundary=hit if hit in (4, 6) else None)


def _possible(runs: Runs) -> Sequence[Dismissal]:
    return _ON_WIDE if runs.wides else _ON_NO_BALL


def _runs_run(ball: Ball) -> int:
    """Return how often the batters crossed; boundaries, the wide itself and penalties need no running."""
    if ball.boundary:
        return 0
    return ball.runs.batter + ball.runs.byes + ball.runs.legbyes + max(0, ball.runs.wides - 1)
