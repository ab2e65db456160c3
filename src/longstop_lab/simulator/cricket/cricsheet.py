"""Real ball-by-ball files (Cricsheet JSON) as games to replay.

A file does not say when a day ended: a match of several days has a night after every `OVERS_A_DAY`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from longstop.errors import UsageError
from longstop.sports.cricket.model import Dismissal, Overs, Result, ResultKind, Runs
from longstop_lab.simulator.cricket.game import Ball, Game, Innings, Out, Over, Pause, Player, Side, Target, won_by
from longstop_lab.simulator.cricket.multi_day import OVERS_A_DAY
from longstop_lab.simulator.keys import match_key, match_keys

#: What stands under another name there; "caught and bowled" is a catch, and every retirement is one class.
_OTHER_NAMES = {
    "caught and bowled": Dismissal.CAUGHT,
    "retired hurt": Dismissal.RETIRED,
    "retired not out": Dismissal.RETIRED,
    "retired out": Dismissal.RETIRED,
}
#: Short: no ball is bowled, so a replay gains nothing from a real one.
_NIGHT_SECONDS = 600.0
#: No wicket on the scoreboard.
_NOT_COUNTED = ("retired hurt", "retired not out")


class _Wicket(Struct):
    player_out: str
    kind: str


class _Delivery(Struct):
    batter: str
    bowler: str
    non_striker: str
    runs: dict[str, int | bool]
    extras: dict[str, int] = field(default_factory=dict)
    wickets: list[_Wicket] = field(default_factory=list)


class _Over(Struct):
    over: int
    deliveries: list[_Delivery]


class _Target(Struct):
    runs: int | None = None
    overs: int | float | None = None


class _Innings(Struct):
    team: str
    overs: list[_Over] = field(default_factory=list)
    target: _Target | None = None
    super_over: bool = False
    declared: bool = False
    #: `pre` from earlier in the match, `post` after the innings.
    penalty_runs: dict[str, int] = field(default_factory=dict)


class _Info(Struct):
    match_type: str
    teams: list[str]
    players: dict[str, list[str]]
    outcome: dict[str, Any]
    #: Absent in a match of several days.
    overs: int | None = None
    dates: list[str] = field(default_factory=list)


class _File(Struct):
    info: _Info
    innings: list[_Innings]


def read_cricsheet(path: Path, index: int) -> Game:
    """Return the game of a file, under the keys of the world's match number `index`."""
    try:
        return _to_game(msgspec.json.decode(path.read_bytes(), type=_File), index)
    except OSError as error:
        raise UsageError(f"{path.name} cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, RecursionError, KeyError, ValueError) as error:
        raise UsageError(f"{path.name} is not a ball-by-ball file in Cricsheet JSON") from error


def _to_game(file: _File, index: int) -> Game:
    sides = _sides(file, index)
    keys = {player.name: player.key for side in sides.values() for player in side.players}
    first, second = sides.values()
    played: list[Innings] = []
    nights = list(_nights(file.innings, len(file.info.dates) - 1 if file.info.overs is None else 0))
    for innings, pauses in zip(file.innings, nights, strict=True):
        batting = sides[innings.team]
        opener = played[-1] if len(played) % 2 else None
        played.append(
            Innings(
                batting=batting,
                bowling=second if batting is first else first,
                overs=tuple(_over(over, keys) for over in innings.overs),
                target=_target(innings, opener, file.info.overs),
                pauses=pauses,
                is_super_over=innings.super_over,
                is_declared=innings.declared,
                penalty_before=innings.penalty_runs.get("pre", 0),
                penalty_after=innings.penalty_runs.get("post", 0),
            )
        )
    return Game(
        key=match_key(index),
        number=index + 1,
        match_format=file.info.match_type,
        sides=(played[0].batting, played[0].bowling) if played else (first, second),
        innings=tuple(played),
        result=_result(file.info.outcome),
    )


def _sides(file: _File, index: int) -> dict[str, Side]:
    """Return the two teams; players outside the lists (substitutes) join the team they played for."""
    keys = iter(match_keys(index))
    names = {team: dict.fromkeys(file.info.players.get(team, ())) for team in file.info.teams}
    first, second = names
    known = {name for team in names.values() for name in team}
    for innings in file.innings:
        batting, bowling = names[innings.team], names[second if innings.team == first else first]
        for delivery in (delivery for over in innings.overs for delivery in over.deliveries):
            batting.update(dict.fromkeys(name for name in (delivery.batter, delivery.non_striker) if name not in known))
            bowling.update(dict.fromkeys(name for name in (delivery.bowler,) if name not in known))
    return {
        team: Side(key=next(keys), name=team, players=tuple(Player(key=next(keys), name=name) for name in members))
        for team, members in names.items()
    }


def _nights(innings: Sequence[_Innings], left: int) -> Iterator[tuple[Pause, ...]]:
    """Yield the nights inside each innings; one between two innings is their break."""
    overs = 0
    for each in innings:
        balls, pauses = 0, list[Pause]()
        for over in each.overs:
            if overs and overs % OVERS_A_DAY == 0 and left:
                left -= 1
                if balls:
                    pauses.append(Pause(after=balls, text="Stumps", seconds=_NIGHT_SECONDS))
            overs += 1
            balls += len(over.deliveries)
        yield tuple(pauses)


def _over(over: _Over, keys: dict[str, str]) -> Over:
    return Over(number=over.over, balls=tuple(_ball(delivery, keys) for delivery in over.deliveries))


def _ball(delivery: _Delivery, keys: dict[str, str]) -> Ball:
    off_the_bat = int(delivery.runs["batter"])
    reached_the_rope = off_the_bat in (4, 6) and not delivery.runs.get("non_boundary")
    return Ball(
        batter=keys[delivery.batter],
        non_striker=keys[delivery.non_striker],
        bowler=keys[delivery.bowler],
        runs=msgspec.convert({"batter": off_the_bat, **delivery.extras}, Runs),
        boundary=off_the_bat if reached_the_rope else None,
        outs=tuple(_out(wicket, keys) for wicket in delivery.wickets),
    )


def _out(wicket: _Wicket, keys: dict[str, str]) -> Out:
    return Out(kind=_dismissal(wicket.kind), player=keys[wicket.player_out], counts=wicket.kind not in _NOT_COUNTED)


def _dismissal(kind: str) -> Dismissal:
    if kind in _OTHER_NAMES:
        return _OTHER_NAMES[kind]
    return Dismissal(kind) if kind in set(Dismissal) else Dismissal.OTHER


def _target(innings: _Innings, opener: Innings | None, overs: int | None) -> Target | None:
    if opener is None or overs is None:
        return None
    revised = innings.target or _Target()
    whole = 1 if innings.super_over else overs
    return Target(
        runs=opener.runs + 1 if revised.runs is None else revised.runs,
        overs=_overs(whole if revised.overs is None else revised.overs),
    )


def _overs(value: float) -> Overs:
    over, _, ball = str(value).partition(".")
    return Overs(int(over), int(ball or 0))


def _result(outcome: dict[str, Any]) -> Result:
    method = f" ({outcome['method']} method)" if "method" in outcome else ""
    if "winner" in outcome:
        by = outcome.get("by", {})
        margin = {"runs": by.get("runs", 0), "wickets": by.get("wickets", 0), "by_an_innings": "innings" in by}
        # An awarded match has no margin.
        text = won_by(outcome["winner"], **margin) if by else f"{outcome['winner']} won"
        return Result(outcome=ResultKind.WON, text=text + method)
    if outcome["result"] == "tie":
        deciders = {"eliminator": "Super Over", "bowl_out": "bowl-out"}
        decided = "".join(f" ({outcome[key]} won the {name})" for key, name in deciders.items() if key in outcome)
        return Result(outcome=ResultKind.TIE, text=f"Match tied{decided}{method}")
    if outcome["result"] == "draw":
        return Result(outcome=ResultKind.DRAW, text="Match drawn")
    return Result(outcome=ResultKind.NO_RESULT, text="No result")
