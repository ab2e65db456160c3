"""Adds the mistakes of a site to a script; each is corrected before the result.

Labels stay correct: a mistake about the legality of a ball is corrected before the next ball.
"""

from bisect import bisect
from collections.abc import Callable, Sequence
from operator import attrgetter
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from longstop.sports.cricket.model import Dismissal, Runs
from longstop_lab.simulator.cricket.game import Ball, Out
from longstop_lab.simulator.cricket.script import (
    GHOST_ID,
    Announce,
    EndInnings,
    PublishBall,
    Script,
    Step,
    WithdrawBall,
)

#: The share of balls that are first published wrong.
MISTAKE_SHARE = 0.016
#: The share of mistakes that are corrected only after the innings, if they may wait.
AFTER_INNINGS_SHARE = 0.15


#: With more wickets down, no batter is given out by mistake.
_MOST_FALLEN = 7


class _Place(Struct, frozen=True, kw_only=True):
    """A ball's steps and the moments around it."""

    #: The ball as first published, and a second time when a wicket follows.
    steps: tuple[PublishBall, ...]
    #: The next ball of the same over; `None` for the last one, and when a break comes between.
    next_in_over: PublishBall | None
    #: When its over's last ball is published.
    over_until: float
    innings_until: float
    match_until: float
    #: How many wickets lie before it in the innings, and when the next one falls.
    fallen: int
    next_fall_at: float

    @property
    def first(self) -> PublishBall:
        return self.steps[0]

    @property
    def final(self) -> PublishBall:
        return self.steps[-1]


_Mistake = Callable[[_Place, Random], list[Step] | None]


def with_mistakes(script: Script, dice: Random, share: float = MISTAKE_SHARE) -> Script:
    """Return the script with wrong first publications and their corrections; it ends in the same state."""
    *before, end = script
    steps: list[Step] = [step for step in before if not isinstance(step, PublishBall)]
    ground = _Ground(script)
    for nth, right in enumerate(ground.balls):
        steps += (_make_mistake(ground.place(nth), dice) if dice.random() < share else None) or right
    # The latest corrections still come before the result.
    return (*sorted(steps, key=attrgetter("at")), end)


def _make_mistake(place: _Place, dice: Random) -> list[Step] | None:
    mistakes: Sequence[_Mistake] = _WICKET_MISTAKES if place.final.ball.outs else _BALL_MISTAKES
    return dice.choice(mistakes)(place, dice)


def _wrong_runs(place: _Place, dice: Random) -> list[Step]:
    wrong = replace(place.first, ball=_other_runs(place.final.ball, dice))
    return [wrong, _mended(place, dice)]


def _there_and_back(place: _Place, dice: Random) -> list[Step]:
    """A right value that is changed to a wrong one and back: three versions, two of them equal."""
    back = _mended(place, dice)
    wrong_at = place.first.at + (back.at - place.first.at) / 2
    return [place.first, replace(place.first, at=wrong_at, ball=_other_runs(place.final.ball, dice)), back]


def _wrong_kind(place: _Place, dice: Random) -> list[Step] | None:
    """Runs off the bat called leg byes: no total changes, so it is corrected within the over."""
    runs = place.final.ball.runs
    if place.next_in_over is None or not runs.batter or runs.total != runs.batter or place.final.ball.boundary:
        return None
    wrong = replace(place.first, ball=replace(place.final.ball, runs=Runs(legbyes=runs.batter)))
    return [wrong, replace(place.final, at=_before(place.next_in_over.at, place, dice))]


def _wrong_legality(place: _Place, dice: Random) -> list[Step] | None:
    if place.next_in_over is None:
        return None
    is_legal = place.final.ball.runs.is_legal
    wrong_ball = replace(place.final.ball, runs=Runs(wides=1) if is_legal else Runs(batter=1), boundary=None)
    return [replace(place.first, ball=wrong_ball), replace(place.final, at=_before(place.next_in_over.at, place, dice))]


def _missed(place: _Place, dice: Random) -> list[Step] | None:
    """A ball that the feed shows only when later ones are there; never the last of an over, whose label counts."""
    if place.next_in_over is None:
        return None
    latest = min(place.innings_until, place.next_in_over.at + 300)
    return [replace(place.final, at=dice.uniform(place.next_in_over.at, latest))]


def _ghost(place: _Place, dice: Random) -> list[Step] | None:
    if place.next_in_over is None:
        return None
    until = place.next_in_over.at
    shown_at = place.final.at + (until - place.final.at) * 0.3
    looks_legal = dice.random() < 0.5
    ghost = PublishBall(
        at=shown_at,
        id=place.final.id + GHOST_ID,
        innings=place.final.innings,
        label=place.next_in_over.label,
        ball=replace(place.next_in_over.ball, runs=Runs(batter=1) if looks_legal else Runs(wides=1), boundary=None),
    )
    withdrawn_at = shown_at + (until - shown_at) * 0.6 if looks_legal else _mending_at(place, dice)
    return [*place.steps, ghost, WithdrawBall(at=max(withdrawn_at, shown_at), id=ghost.id)]


def _overturned_wicket(place: _Place, dice: Random) -> list[Step] | None:
    """A wicket that did not fall; it is corrected before the next one, so that no board shows eleven."""
    if not place.final.ball.runs.is_legal or place.fallen > _MOST_FALLEN:
        return None
    kind = dice.choice((Dismissal.CAUGHT, Dismissal.LBW, Dismissal.BOWLED))
    given = replace(place.final.ball, outs=(Out(kind=kind, player=place.final.ball.batter),))
    back = replace(place.final, at=min(_mending_at(place, dice), place.next_fall_at))
    return [place.first, replace(place.first, at=place.first.at + (back.at - place.first.at) * 0.3, ball=given), back]


def _late_wicket(place: _Place, dice: Random) -> list[Step]:
    return [place.first, replace(place.final, at=max(place.final.at, _mending_at(place, dice)))]


def _wrong_dismissal(place: _Place, dice: Random) -> list[Step] | None:
    """No total changes here either, so it is corrected within the over."""
    if place.over_until <= place.final.at:
        return None
    first_out, *others = place.final.ball.outs
    kinds = [kind for kind in (Dismissal.CAUGHT, Dismissal.STUMPED, Dismissal.RUN_OUT) if kind is not first_out.kind]
    wrong = replace(place.final.ball, outs=(replace(first_out, kind=dice.choice(kinds)), *others))
    corrected_at = dice.uniform(place.final.at, place.over_until)
    return [place.first, replace(place.final, ball=wrong), replace(place.final, at=corrected_at)]


_BALL_MISTAKES: Sequence[_Mistake] = (
    _wrong_runs,
    _wrong_runs,
    _there_and_back,
    _wrong_kind,
    _wrong_legality,
    _missed,
    _missed,
    _ghost,
    _ghost,
    _overturned_wicket,
)
_WICKET_MISTAKES: Sequence[_Mistake] = (_late_wicket, _wrong_dismissal)


def _other_runs(ball: Ball, dice: Random) -> Ball:
    """Return the ball with another number of runs, of the same kind where it has extras."""
    runs = ball.runs
    if runs.wides or runs.noballs or runs.byes or runs.legbyes:
        return replace(ball, runs=replace(runs, penalty=runs.penalty + 5))
    other = dice.choice([value for value in (0, 1, 2, 3, 4) if value != runs.batter])
    return replace(ball, runs=replace(runs, batter=other), boundary=4 if other == 4 else None)


def _mended(place: _Place, dice: Random) -> PublishBall:
    return replace(place.final, at=_mending_at(place, dice))


def _mending_at(place: _Place, dice: Random) -> float:
    """Return a moment after the ball: mostly within minutes, sometimes after the innings, always before the result."""
    after = place.final.at
    if dice.random() < AFTER_INNINGS_SHARE:
        latest = min(place.match_until, place.innings_until + 600)
        return dice.uniform(max(after, place.innings_until), latest)
    return dice.uniform(after + 3, max(after + 3, min(place.match_until, after + dice.choice((30, 120, 600)))))


def _before(until: float, place: _Place, dice: Random) -> float:
    return dice.uniform(place.final.at, until)


class _Ground:
    """A faultless script, seen ball by ball."""

    def __init__(self, script: Script) -> None:
        #: Each ball's steps, in the order of play.
        self.balls = _grouped(script)
        self._innings_ends = {step.innings: step.at for step in script if isinstance(step, EndInnings)}
        self._over_ends = {_over_of(steps[0]): steps[0].at for steps in self.balls}
        self._breaks = [step.at for step in script if isinstance(step, Announce)]
        self._until = script[-1].at
        self._falls: dict[int, list[float]] = {}
        for steps in self.balls:
            if steps[-1].ball.outs:
                self._falls.setdefault(steps[0].innings, []).append(steps[0].at)

    def place(self, nth: int) -> _Place:
        """Return a ball with what surrounds it."""
        steps = self.balls[nth]
        first = steps[0]
        over = _over_of(first)
        falls = self._falls.get(first.innings, [])
        fallen = bisect(falls, first.at)
        innings_until = self._innings_ends.get(first.innings, self._until)
        follower = self.balls[nth + 1][0] if nth + 1 < len(self.balls) else None
        has_next = follower is not None and _over_of(follower) == over and not self._has_break(first, follower)
        return _Place(
            steps=steps,
            next_in_over=follower if has_next else None,
            over_until=self._over_ends[over],
            innings_until=innings_until,
            match_until=self._until,
            fallen=fallen,
            next_fall_at=falls[fallen] if fallen < len(falls) else innings_until,
        )

    def _has_break(self, ball: PublishBall, follower: PublishBall) -> bool:
        return bisect(self._breaks, ball.at) != bisect(self._breaks, follower.at)


def _over_of(step: PublishBall) -> tuple[int, int]:
    return step.innings, step.label.over


def _grouped(script: Script) -> list[tuple[PublishBall, ...]]:
    groups: dict[int, tuple[PublishBall, ...]] = {}
    for step in script:
        if isinstance(step, PublishBall):
            groups[step.id] = (*groups[step.id], step) if step.id in groups else (step,)
    return list(groups.values())
