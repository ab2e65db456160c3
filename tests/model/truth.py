"""What really happened: the balls of one match as its scorer has them, and what they add up to."""

from collections.abc import Mapping
from copy import copy

import msgspec
from msgspec import Struct

from longstop.sports.cricket.model import Delivery, InningsScore, Overs, OverSummary, Runs, Score, Wicket

#: What is written on a ball, and what that means: independent of the parser, so that its mistakes are found.
RUNS: Mapping[str, Runs] = {
    "0": Runs(),
    "1": Runs(batter=1),
    "2": Runs(batter=2),
    "4": Runs(batter=4),
    "6": Runs(batter=6),
    "b": Runs(byes=1),
    "2lb": Runs(legbyes=2),
    "wd": Runs(wides=1),
    "nb": Runs(noballs=1),
    "4nb": Runs(batter=4, noballs=1),
}
#: Room between two balls for inserted ones, their wickets and an over's end.
ID_STEP = 100
BALLS_PER_OVER = 6
#: Labels have one digit for the ball.
MOST_IN_OVER = 8
MOST_WICKETS = 9

Place = tuple[int, int]


class Ball(Struct, frozen=True, kw_only=True):
    id: int
    innings: int
    over: int
    value: str
    is_out: bool = False

    @property
    def place(self) -> Place:
        return self.innings, self.over

    @property
    def runs(self) -> Runs:
        return RUNS[self.value]


class People(Struct, frozen=True, kw_only=True):
    """The players of a match in which the same two always face each other, as one site calls them."""

    batter: str
    bowler: str
    out: Wicket
    #: Batting first, batting second.
    sides: tuple[str, str]


class Truth:
    """One match. Corrections make it another truth; a copy of it is what an old page shows."""

    def __init__(self, people: People) -> None:
        self.people = people
        self.balls: list[Ball] = []
        #: The id of an over's end, for those that have ended.
        self.ends: dict[Place, int] = {}
        self.innings = 1
        #: Empty in play, else the site's words for a break or result.
        self.headline = ""
        #: How much the scoreboard is off.
        self.extra_runs = 0
        self._last_id = 0

    def copy(self) -> "Truth":
        twin = copy(self)
        twin.balls, twin.ends = list(self.balls), dict(self.ends)
        return twin

    # --- what scorers do ---

    def bowl(self, value: str) -> Ball:
        """Bowl a ball at the end of the innings under way; six legal ones end an over."""
        self.headline = ""
        mine = [ball.over for ball in self.balls if ball.innings == self.innings]
        over = mine[-1] if mine else 0
        if (self.innings, over) in self.ends:
            over += 1
        self._last_id += ID_STEP
        ball = Ball(id=self._last_id, innings=self.innings, over=over, value=value)
        self.balls.append(ball)
        if self._legal(ball.place) >= BALLS_PER_OVER:
            self.ends[ball.place] = ball.id + ID_STEP - 1
        return ball

    def insert(self, after: Ball, value: str) -> None:
        """Put a ball right behind another one of the same over, if there is room."""
        taken = {ball.id for ball in self.balls}
        free = (after.id + step for step in range(10, ID_STEP - 10, 10) if after.id + step not in taken)
        id_ = next(free, None)
        if id_ is not None and self._legal(after.place) < MOST_IN_OVER:
            self.balls.append(Ball(id=id_, innings=after.innings, over=after.over, value=value))
            self.balls.sort(key=lambda ball: ball.id)

    def may_remove(self, ball: Ball) -> bool:
        """Return whether another ball is left in the over: a whole over gone is a gap, and no correction."""
        return sum(other.place == ball.place for other in self.balls) > 1

    def remove(self, ball: Ball) -> None:
        self.balls.remove(ball)

    def change(self, ball: Ball, **changes: object) -> Ball:
        changed = msgspec.structs.replace(ball, **changes)
        self.balls[self.balls.index(ball)] = changed
        return changed

    def renumber(self, ball: Ball) -> None:
        """Give a ball another id at the same place."""
        if ball.id + 5 not in {other.id for other in self.balls} and ball.id % 10 == 0:
            self.change(ball, id=ball.id + 5)

    def may_fall(self, innings: int) -> bool:
        return sum(ball.is_out for ball in self.balls if ball.innings == innings) < MOST_WICKETS

    # --- what it adds up to ---

    def deliveries(self) -> dict[int, Delivery]:
        """Return every ball by its id, in the order of play."""
        legal: dict[Place, int] = {}
        shown: dict[int, Delivery] = {}
        for ball in self.balls:
            before = legal.get(ball.place, 0)
            legal[ball.place] = before + ball.runs.is_legal
            shown[ball.id] = Delivery(
                label=Overs(ball.over, before + 1),
                runs=ball.runs,
                boundary=ball.runs.batter if ball.runs.batter in (4, 6) else None,
                batter=self.people.batter,
                bowler=self.people.bowler,
                wickets=(self.people.out,) if ball.is_out else (),
            )
        return shown

    def summaries(self, *, counts_balls: bool) -> dict[Place, OverSummary]:
        """Return the overs that have ended; not every site counts their balls."""
        return {
            place: OverSummary(
                runs=sum(ball.runs.total for ball in self.balls if ball.place == place),
                score=self._score_after(place),
                bowler=self.people.bowler,
                balls=self._legal(place) if counts_balls else None,
            )
            for place in self.ends
        }

    def figures(self) -> dict[int, InningsScore]:
        """Return what a scoreboard that is right shows of each innings."""
        return {innings: self._figures(innings) for innings in sorted({ball.innings for ball in self.balls})}

    def board(self) -> dict[int, InningsScore]:
        """Return what the scoreboard shows."""
        return {
            innings: msgspec.structs.replace(score, runs=max(0, score.runs + self.extra_runs))
            for innings, score in self.figures().items()
        }

    def _figures(self, innings: int) -> InningsScore:
        mine = [ball for ball in self.balls if ball.innings == innings]
        place = mine[-1].place
        return InningsScore(
            runs=sum(ball.runs.total for ball in mine),
            wickets=sum(ball.is_out for ball in mine),
            overs=Overs(place[1] + 1, 0) if place in self.ends else Overs(place[1], self._legal(place)),
        )

    def _score_after(self, place: Place) -> Score:
        until = [ball for ball in self.balls if ball.innings == place[0] and ball.over <= place[1]]
        return Score(runs=sum(ball.runs.total for ball in until), wickets=sum(ball.is_out for ball in until))

    def _legal(self, place: Place) -> int:
        return sum(ball.runs.is_legal for ball in self.balls if ball.place == place)
