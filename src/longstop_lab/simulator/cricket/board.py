"""The board of a match: all that the site shows of it now. Applying a step gives the changes for the truth log."""

from bisect import bisect_left, insort
from collections.abc import Sequence

from msgspec import Struct

from longstop.sports.cricket.model import InningsScore, Overs, Result, Score, Wicket
from longstop_lab.simulator.cricket.game import Ball, Game, Innings, Target
from longstop_lab.simulator.cricket.script import (
    Announce,
    AwardRuns,
    EndInnings,
    EndMatch,
    EndOver,
    PublishBall,
    Remark,
    Retarget,
    Step,
    WithdrawBall,
)
from longstop_lab.simulator.cricket.tally import Posted, overs_bowled, total_runs
from longstop_lab.simulator.sites.crex.wire import ball_code
from longstop_lab.simulator.truth import Change, Content, DeliveryTruth, InningsTruth, OverTruth, ResultTruth

_BLANK = InningsScore(runs=0, wickets=0, overs=Overs(0, 0))


class PostedOver(Struct, frozen=True, kw_only=True):
    """An over's end as it was first shown."""

    id: int
    innings: int
    over: int
    score: Score
    bowler: str


class Board:
    """The public view of one match."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.names = game.names
        #: The last ball's code, or the site's words at a break and at the end; empty before the start.
        self.headline = ""
        #: Whether the headline is words: the site blanks much of its state then.
        self.is_break = True
        self.result: Result | None = None
        self.balls_posted: dict[int, Posted] = {}
        self.overs_posted: dict[int, PostedOver] = {}
        self.remarks: dict[int, Remark] = {}
        #: When each ball was first shown and last changed, in seconds from the match's start.
        self.moments: dict[int, tuple[float, float]] = {}
        #: Grows with every step, so that a renderer can cache by it.
        self.version = 0
        #: +1 when a ball of an over that has ended changes: only then do earlier ends read otherwise.
        self.rewrites = 0
        self._places: list[list[int]] = [[] for _ in game.innings]
        self._over_places: dict[tuple[int, int], list[int]] = {}
        self._runs = [0 for _ in game.innings]
        self._wickets = [0 for _ in game.innings]
        self._over_ids: dict[tuple[int, int], int] = {}
        self._over_sums: dict[int, OverTruth] = {}
        self._closed: dict[int, InningsTruth] = {}
        self._begun = 0
        self._targets: dict[int, Target] = {}

    @property
    def current(self) -> int:
        """The innings under way or last played, from 1; 1 also before the start."""
        return max(1, self._begun)

    @property
    def begun(self) -> int:
        """How many innings have begun."""
        return self._begun

    def innings(self, number: int) -> Innings | None:
        return self.game.innings[number - 1] if number <= len(self.game.innings) else None

    def target(self, number: int) -> Target | None:
        """Return what is to get in an innings, as it stands now."""
        innings = self.innings(number)
        return self._targets.get(number, innings.target) if innings else None

    def score(self, number: int) -> InningsScore:
        """Return the score of an innings; zeros for one that has not begun."""
        if number > self._begun or not self._places[number - 1]:
            return _BLANK
        last = self.balls_posted[self._places[number - 1][-1]]
        return InningsScore(
            runs=self._runs[number - 1], wickets=self._wickets[number - 1], overs=self._overs(number, last)
        )

    def balls(self, number: int) -> Sequence[Posted]:
        """Return the balls of an innings in their order of play."""
        return [self.balls_posted[id_] for id_ in self._places[number - 1]] if self._begun else []

    def over_balls(self, number: int, over: int) -> list[Posted]:
        return [self.balls_posted[id_] for id_ in self._over_places.get((number, over), ())]

    def over_end(self, number: int, over: int) -> PostedOver | None:
        id_ = self._over_ids.get((number, over))
        return None if id_ is None else self.overs_posted[id_]

    def is_closed(self, number: int) -> bool:
        """Return whether the site has said that an innings is over."""
        return number in self._closed

    def apply(self, step: Step) -> list[Change]:
        self.version += 1
        match step:
            case PublishBall():
                return self._publish(step)
            case WithdrawBall():
                return self._withdraw(step)
            case EndOver():
                return self._end_over(step)
            case EndInnings():
                self._say(step.text)
                return self._close(step.innings)
            case EndMatch():
                return self._end_match(step.result)
            case Announce():
                self._say(step.text)
            case AwardRuns():
                self._runs[step.innings - 1] += step.runs
            case Retarget():
                self._targets[step.innings] = step.target
            case Remark():
                self.remarks[step.id] = step
        return []

    def _publish(self, step: PublishBall) -> list[Change]:
        known = self.balls_posted.get(step.id)
        if known and known.ball == step.ball:
            return []
        self.moments[step.id] = (self.moments[step.id][0] if known else step.at, step.at)
        if known is None:
            self._begun = max(self._begun, step.innings)
            insort(self._places[step.innings - 1], step.id)
            insort(self._over_places.setdefault((step.innings, step.label.over), []), step.id)
        else:
            self._count(step.innings, known.ball, -1)
        self._count(step.innings, step.ball, 1)
        score = known.score if known else f"{self._runs[step.innings - 1]}/{self._wickets[step.innings - 1]}"
        posted = Posted(id=step.id, innings=step.innings, label=step.label, ball=step.ball, score=score)
        self.balls_posted[step.id] = posted
        if self._is_news(step, is_new=known is None):
            self.headline, self.is_break = ball_code(step.ball), False
        change = Change(
            op="update" if known else "insert", kind="delivery", id=str(step.id), content=self._delivery(posted)
        )
        return [change, *self._follow(step.innings, step.label.over)]

    def _is_news(self, step: PublishBall, *, is_new: bool) -> bool:
        """Return whether the step is the last event; corrections of old balls and late wickets are not."""
        is_newest = step.id == self._places[self.current - 1][-1]
        is_in_play = not self.is_break and self.over_end(step.innings, step.label.over) is None
        return is_newest and (is_new or (is_in_play and bool(step.ball.outs)))

    def _withdraw(self, step: WithdrawBall) -> list[Change]:
        posted = self.balls_posted.pop(step.id)
        for places in (self._places[posted.innings - 1], self._over_places[posted.innings, posted.label.over]):
            del places[bisect_left(places, step.id)]
        self._count(posted.innings, posted.ball, -1)
        void = Change(op="void", kind="delivery", id=str(step.id), content=None)
        return [void, *self._follow(posted.innings, posted.label.over)]

    def _end_over(self, step: EndOver) -> list[Change]:
        score = self.score(step.innings)
        self.overs_posted[step.id] = PostedOver(
            id=step.id,
            innings=step.innings,
            over=step.over,
            score=Score(runs=score.runs, wickets=score.wickets),
            bowler=self.balls_posted[self._places[step.innings - 1][-1]].ball.bowler,
        )
        self._over_ids[step.innings, step.over] = step.id
        self.headline, self.is_break = "o", False
        self._over_sums[step.id] = self._over(self.overs_posted[step.id])
        return [Change(op="insert", kind="over", id=str(step.id), content=self._over_sums[step.id])]

    def _close(self, number: int) -> list[Change]:
        self._closed[number] = self._innings_truth(number)
        return [Change(op="insert", kind="innings", id=f"innings-{number}", content=self._closed[number])]

    def _end_match(self, result: Result) -> list[Change]:
        self.result = result
        self._say(result.text)
        closing = [] if self._begun in self._closed or not self._begun else self._close(self._begun)
        content = ResultTruth(outcome=result.outcome.value, text=result.text)
        return [*closing, Change(op="insert", kind="result", id="result", content=content)]

    def _say(self, text: str) -> None:
        self.headline, self.is_break = text, True

    def _follow(self, number: int, over: int) -> list[Change]:
        """Return what else a changed ball changes: the sum of its over, and its innings if that is closed."""
        changes: list[tuple[str, str, Content]] = []
        ended = self.over_end(number, over)
        self.rewrites += ended is not None
        if ended and self._over_sums[ended.id] != self._over(ended):
            self._over_sums[ended.id] = self._over(ended)
            changes.append(("over", str(ended.id), self._over_sums[ended.id]))
        if number in self._closed and self._closed[number] != self._innings_truth(number):
            self._closed[number] = self._innings_truth(number)
            changes.append(("innings", f"innings-{number}", self._closed[number]))
        return [Change(op="update", kind=kind, id=id_, content=content) for kind, id_, content in changes]

    def _count(self, number: int, ball: Ball, sign: int) -> None:
        self._runs[number - 1] += sign * ball.runs.total
        self._wickets[number - 1] += sign * ball.wickets

    def _overs(self, number: int, last: Posted) -> Overs:
        """Count by the last label: a ball that the feed has missed was bowled all the same."""
        if (number, last.label.over) in self._over_ids:
            return Overs(last.label.over + 1, 0)
        return overs_bowled(last.label.over, last.label.ball - (not last.ball.runs.is_legal))

    def _delivery(self, posted: Posted) -> DeliveryTruth:
        ball = posted.ball
        return DeliveryTruth(
            innings=posted.innings,
            over=posted.label.over,
            label=str(posted.label),
            runs=ball.runs,
            boundary=ball.boundary,
            batter=ball.batter,
            bowler=ball.bowler,
            wickets=tuple(
                Wicket(kind=out.kind, player_out=self.names[out.player], player_key=out.player) for out in ball.outs
            ),
        )

    def _over(self, ended: PostedOver) -> OverTruth:
        return OverTruth(
            innings=ended.innings,
            over=ended.over,
            runs=total_runs(self.over_balls(ended.innings, ended.over)),
            score=ended.score,
            bowler=ended.bowler,
        )

    def _innings_truth(self, number: int) -> InningsTruth:
        score = self.score(number)
        team = self.game.innings[number - 1].batting.key
        return InningsTruth(innings=number, team=team, runs=score.runs, wickets=score.wickets, overs=str(score.overs))
