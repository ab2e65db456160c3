"""The normalised payload of a cricket match, `cricket.match.v1`: stored in snapshots and served by the API.

An absent field is unknown, `null` means that the source states there is none, and zero was counted.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field

from longstop.model.event import RESULT, Event, EventKey
from longstop.model.match import MatchStatus
from longstop.sports.cricket.model import (
    Board,
    CricketKind,
    CricketState,
    Delivery,
    InferredBalls,
    InningsScore,
    InningsSummary,
    Overs,
    OverSummary,
    Result,
    innings_of,
    over_of,
)
from longstop.sports.cricket.totals import pair_of, score_of, tally

SCHEMA_VERSION: Literal["cricket.match.v1"] = "cricket.match.v1"

Count = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OversV1(_Part):
    """Complete overs and balls of the one under way; never a float."""

    over: Count
    ball: Count


class TeamV1(_Part):
    key: str
    #: Absent until the source has given the name.
    name: str | None = None


class TeamsV1(_Part):
    team_a: TeamV1
    team_b: TeamV1


class ScoreV1(_Part):
    runs: Count
    wickets: Annotated[int, Field(ge=0, le=10)]
    overs: OversV1


class ScoresV1(_Part):
    """Each side's latest innings; a side that has not batted is absent."""

    team_a: ScoreV1 | None = None
    team_b: ScoreV1 | None = None


class InningsV1(ScoreV1):
    number: Annotated[int, Field(ge=1)]
    #: The batting side's key; absent while it is unknown.
    team: str | None = None
    is_closed: bool


class BatterV1(_Part):
    key: str
    name: str | None = None
    runs: Count
    balls: Count
    on_strike: bool


class BowlerV1(_Part):
    key: str
    name: str | None = None
    runs: Count
    balls: Count
    wickets: Count


class TargetV1(_Part):
    runs: Count
    overs: OversV1


LastEventKind = Literal["runs", "wicket", "over_complete", "innings_complete", "result"]


class LastEventV1(_Part):
    type: LastEventKind
    key: str
    description: str


class ResultV1(_Part):
    outcome: str
    text: str


class MetadataV1(_Part):
    match_type: str | None = None


class CricketMatchV1(_Part):
    """One match, whole."""

    schema_version: Literal["cricket.match.v1"]
    matchId: int  # noqa: N815 - the name that API users of the seeds know
    match_id: str
    domain_id: str
    title: str
    status: Literal["upcoming", "live", "break", "completed"]
    #: The source's words for a break or result.
    headline: str | None = None
    teams: TeamsV1 | None = None
    score: ScoresV1
    current_innings: Annotated[int, Field(ge=1)] | None = None
    innings: tuple[InningsV1, ...]
    batters: tuple[BatterV1, ...] | None = None
    bowler: BowlerV1 | None = None
    target: TargetV1 | None = None
    last_event: LastEventV1 | None = None
    result: ResultV1 | None = None
    start_time: datetime | None = None
    #: Names of all player keys in this payload and in the match's events.
    players: dict[str, str]
    metadata: MetadataV1


# --- from state and scoreboard to the payload ----------------------------------------------------------------------


def status_of(state: CricketState, board: Board) -> MatchStatus:
    """Return the status to serve: a match is completed only when its result is stored."""
    if _result(state) is not None:
        return MatchStatus.COMPLETED
    return MatchStatus.LIVE if board.status is MatchStatus.COMPLETED else board.status


def title_of(state: CricketState, board: Board) -> str:
    names = [state.teams.get(key, key) for key in _team_keys(state, board)]
    title = " vs ".join(names) or str(state.row.ref)
    return f"{title} - {board.match_format}" if board.match_format else title


def normalise(state: CricketState, board: Board) -> CricketMatchV1:
    """Return the payload of a match, from its state and scoreboard."""
    innings = _innings(state, board)
    result = _result(state)
    fields = {
        "headline": board.headline or None,
        "teams": _teams(state, board),
        "current_innings": innings[-1].number if innings else None,
        "batters": _batters(state, board),
        "bowler": _bowler(state, board),
        "target": TargetV1(runs=board.target.runs, overs=_overs(board.target.overs)) if board.target else None,
        "last_event": _last_event(state),
        "result": ResultV1(outcome=result.outcome, text=result.text) if result else None,
        "start_time": board.start_at,
    }
    return CricketMatchV1(
        schema_version=SCHEMA_VERSION,
        matchId=state.row.match_id,
        match_id=str(state.row.ref),
        domain_id=state.row.ref.source,
        title=title_of(state, board),
        status=status_of(state, board).value,
        score=_scores(state, board, innings),
        innings=innings,
        players=dict(sorted(state.players.items())),
        metadata=MetadataV1(match_type=board.match_format) if board.match_format else MetadataV1(),
        # Unknown fields are absent, not null.
        **{name: value for name, value in fields.items() if value is not None},
    )


def _team_keys(state: CricketState, board: Board) -> list[str]:
    """Return both sides, the one that batted first in front, so that the order stays the same in every innings."""
    batted = sorted(state.sides.items())
    return [
        key for key in dict.fromkeys([*(team for _, team in batted), *sorted((board.batting, board.bowling))]) if key
    ][:2]


def _teams(state: CricketState, board: Board) -> TeamsV1 | None:
    keys = _team_keys(state, board)
    if len(keys) != 2:
        return None
    team_a, team_b = (TeamV1(key=key, name=name) if (name := state.teams.get(key)) else TeamV1(key=key) for key in keys)
    return TeamsV1(team_a=team_a, team_b=team_b)


def newest_shown(newest: int, board: Board) -> int:
    """Return the latest innings of events or scoreboard: the scoreboard may be ahead of the events."""
    begun = [
        number
        for number, shown in zip(pair_of(newest), (board.first, board.second), strict=True)
        if shown is not None and not shown.is_blank
    ]
    return max([newest, *begun])


def _innings(state: CricketState, board: Board) -> tuple[InningsV1, ...]:
    newest = newest_shown(state.newest_innings, board)
    return tuple(
        InningsV1.model_validate(
            {
                "number": number,
                **({"team": team} if (team := state.sides.get(number)) else {}),
                "is_closed": number < newest or board.is_innings_over or _is_closed(state, number),
                **dict(_score(_best_score(state, board, number, newest))),
            }
        )
        for number in range(1, newest + 1)
    )


def _is_closed(state: CricketState, number: int) -> bool:
    event = state.events.get(EventKey(CricketKind.INNINGS, (number,)))
    return event is not None and event.is_live


def _best_score(state: CricketState, board: Board, number: int, newest: int) -> InningsScore:
    shown = score_of(number, newest, board, state.scorecard)
    if shown is not None:
        return shown
    deliveries = [
        event.content
        for event in state.live(CricketKind.DELIVERY)
        if innings_of(event.key) == number and isinstance(event.content, Delivery)
    ]
    ours = tally(
        deliveries, {over_of(event.key) for event in state.live(CricketKind.OVER) if innings_of(event.key) == number}
    )
    return InningsScore(runs=ours.runs, wickets=ours.wickets, overs=ours.overs)


def _score(score: InningsScore) -> ScoreV1:
    return ScoreV1(runs=score.runs, wickets=score.wickets, overs=_overs(score.overs))


def _overs(overs: Overs) -> OversV1:
    return OversV1(over=overs.over, ball=overs.ball)


def _scores(state: CricketState, board: Board, innings: Iterable[InningsV1]) -> ScoresV1:
    latest = {item.team: item for item in innings if item.team}
    sides_in_order = zip(("team_a", "team_b"), _team_keys(state, board), strict=False)
    return ScoresV1.model_validate(
        {
            side: ScoreV1(runs=item.runs, wickets=item.wickets, overs=item.overs)
            for side, key in sides_in_order
            if (item := latest.get(key))
        }
    )


def _batters(state: CricketState, board: Board) -> tuple[BatterV1, ...] | None:
    return (
        tuple(
            BatterV1.model_validate(
                {**_named(state, batter.key), "runs": batter.runs, "balls": batter.balls, "on_strike": batter.on_strike}
            )
            for batter in board.batters
        )
        or None
    )


def _bowler(state: CricketState, board: Board) -> BowlerV1 | None:
    bowler = board.bowler
    if bowler is None:
        return None
    figures = {"runs": bowler.runs, "balls": bowler.balls, "wickets": bowler.wickets}
    return BowlerV1.model_validate({**_named(state, bowler.key), **figures})


def _named(state: CricketState, key: str) -> dict[str, str]:
    name = state.players.get(key)
    return {"key": key, "name": name} if name else {"key": key}


def _result(state: CricketState) -> Result | None:
    event = state.events.get(RESULT)
    return event.content if event and event.is_live and isinstance(event.content, Result) else None


def _last_event(state: CricketState) -> LastEventV1 | None:
    """Return the latest milestone: a result, else the newest innings end, over end or ball."""
    if (event := state.events.get(RESULT)) and event.is_live:
        return _described(event)
    deliveries = state.live(CricketKind.DELIVERY)
    if not deliveries:
        return None
    last = deliveries[-1]
    for key in (
        EventKey(CricketKind.INNINGS, (innings_of(last.key),)),
        EventKey(CricketKind.OVER, (innings_of(last.key), over_of(last.key))),
    ):
        if (event := state.events.get(key)) and event.is_live:
            return _described(event)
    return _described(last)


def _described(event: Event) -> LastEventV1:
    kind, text = _in_words(event.content)
    return LastEventV1(type=kind, key=str(event.key), description=text)


def _in_words(content: Struct) -> tuple[LastEventKind, str]:
    match content:
        case Delivery(wickets=(wicket, *_)):
            return "wicket", f"{wicket.player_out} {wicket.kind}"
        case Delivery(runs=runs):
            return "runs", str(runs.total)
        case InferredBalls(runs=unseen):
            return "runs", f"{unseen} not shown"
        case OverSummary(runs=over_runs, score=score):
            return "over_complete", f"{over_runs} runs, {score.runs}/{score.wickets}"
        case InningsSummary(runs=total, wickets=fallen, overs=overs):
            return "innings_complete", f"{total}/{fallen} in {overs} overs"
        case Result(text=text):
            return "result", text
        case other:
            raise TypeError(f"{type(other).__name__} is not a cricket event")
