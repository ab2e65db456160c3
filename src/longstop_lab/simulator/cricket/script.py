"""The script of a match: what the site publishes, step by step, in world seconds from the match's start."""

from collections.abc import Iterator
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from longstop.sports.cricket.model import Overs, Result
from longstop_lab.simulator.cricket.game import BALLS_PER_OVER, Ball, Game, Innings, Over, Pause, Target

#: Ids are milliseconds, like the site's; they follow the place in the match, not the moment of publication.
FIRST_ID = 1_770_000_000_000
#: Room between two balls for the wickets, a ghost, the over's end and a remark.
ID_STEP = 20_000
GHOST_ID = 6_000
OVER_ID = 12_000
REMARK_ID = 15_000


class Step(Struct, frozen=True, kw_only=True, gc=False):
    """The base: when it is published, in seconds from the match's start."""

    at: float


class PublishBall(Step, frozen=True, kw_only=True, gc=False):
    """The delivery of this id now reads so; the first such step inserts it, later ones correct it."""

    id: int
    #: From 1.
    innings: int
    label: Overs
    ball: Ball


class WithdrawBall(Step, frozen=True, kw_only=True, gc=False):
    """The delivery of this id was never bowled."""

    id: int


class EndOver(Step, frozen=True, kw_only=True, gc=False):
    id: int
    innings: int
    #: From 0.
    over: int


class EndInnings(Step, frozen=True, kw_only=True, gc=False):
    """The innings is closed, and the site says what comes now."""

    innings: int
    text: str


class AwardRuns(Step, frozen=True, kw_only=True, gc=False):
    """Penalty runs for an innings that belong to no ball."""

    innings: int
    runs: int


class Announce(Step, frozen=True, kw_only=True, gc=False):
    """The site shows a text in place of the last ball: drinks, rain, stumps."""

    text: str


class Retarget(Step, frozen=True, kw_only=True, gc=False):
    """The target of the innings is another one now."""

    innings: int
    target: Target


class Remark(Step, frozen=True, kw_only=True, gc=False):
    """A line of prose in the feed; no event."""

    id: int
    innings: int
    text: str


class EndMatch(Step, frozen=True, kw_only=True, gc=False):
    """The result; an innings still open is closed with it."""

    result: Result


Script = tuple[Step, ...]


class Pace(Struct, frozen=True, kw_only=True):
    """How long things take: each a range of world seconds to draw from."""

    ball: tuple[float, float]
    over: tuple[float, float]
    after_wicket: tuple[float, float]
    #: How long a wicket comes after its ball.
    wicket_delay: tuple[float, float]
    #: How long an over's or innings' end comes after its last ball.
    settling: tuple[float, float]
    innings_break: float
    #: From the last ball to the result.
    to_result: tuple[float, float]


#: Measured on real matches.
LIVE_PACE = Pace(
    ball=(14, 40),
    over=(60, 90),
    after_wicket=(40, 60),
    wicket_delay=(2, 9),
    settling=(1, 4),
    innings_break=900,
    to_result=(60, 120),
)


def steady_pace(gap: float) -> Pace:
    """Return a pace with one constant gap, for replays."""
    return Pace(
        ball=(gap, gap),
        over=(gap, gap),
        after_wicket=(gap, gap),
        wicket_delay=(gap / 4, gap / 4),
        settling=(gap / 8, gap / 8),
        innings_break=6 * gap,
        to_result=(6 * gap, 6 * gap),
    )


def narrate(game: Game, pace: Pace, dice: Random) -> Script:
    """Return the script of a site that makes no mistake."""
    narrator = _Narrator(game, pace, dice)
    return tuple(narrator.steps())


class _Narrator:
    """Walks through a game with a stop-watch."""

    def __init__(self, game: Game, pace: Pace, dice: Random) -> None:
        self._game = game
        self._pace = pace
        self._dice = dice
        self._at = 0.0
        self._id = FIRST_ID + game.number * ID_STEP * 1_000
        self._bowled = 0
        self._pauses: list[Pause] = []

    def steps(self) -> Iterator[Step]:
        last = len(self._game.innings)
        for number, innings in enumerate(self._game.innings, start=1):
            yield from self._innings(number, innings)
            if number < last:
                yield EndInnings(at=self._after(self._pace.settling), innings=number, text=self._break_text(number))
                self._at += self._pace.innings_break + innings.rest_seconds
        yield EndMatch(at=self._after(self._pace.to_result), result=self._game.result)

    def _break_text(self, number: int) -> str:
        follows = self._game.innings[number]
        opens_super_over = follows.is_super_over and follows.target is None
        return "Super Over" if opens_super_over else "Innings Break"

    def _innings(self, number: int, innings: Innings) -> Iterator[Step]:
        self._bowled, self._pauses = 0, list(innings.pauses)
        if innings.penalty_before:
            yield AwardRuns(at=self._at, innings=number, runs=innings.penalty_before)
        yield from self._pause(number)
        for over in innings.overs:
            yield from self._over(number, over)
            is_last = over is innings.overs[-1]
            if over.legal_balls >= BALLS_PER_OVER or not is_last:
                yield EndOver(
                    at=self._after(self._pace.settling), id=self._id + OVER_ID, innings=number, over=over.number
                )
            if not is_last and over.number % 4 == 1:
                text = f"{over.number + 1} overs gone, and the field is changing."
                yield Remark(at=self._at, id=self._id + REMARK_ID, innings=number, text=text)
            yield from self._pause(number)
        if innings.penalty_after:
            yield AwardRuns(at=self._after(self._pace.settling), innings=number, runs=innings.penalty_after)

    def _over(self, number: int, over: Over) -> Iterator[Step]:
        legal, last = 0, len(over.balls) - 1
        for nth, ball in enumerate(over.balls):
            self._id += ID_STEP
            self._bowled += 1
            self._after(self._gap_before(over, nth))
            label = Overs(over.number, legal + 1)
            first = replace(ball, outs=()) if ball.outs else ball
            step = PublishBall(at=self._at, id=self._id, innings=number, label=label, ball=first)
            yield step
            if ball.outs:
                yield replace(step, at=self._after(self._pace.wicket_delay), ball=ball)
            legal += ball.runs.is_legal
            if nth < last:
                yield from self._pause(number)

    def _pause(self, number: int) -> Iterator[Step]:
        """Announce the breaks that are due, and let their time pass."""
        while self._pauses and self._pauses[0].after <= self._bowled:
            pause = self._pauses.pop(0)
            yield Announce(at=self._after(self._pace.settling), text=pause.text)
            self._at += pause.seconds
            if pause.target:
                yield Retarget(at=self._at, innings=number, target=pause.target)

    def _gap_before(self, over: Over, nth: int) -> tuple[float, float]:
        if nth == 0:
            return self._pace.over if over.number else self._pace.ball
        return self._pace.after_wicket if over.balls[nth - 1].outs else self._pace.ball

    def _after(self, gap: tuple[float, float]) -> float:
        self._at += self._dice.uniform(*gap)
        return self._at
