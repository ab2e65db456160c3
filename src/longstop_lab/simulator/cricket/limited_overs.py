"""Seeded limited-overs matches: T20 in sun and rain, and one-day; a tie goes to super overs."""

from random import Random

from msgspec import Struct

from longstop.sports.cricket.model import Overs, Result, ResultKind, Runs
from longstop_lab.simulator.cricket.game import Game, Innings, Pause, Target, won_by
from longstop_lab.simulator.cricket.innings import ALL_OUT, Conditions, Given, InningsInPlay, Squad
from longstop_lab.simulator.cricket.rain import Shower, Weather, forecast, had, par, resources
from longstop_lab.simulator.keys import invent_sides, match_key

_SUPER_OVER_WICKETS = 2
_MAX_INNINGS = 8
#: Chance makes one match in two hundred a tie; a site that must show super overs needs more.
_TIE_SHARE = 0.03
_DRINKS_SHARE = 0.5
_DRINKS_SECONDS = 240
_IMPACT_SHARE = 0.5
_ODI_RAIN_SHARE = 0.12
_METHOD = " (D/L method)"
_NO_RESULT = Result(outcome=ResultKind.NO_RESULT, text="No result")

_EXTRAS = (
    Given(30, Runs(wides=1)),
    Given(4, Runs(wides=2)),
    Given(1, Runs(wides=3)),
    Given(4, Runs(wides=5)),
    Given(3, Runs(noballs=1)),
    Given(3, Runs(noballs=1, batter=1)),
    Given(2, Runs(noballs=1, batter=4), 4),
    Given(2, Runs(noballs=1, batter=6), 6),
    Given(1, Runs(noballs=1, legbyes=2)),
    Given(1, Runs(noballs=1, byes=1)),
    Given(1, Runs(noballs=2)),
    Given(5, Runs(byes=1)),
    Given(2, Runs(byes=4)),
    Given(14, Runs(legbyes=1)),
    Given(3, Runs(legbyes=2)),
    Given(2, Runs(legbyes=4)),
    Given(0.5, Runs(penalty=5)),
    Given(0.5, Runs(legbyes=1, penalty=5)),
    Given(0.5, Runs(batter=1, penalty=5)),
    Given(0.5, Runs(wides=1, penalty=5)),
)


def _off_the_bat(*, dots: float, ones: float, twos: float, fours: float, sixes: float) -> tuple[Given, ...]:
    return (
        Given(dots, Runs()),
        Given(ones, Runs(batter=1)),
        Given(twos, Runs(batter=2)),
        Given(7, Runs(batter=3)),
        Given(fours, Runs(batter=4), 4),
        Given(3, Runs(batter=4)),
        Given(1, Runs(batter=5)),
        Given(sixes, Runs(batter=6), 6),
    )


class Rules(Struct, frozen=True, kw_only=True):
    """What a format says."""

    name: str
    overs: int
    conditions: Conditions
    #: After these overs there are drinks, as a rule.
    drinks: tuple[int, ...]
    #: Fewer overs for the second side make no result.
    least_overs: int
    #: What a side makes, as a rule.
    usual: int
    has_impact_players: bool = False


T20 = Rules(
    name="T20",
    overs=20,
    conditions=Conditions(
        given=_off_the_bat(dots=320, ones=370, twos=70, fours=110, sixes=52) + _EXTRAS,
        wicket_share=0.052,
        overs_per_bowler=4,
    ),
    drinks=(10,),
    least_overs=5,
    usual=160,
    has_impact_players=True,
)
ODI = Rules(
    name="ODI",
    overs=50,
    conditions=Conditions(
        given=_off_the_bat(dots=480, ones=350, twos=55, fours=75, sixes=14) + _EXTRAS,
        wicket_share=0.028,
        overs_per_bowler=10,
    ),
    drinks=(17, 34),
    least_overs=20,
    usual=245,
)


def play_t20(seed: int, index: int) -> Game:
    """Return the final truth of the match number `index` of the seed."""
    return _Match(T20, index, Random(f"game {seed} {index}")).play(Weather(overs=T20.overs))


def play_rainy_t20(seed: int, index: int) -> Game:
    dice = Random(f"rainy game {seed} {index}")
    return _Match(T20, index, dice).play(forecast(T20.overs, T20.least_overs, dice))


def play_odi(seed: int, index: int) -> Game:
    dice = Random(f"one-day game {seed} {index}")
    is_wet = dice.random() < _ODI_RAIN_SHARE
    weather = forecast(ODI.overs, ODI.least_overs, dice) if is_wet else Weather(overs=ODI.overs)
    return _Match(ODI, index, dice).play(weather)


class _Played(Struct, frozen=True, kw_only=True):
    """An innings, and what its side had to spend on it."""

    innings: Innings
    runs: int
    had: float
    #: Whether rain ended it.
    is_washed_out: bool


class _Batting:
    """One innings under whatever weather comes."""

    def __init__(self, crease: InningsInPlay, rules: Rules, dice: Random, *, opened: _Played | None = None) -> None:
        self._crease = crease
        self._rules = rules
        self._dice = dice
        #: The innings that is chased.
        self._opened = opened
        self._overs = crease.limit
        self.pauses: list[Pause] = []
        self.had = resources(crease.limit, 0)
        self.is_washed_out = False

    def play(self, shower: Shower | None) -> None:
        while self._crease.is_open:
            self._crease.play_over()
            self._after_over(shower)

    def _after_over(self, shower: Shower | None) -> None:
        done = len(self._crease.overs)
        if not self._crease.is_open:
            return
        if shower and done == shower.after:
            self._rain(shower)
        elif done in self._rules.drinks and self._dice.random() < _DRINKS_SHARE:
            self.pauses.append(Pause(after=self._crease.balls, text="Drinks", seconds=_DRINKS_SECONDS))

    def _rain(self, shower: Shower) -> None:
        crease = self._crease
        self.is_washed_out = shower.limit <= shower.after
        if self.is_washed_out and self._opened:
            crease.cut_short(self._dice.randint(1, len(crease.overs[-1].balls)))
        self.had = had(self._overs, after=shower.after, wickets=crease.wickets, limit=shower.limit)
        crease.limit = shower.limit
        target = None if self.is_washed_out or self._opened is None else self._revise(self._opened)
        self.pauses.append(Pause(after=crease.balls, text="Rain", seconds=shower.seconds, target=target))

    def _revise(self, opened: _Played) -> Target:
        """Return the target that is left when overs are lost, and let the crease know."""
        level = par(opened.runs, opened.had, self.had, self._rules.usual)
        runs = max(level, self._crease.runs) + 1
        self._crease.needed = runs - self._crease.runs
        return Target(runs=runs, overs=Overs(self._crease.limit, 0))


class _Match:
    """A match under way."""

    def __init__(self, rules: Rules, index: int, dice: Random) -> None:
        self._rules = rules
        self._index = index
        self._dice = dice
        self._sides = invent_sides(index, dice)
        self._squads = (Squad(self._sides[0]), Squad(self._sides[1]))

    def play(self, weather: Weather) -> Game:
        opened = self._open(weather)
        if weather.is_over_after_first and opened.is_washed_out:
            return self._game([opened.innings], _NO_RESULT)
        if self._rules.has_impact_players:
            self._bring_impact_players()
        chased = self._chase(weather, opened)
        innings = [opened.innings, chased.innings]
        if chased.is_washed_out:
            return self._game(innings, self._washed_out(opened, chased))
        while _is_level(innings[-1]) and len(innings) < _MAX_INNINGS:
            innings += self._super_over(innings[-1])
        return self._game(innings, _result(innings))

    def _open(self, weather: Weather) -> _Played:
        first, second = self._squads
        crease = self._crease(first, second, overs=weather.overs)
        batting = _Batting(crease, self._rules, self._dice)
        if weather.delay_seconds:
            batting.pauses.append(Pause(after=0, text="Rain", seconds=weather.delay_seconds))
        batting.play(weather.first)
        return _played(batting, crease, first, second, None)

    def _chase(self, weather: Weather, opened: _Played) -> _Played:
        first, second = self._squads
        # A shower that came too late to meet the first innings has taken nothing from the second.
        has_lost_overs = weather.first is not None and any(pause.text == "Rain" for pause in opened.innings.pauses)
        overs = weather.first.limit if weather.first and has_lost_overs else weather.overs
        level = par(opened.runs, opened.had, resources(overs, 0), self._rules.usual)
        target = Target(runs=level + 1, overs=Overs(overs, 0))
        crease = self._crease(second, first, overs=overs, needed=target.runs)
        crease.seeks_tie = self._dice.random() < _TIE_SHARE
        batting = _Batting(crease, self._rules, self._dice, opened=opened)
        batting.play(weather.second)
        return _played(batting, crease, second, first, target)

    def _crease(
        self, batting: Squad, bowling: Squad, *, overs: int, wickets: int = ALL_OUT, needed: int | None = None
    ) -> InningsInPlay:
        conditions = self._rules.conditions
        return InningsInPlay(batting, bowling, conditions, self._dice, overs=overs, wickets=wickets, needed=needed)

    def _washed_out(self, opened: _Played, chased: _Played) -> Result:
        if len(chased.innings.overs) < self._rules.least_overs:
            return _NO_RESULT
        level = par(opened.runs, opened.had, chased.had, self._rules.usual)
        ahead = chased.runs - level
        if not ahead:
            return Result(outcome=ResultKind.TIE, text=f"Match tied{_METHOD}")
        winner = (chased if ahead > 0 else opened).innings.batting
        return Result(outcome=ResultKind.WON, text=won_by(winner.name, runs=abs(ahead)) + _METHOD)

    def _bring_impact_players(self) -> None:
        """Let each side bring on an impact player: a bowler for a batter or the reverse."""
        has_batted, has_bowled = self._squads
        if self._dice.random() < _IMPACT_SHARE:
            has_batted.bring_on(has_batted.eleven[2], place=len(has_batted.eleven) - 1)
        if self._dice.random() < _IMPACT_SHARE:
            has_bowled.bring_on(has_bowled.eleven[-1], place=4)

    def _super_over(self, last: Innings) -> list[Innings]:
        """Play one more over each; the side that batted last starts."""
        squads = {squad.side.key: squad for squad in self._squads}
        opener, chaser = squads[last.batting.key], squads[last.bowling.key]
        opened = self._one_over(opener, chaser, None)
        target = Target(runs=opened.runs + 1, overs=Overs(1, 0))
        return [opened, self._one_over(chaser, opener, target)]

    def _one_over(self, batting: Squad, bowling: Squad, target: Target | None) -> Innings:
        needed = target.runs if target else None
        crease = self._crease(batting, bowling, overs=1, wickets=_SUPER_OVER_WICKETS, needed=needed)
        crease.play_over()
        return Innings(
            batting=batting.side,
            bowling=bowling.side,
            overs=tuple(crease.overs),
            target=target,
            is_super_over=True,
        )

    def _game(self, innings: list[Innings], result: Result) -> Game:
        return Game(
            key=match_key(self._index),
            number=self._index + 1,
            match_format=self._rules.name,
            sides=self._sides,
            innings=tuple(innings),
            result=result,
        )


def _played(batting: _Batting, crease: InningsInPlay, side: Squad, other: Squad, target: Target | None) -> _Played:
    innings = Innings(
        batting=side.side,
        bowling=other.side,
        overs=tuple(crease.overs),
        target=target,
        pauses=tuple(batting.pauses),
    )
    return _Played(innings=innings, runs=crease.runs, had=batting.had, is_washed_out=batting.is_washed_out)


def _is_level(chase: Innings) -> bool:
    target = chase.final_target
    return target is not None and chase.runs == target.runs - 1


def _result(innings: list[Innings]) -> Result:
    opened, chased = innings[-2:]
    target = chased.final_target
    missing = target.runs - 1 - chased.runs if target else 0
    winner = chased if missing < 0 else opened
    if not missing:
        return Result(outcome=ResultKind.TIE, text="Match tied")
    if opened.is_super_over:
        return Result(outcome=ResultKind.TIE, text=f"Match tied ({winner.batting.name} won the Super Over)")
    method = _METHOD if target and target.runs != opened.runs + 1 else ""
    if winner is chased:
        text = won_by(winner.batting.name, wickets=ALL_OUT - chased.wickets)
    else:
        text = won_by(winner.batting.name, runs=missing)
    return Result(outcome=ResultKind.WON, text=text + method)
