"""The normalised payload of a cricket match, `cricket.match.v1`: stored in snapshots and served by the API.

An absent field is unknown; zero was counted.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict

from longstop.model.event import RESULT, Event, EventKey
from longstop.model.match import MatchStatus
from longstop.sports.base import keys_in
from longstop.sports.cricket.model import (
    PLAYER_KEYS,
    Batter,
    Board,
    Bowler,
    CricketKind,
    CricketState,
    Delivery,
    InningsScore,
    InningsSummary,
    OverSummary,
    Result,
    RunTarget,
    innings_of,
    live,
    over_of,
)
from longstop.sports.cricket.totals_gaps_and_derived_events import pair_of, score_of, tally

InningsNumber = Annotated[int, Meta(ge=1)]


class TeamV1(Struct, frozen=True, kw_only=True, omit_defaults=True):
    key: str
    #: Absent until the source has given the name.
    name: str | None = None


class TeamsV1(Struct, frozen=True, kw_only=True):
    team_a: TeamV1
    team_b: TeamV1


class ScoresV1(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Each side's latest innings; a side that has not batted is absent."""

    team_a: InningsScore | None = None
    team_b: InningsScore | None = None


class InningsV1(InningsScore, frozen=True, kw_only=True, omit_defaults=True):
    number: InningsNumber
    #: The batting side's key; absent while it is unknown.
    team: str | None = None
    is_closed: bool


class BatterV1(Batter, frozen=True, kw_only=True, omit_defaults=True):
    name: str | None = None


class BowlerV1(Bowler, frozen=True, kw_only=True, omit_defaults=True):
    name: str | None = None


LastEventKind = Literal["runs", "wicket", "over_complete", "innings_complete", "result"]


class LastEventV1(Struct, frozen=True, kw_only=True):
    type: LastEventKind
    key: str
    description: str


class ResultV1(Struct, frozen=True, kw_only=True):
    outcome: str
    text: str


class MetadataV1(Struct, frozen=True, kw_only=True, omit_defaults=True):
    match_type: str | None = None


class CricketMatchV1(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    schema_version: Literal["cricket.match.v1"]
    matchId: int  # noqa: N815 - the name that API users of the seeds know
    match_id: str
    domain_id: str
    title: str
    status: MatchStatus
    #: The source's words for a break or result.
    headline: str | None = None
    teams: TeamsV1 | None = None
    score: ScoresV1
    current_innings: InningsNumber | None = None
    innings: tuple[InningsV1, ...]
    batters: tuple[BatterV1, ...] = ()
    bowler: BowlerV1 | None = None
    target: RunTarget | None = None
    last_event: LastEventV1 | None = None
    result: ResultV1 | None = None
    start_time: datetime | None = None
    #: Names of all player keys in this payload and in the match's events.
    players: dict[str, str]
    metadata: MetadataV1


# --- from state and scoreboard to the payload ----------------------------------------------------------------------


def status_of(state: CricketState, board: Board) -> MatchStatus:
    """Return the status to serve: a match is completed only when its result is stored."""
    if state.result is not None:
        return MatchStatus.COMPLETED
    return MatchStatus.LIVE if board.status is MatchStatus.COMPLETED else board.status


def title_of(state: CricketState, board: Board) -> str:
    names = [state.teams.get(key, key) for key in _team_keys(state, board)]
    title = " vs ".join(names) or str(state.row.ref)
    return f"{title} - {board.match_format}" if board.match_format else title


def normalise(state: CricketState, board: Board) -> CricketMatchV1:
    """Return the payload of a match, from its state and scoreboard."""
    innings = _innings(state, board)
    names, bowler, result = state.players, board.bowler, state.result
    return CricketMatchV1(
        schema_version="cricket.match.v1",
        matchId=state.row.match_id,
        match_id=str(state.row.ref),
        domain_id=state.row.ref.source,
        title=title_of(state, board),
        status=status_of(state, board),
        headline=board.headline or None,
        teams=_teams(state, board),
        score=_scores(state, board, innings),
        current_innings=innings[-1].number if innings else None,
        innings=innings,
        batters=tuple(BatterV1(**asdict(batter), name=names.get(batter.key)) for batter in board.batters),
        bowler=BowlerV1(**asdict(bowler), name=names.get(bowler.key)) if bowler else None,
        target=board.target,
        last_event=_last_event(state),
        result=ResultV1(outcome=result.outcome, text=result.text) if result else None,
        start_time=board.start_at,
        players={key: names[key] for key in _player_keys(state, board) & names.keys()},
        metadata=MetadataV1(match_type=board.match_format or None),
    )


def _player_keys(state: CricketState, board: Board) -> set[str]:
    """Return the players of the payload and of all events. Those of another match may be stored by mistake."""
    contents = [event.content for event in state.events.values() if event.is_live]
    outs = (wicket for content in contents if isinstance(content, Delivery) for wicket in content.wickets)
    return keys_in((*contents, *outs, *board.batters, board.bowler), PLAYER_KEYS)


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
    team_a, team_b = (TeamV1(key=key, name=state.teams.get(key)) for key in keys)
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
        InningsV1(
            number=number,
            team=state.sides.get(number) or None,
            is_closed=number < newest or board.is_innings_over or _is_closed(state, number),
            **asdict(_best_score(state, board, number, newest)),
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
    deliveries = [ball for _, ball in live(state.events, Delivery, number)]
    ours = tally(deliveries, {over_of(event.key) for event, _ in live(state.events, OverSummary, number)})
    return InningsScore(runs=ours.runs, wickets=ours.wickets, overs=ours.overs)


def _scores(state: CricketState, board: Board, innings: Iterable[InningsV1]) -> ScoresV1:
    latest = {
        item.team: InningsScore(runs=item.runs, wickets=item.wickets, overs=item.overs) for item in innings if item.team
    }
    team_a, team_b = (*_team_keys(state, board), "", "")[:2]
    return ScoresV1(team_a=latest.get(team_a), team_b=latest.get(team_b))


def _last_event(state: CricketState) -> LastEventV1 | None:
    """Return the latest milestone: a result, else the newest innings end, over end or ball."""
    if (event := state.events.get(RESULT)) and event.is_live:
        return _described(event)
    deliveries = live(state.events, Delivery)
    if not deliveries:
        return None
    last, _ = deliveries[-1]
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
        case OverSummary(runs=over_runs, score=score):
            return "over_complete", f"{over_runs} runs, {score.runs}/{score.wickets}"
        case InningsSummary(runs=total, wickets=fallen, overs=overs):
            return "innings_complete", f"{total}/{fallen} in {overs} overs"
        case Result(text=text):
            return "result", text
        case other:
            raise TypeError(f"{type(other).__name__} is not a cricket event")
