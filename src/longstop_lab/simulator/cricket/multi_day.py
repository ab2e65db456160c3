"""Seeded Test matches: up to four innings in five days, with follow-on, declarations, and nights between."""

from random import Random

from msgspec.structs import replace

from longstop.sports.cricket.model import Overs, Result, ResultKind, Runs
from longstop_lab.simulator.cricket.game import Game, Innings, Pause, Target, won_by
from longstop_lab.simulator.cricket.innings import ALL_OUT, Conditions, Given, InningsInPlay, Squad
from longstop_lab.simulator.keys import invent_sides, match_key

DAYS = 5
OVERS_A_DAY = 90
FOLLOW_ON_LEAD = 200
_FOLLOW_ON_SHARE = 0.7
_INNINGS = 4
_NIGHT_SECONDS = 63_000
_BREAKS = {15: ("Drinks", 240), 30: ("Lunch", 2400), 45: ("Drinks", 240), 60: ("Tea", 1200), 75: ("Drinks", 240)}
#: How often a ball takes a wicket, by the pitch; and how much that differs between the two sides.
_WICKET_SHARES = (0.0115, 0.0185)
_SKILLS = (0.7, 1.4)
#: Overs that an innings break costs, and that a day loses to the weather when it loses some.
_BREAK_OVERS = 2
_LOST_OVERS = (6, 40)
_WEATHER_SHARE = 0.35
_INTERRUPTION_SHARE = 0.006

CONDITIONS = Conditions(
    given=(
        Given(700, Runs()),
        Given(165, Runs(batter=1)),
        Given(42, Runs(batter=2)),
        Given(10, Runs(batter=3)),
        Given(64, Runs(batter=4), 4),
        Given(1, Runs(batter=4)),
        Given(5, Runs(batter=6), 6),
        Given(4, Runs(wides=1)),
        Given(1, Runs(wides=5)),
        Given(6, Runs(noballs=1)),
        Given(1, Runs(noballs=1, batter=4), 4),
        Given(1, Runs(noballs=1, batter=1)),
        Given(4, Runs(byes=1)),
        Given(2, Runs(byes=4)),
        Given(9, Runs(legbyes=1)),
        Given(2, Runs(legbyes=4)),
        Given(0.3, Runs(penalty=5)),
        Given(0.2, Runs(byes=1, penalty=5)),
    ),
    wicket_share=sum(_WICKET_SHARES) / 2,
    overs_per_bowler=DAYS * OVERS_A_DAY,
)


def play_test(seed: int, index: int) -> Game:
    """Return the final truth of the match number `index` of the seed."""
    return _Match(index, Random(f"test {seed} {index}")).play()


class _Days:
    """The clock of five days, in overs."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice
        self._lengths = [self._length() for _ in range(DAYS)]
        self._day = 0
        self._over = 0

    @property
    def overs_left(self) -> int:
        return sum(self._lengths[self._day :]) - self._over

    def after_over(self) -> list[tuple[str, float]]:
        """Count an over; return the breaks that come now."""
        self._over += 1
        if self._over < self._lengths[self._day]:
            due = _BREAKS.get(self._over)
            return [due] if due else []
        is_short = self._lengths[self._day] < OVERS_A_DAY - 2 * _BREAK_OVERS
        self._day, self._over = self._day + 1, 0
        early = [(self._dice.choice(("Bad light", "Rain")), 2400.0)] if is_short else []
        return [*early, ("Stumps", _NIGHT_SECONDS)] if self._day < DAYS else early

    def lose(self, overs: int) -> None:
        """Take overs from today, as far as there are some."""
        if self._day < DAYS:
            self._lengths[self._day] = max(self._over + 1, self._lengths[self._day] - overs)

    def _length(self) -> int:
        is_wet = self._dice.random() < _WEATHER_SHARE
        return OVERS_A_DAY - (self._dice.randint(*_LOST_OVERS) if is_wet else 0)


class _Match:
    """A match under way."""

    def __init__(self, index: int, dice: Random) -> None:
        self._index = index
        self._dice = dice
        self._sides = invent_sides(index, dice)
        self._squads = (Squad(self._sides[0]), Squad(self._sides[1]))
        pitch = dice.uniform(*_WICKET_SHARES)
        self._conditions = tuple(replace(CONDITIONS, wicket_share=pitch * dice.uniform(*_SKILLS)) for _ in range(2))
        self._days = _Days(dice)
        self._innings: list[Innings] = []
        self._totals = [0, 0]
        #: Whether the last innings ended by itself, not with the match's time.
        self._is_closed = False
        #: What a side wants before it declares: in the first innings runs, later a lead.
        self._wanted = (dice.randint(430, 650), dice.randint(120, 300), dice.randint(320, 450))

    def play(self) -> Game:
        while (result := self._result()) is None:
            self._innings.append(self._play_innings(self._next_to_bat()))
        return Game(
            key=match_key(self._index),
            number=self._index + 1,
            match_format="TEST",
            sides=self._sides,
            innings=tuple(self._innings),
            result=result,
        )

    def _next_to_bat(self) -> int:
        """Return which side bats: they take turns, unless the second follows on."""
        if len(self._innings) == 2:
            behind = self._totals[0] - self._totals[1]
            return 1 if behind >= FOLLOW_ON_LEAD and self._dice.random() < _FOLLOW_ON_SHARE else 0
        if len(self._innings) == 3:
            return 1 - self._who(self._innings[-1])
        return len(self._innings)

    def _play_innings(self, side: int) -> Innings:
        batting, bowling = self._squads[side], self._squads[1 - side]
        target = self._target(side)
        crease = InningsInPlay(
            *(batting, bowling, self._conditions[side], self._dice),
            overs=self._days.overs_left,
            needed=target.runs if target else None,
        )
        pauses: list[Pause] = []
        is_declared, rest = False, 0.0
        while crease.is_open and not is_declared:
            pauses += self._interruption(crease)
            crease.play_over()
            breaks = self._days.after_over()
            crease.limit = len(crease.overs) + self._days.overs_left
            is_declared = crease.is_open and self._declares(crease, side)
            if crease.is_open and not is_declared:
                pauses += [Pause(after=crease.balls, text=text, seconds=seconds) for text, seconds in breaks]
            else:
                rest = sum(seconds for _, seconds in breaks)
        # An interruption in an over that the innings did not live to see is none.
        pauses = [pause for pause in pauses if pause.after < crease.balls]
        self._days.lose(_BREAK_OVERS)
        self._totals[side] += crease.runs
        self._is_closed = crease.is_finished or is_declared
        return Innings(
            batting=batting.side,
            bowling=bowling.side,
            overs=tuple(crease.overs),
            target=target,
            pauses=tuple(pauses),
            is_declared=is_declared,
            rest_seconds=rest,
        )

    def _interruption(self, crease: InningsInPlay) -> list[Pause]:
        """Send the players off in the middle of an over, now and then; it costs some overs of the day."""
        if self._dice.random() >= _INTERRUPTION_SHARE:
            return []
        text, seconds = self._dice.choice(("Rain", "Bad light")), self._dice.uniform(600, 3000)
        self._days.lose(int(seconds // 240))
        crease.limit = len(crease.overs) + self._days.overs_left
        return [Pause(after=crease.balls + self._dice.randint(1, 5), text=text, seconds=seconds)]

    def _declares(self, crease: InningsInPlay, side: int) -> bool:
        nth = len(self._innings)
        if nth >= len(self._wanted):
            return False
        lead = self._totals[side] - self._totals[1 - side] + crease.runs
        is_late = nth == 2 and lead > 150 and lead > 3.4 * self._days.overs_left > 100
        return lead >= self._wanted[nth] or is_late

    def _target(self, side: int) -> Target | None:
        if len(self._innings) < _INNINGS - 1:
            return None
        runs = self._totals[1 - side] - self._totals[side] + 1
        return Target(runs=runs, overs=Overs(self._days.overs_left, 0))

    def _who(self, innings: Innings) -> int:
        return self._sides.index(innings.batting)

    def _result(self) -> Result | None:
        """Return the result, or `None` while there is something to play for."""
        if not self._innings:
            return None
        last = self._innings[-1]
        side = self._who(last)
        batting, bowling = self._sides[side].name, self._sides[1 - side].name
        lead = self._totals[side] - self._totals[1 - side]
        match len(self._innings), self._is_closed:
            case 3, True if lead < 0:
                return Result(outcome=ResultKind.WON, text=won_by(bowling, runs=-lead, by_an_innings=True))
            case 4, True if lead > 0:
                return Result(outcome=ResultKind.WON, text=won_by(batting, wickets=ALL_OUT - last.wickets))
            case 4, True if lead < 0:
                return Result(outcome=ResultKind.WON, text=won_by(bowling, runs=-lead))
            case 4, True:
                return Result(outcome=ResultKind.TIE, text="Match tied")
        return Result(outcome=ResultKind.DRAW, text="Match drawn") if self._days.overs_left <= 0 else None
