"""Seeded T20 matches: the same seed and index give the same match and the same script."""

from random import Random

from msgspec.structs import replace

from longstop.model.cricket import Dismissal, Overs, Result, ResultKind, Runs
from longstop.simulator.game import BALLS_PER_OVER, Ball, Game, Innings, Out, Over, Side, Target, won_by
from longstop.simulator.keys import invent_sides, match_key
from longstop.simulator.mistakes import with_mistakes
from longstop.simulator.script import LIVE_PACE, Script, narrate

OVERS = 20
_WICKETS = 10
_SUPER_OVER_WICKETS = 2
_MAX_OVERS_PER_BOWLER = 4

#: (weight, runs, boundary): what a ball gives when nobody is out.
_GIVEN: tuple[tuple[float, Runs, int | None], ...] = (
    (320, Runs(), None),
    (370, Runs(batter=1), None),
    (70, Runs(batter=2), None),
    (7, Runs(batter=3), None),
    (110, Runs(batter=4), 4),
    (3, Runs(batter=4), None),
    (52, Runs(batter=6), 6),
    (1, Runs(batter=5), None),
    (30, Runs(wides=1), None),
    (4, Runs(wides=2), None),
    (1, Runs(wides=3), None),
    (4, Runs(wides=5), None),
    (3, Runs(noballs=1), None),
    (3, Runs(noballs=1, batter=1), None),
    (2, Runs(noballs=1, batter=4), 4),
    (2, Runs(noballs=1, batter=6), 6),
    (1, Runs(noballs=1, legbyes=2), None),
    (1, Runs(noballs=1, byes=1), None),
    (1, Runs(noballs=2), None),
    (5, Runs(byes=1), None),
    (2, Runs(byes=4), None),
    (14, Runs(legbyes=1), None),
    (3, Runs(legbyes=2), None),
    (2, Runs(legbyes=4), None),
    (0.5, Runs(penalty=5), None),
    (0.5, Runs(legbyes=1, penalty=5), None),
    (0.5, Runs(batter=1, penalty=5), None),
    (0.5, Runs(wides=1, penalty=5), None),
)
_WEIGHTS = [weight for weight, _, _ in _GIVEN]
_WICKET_SHARE = 0.052
#: Chance makes one match in two hundred a tie; a site that must show super overs needs more.
_TIE_SHARE = 0.03
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


def play_t20(seed: int, index: int) -> Game:
    """Return the final truth of the match number `index` of the seed."""
    dice = Random(f"game {seed} {index}")
    first, second = invent_sides(index, dice)
    innings = _play_pair(first, second, dice, overs=OVERS, wickets=_WICKETS)
    while innings[-1].runs == innings[-2].runs and len(innings) < 8:
        # Who batted last opens the super over.
        last = innings[-1]
        innings += _play_pair(last.batting, last.bowling, dice, overs=1, wickets=_SUPER_OVER_WICKETS)
    return Game(
        key=match_key(index),
        number=index + 1,
        match_format="T20",
        sides=(first, second),
        innings=tuple(innings),
        result=_result(innings),
    )


def script_t20(game: Game, seed: int) -> Script:
    """Return what the site publishes of the match, mistakes included."""
    dice = Random(f"script {seed} {game.key}")
    return with_mistakes(narrate(game, LIVE_PACE, dice), dice)


def _play_pair(first: Side, second: Side, dice: Random, *, overs: int, wickets: int) -> list[Innings]:
    is_super_over = overs == 1
    opened = Innings(
        batting=first,
        bowling=second,
        overs=_Crease(first, second, dice, overs=overs, wickets=wickets).play(),
        is_super_over=is_super_over,
    )
    target = Target(runs=opened.runs + 1, overs=Overs(overs, 0))
    crease = _Crease(second, first, dice, overs=overs, wickets=wickets, target=target.runs)
    seeks_tie = not is_super_over and dice.random() < _TIE_SHARE
    chased = Innings(
        batting=second,
        bowling=first,
        overs=crease.play(seeks_tie=seeks_tie),
        target=target,
        is_super_over=is_super_over,
    )
    return [opened, chased]


def _result(innings: list[Innings]) -> Result:
    opened, chased = innings[-2:]
    winner = chased if chased.runs > opened.runs else opened
    if opened.runs == chased.runs:
        return Result(outcome=ResultKind.TIE, text="Match tied")
    if opened.is_super_over:
        return Result(outcome=ResultKind.TIE, text=f"Match tied ({winner.batting.name} won the Super Over)")
    if winner is chased:
        left = _WICKETS - chased.wickets
        return Result(outcome=ResultKind.WON, text=won_by(winner.batting.name, wickets=left))
    return Result(outcome=ResultKind.WON, text=won_by(winner.batting.name, runs=opened.runs - chased.runs))


class _Crease:
    """The state of an innings while it is played: who faces, who bowls, what is still to get."""

    def __init__(
        self, batting: Side, bowling: Side, dice: Random, *, overs: int, wickets: int, target: int | None = None
    ) -> None:
        self._dice = dice
        self._overs = overs
        self._wickets_left = wickets
        self._needed = target
        self._striker, self._non_striker, *self._waiting = (player.key for player in batting.players[: wickets + 1])
        # The last six of a side bowl, as a rule.
        self._spells = {player.key: 0 for player in bowling.players[-6:]}
        self._bowler = ""
        self._is_over = False
        self._seeks_tie = False

    def play(self, *, seeks_tie: bool = False) -> tuple[Over, ...]:
        overs: list[Over] = []
        while not self._is_over and len(overs) < self._overs:
            self._seeks_tie = seeks_tie and len(overs) == self._overs - 1
            overs.append(Over(number=len(overs), balls=self._play_over()))
            self._striker, self._non_striker = self._non_striker, self._striker
        return tuple(overs)

    def _play_over(self) -> tuple[Ball, ...]:
        self._bowler = self._next_bowler()
        balls: list[Ball] = []
        while not self._is_over and sum(ball.runs.is_legal for ball in balls) < BALLS_PER_OVER:
            ball = self._bowl()
            balls.append(ball)
            self._settle(ball)
        return tuple(balls)

    def _next_bowler(self) -> str:
        fresh = [key for key, overs in self._spells.items() if overs < _MAX_OVERS_PER_BOWLER and key != self._bowler]
        fewest = sorted(fresh, key=self._spells.__getitem__)[:3]
        bowler = self._dice.choice(fewest)
        self._spells[bowler] += 1
        return bowler

    def _bowl(self) -> Ball:
        _, runs, boundary = self._dice.choices(_GIVEN, _WEIGHTS)[0]
        ball = Ball(
            batter=self._striker, non_striker=self._non_striker, bowler=self._bowler, runs=runs, boundary=boundary
        )
        if self._needed is not None and self._seeks_tie:
            return _towards(ball, self._needed - 1)
        if self._dice.random() >= _WICKET_SHARE:
            return ball
        fallen = self._with_wicket(ball)
        # The winning run ends the match before anybody can be out.
        return ball if self._needed is not None and fallen.runs.total >= self._needed else fallen

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
        counts = kind is not Dismissal.RETIRED or self._dice.random() < 0.3
        return replace(ball, runs=runs, boundary=boundary, outs=(Out(kind=kind, player=player, counts=counts),))

    def _any_dismissal(self) -> Dismissal:
        return self._dice.choices(list(_DISMISSALS), list(_DISMISSALS.values()))[0]

    def _settle(self, ball: Ball) -> None:
        """Rotate the strike, send the next batter in, and see whether the innings is over."""
        if _runs_run(ball) % 2:
            self._striker, self._non_striker = self._non_striker, self._striker
        for out in ball.outs:
            self._replace(out)
        if self._needed is not None:
            self._needed -= ball.runs.total
            self._is_over = self._is_over or self._needed <= 0

    def _replace(self, out: Out) -> None:
        self._wickets_left -= out.counts
        if not self._waiting or not self._wickets_left:
            self._is_over = True
            return
        if self._striker == out.player:
            self._striker = self._waiting.pop(0)
        else:
            self._non_striker = self._waiting.pop(0)


def _towards(ball: Ball, missing: int) -> Ball:
    """Return the ball with as many of the missing runs as a hit can bring."""
    hit = min(6, missing)
    return replace(ball, runs=Runs(batter=hit), boundary=hit if hit in (4, 6) else None)


def _possible(runs: Runs) -> tuple[Dismissal, ...]:
    return _ON_WIDE if runs.wides else _ON_NO_BALL


def _runs_run(ball: Ball) -> int:
    """Return how often the batters crossed; a rope, the wide itself and penalties need no running."""
    if ball.boundary:
        return 0
    return ball.runs.batter + ball.runs.byes + ball.runs.legbyes + max(0, ball.runs.wides - 1)
