"""The normalised payload of a football match, `football.event.v1`: stored in snapshots and served by the API.

An absent field is unknown, `null` means that the source states there is none, and zero was counted.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from longstop.model.event import Event
from longstop.model.match import MatchStatus
from longstop.sports.football.model import (
    FootballBoard,
    FootballResult,
    FootballState,
    FootballTeam,
    Goals,
    Lineups,
    MatchClock,
    MatchDetails,
    PeriodScore,
    Side,
    Statistic,
    StatusDetail,
    Tie,
)


class FootballTeamsV1(Struct, frozen=True, kw_only=True):
    home: FootballTeam
    away: FootballTeam


class FootballScoreV1(Goals, frozen=True, kw_only=True, omit_defaults=True):
    """Goals, those of a shoot-out apart."""

    periods: tuple[PeriodScore, ...]
    #: Absent when there was no shoot-out.
    penalties: Goals | None = None


class FootballResultV1(Struct, frozen=True, kw_only=True, omit_defaults=True):
    outcome: str
    after: str
    text: str
    #: The side that wins, where the outcome does not say so.
    winner: Side | UnsetType = UNSET
    #: The score that was awarded in place of the one that was played.
    awarded: Goals | UnsetType = UNSET


class FootballMetadataV1(MatchDetails, frozen=True, kw_only=True, omit_defaults=True):
    tournament: str | None = None
    season: str | None = None
    round: int | None = None


class FootballEventV1(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One match, whole."""

    schema_version: Literal["football.event.v1"]
    matchId: int  # noqa: N815 - the name that API users of the seeds know
    match_id: str
    domain_id: str
    title: str
    status: MatchStatus
    #: The source's words for where the match stands.
    headline: str | None = None
    #: Absent for a match that is played as planned.
    status_detail: StatusDetail | None = None
    #: Absent unless a period is in play.
    clock: MatchClock | None = None
    #: Announced minutes, by the name of the period.
    added_time: Mapping[str, int] = {}
    #: The sides whose event the video referee is checking.
    var_in_progress: tuple[Side, ...] = ()
    #: Absent for a match that is not one of two legs.
    tie: Tie | None = None
    teams: FootballTeamsV1
    #: Absent before the kick-off, and where nothing was played.
    score: FootballScoreV1 | None = None
    #: Absent while the source shows none.
    lineups: Lineups | None = None
    #: In the order of play: the key and kind of each event, its side, and what is known of its content.
    incidents: tuple[dict[str, Any], ...]
    #: By period (`ALL` for the whole match), then by the source's name of the figure.
    statistics: Mapping[str, Mapping[str, Statistic]] | None = None
    result: FootballResultV1 | None = None
    start_time: datetime | None = None
    #: Names of all player keys in this payload and in the match's events.
    players: dict[str, str]
    metadata: FootballMetadataV1


# --- from state and board to the payload ---------------------------------------------------------------------------


def status_of(state: FootballState, board: FootballBoard) -> MatchStatus:
    """Return the status to serve: a match is completed only when its result is stored."""
    if state.result is not None:
        return MatchStatus.COMPLETED
    if board.status is not MatchStatus.COMPLETED:
        return board.status
    return MatchStatus.UPCOMING if board.score is None else MatchStatus.LIVE


def title_of(board: FootballBoard) -> str:
    return f"{board.home.name or board.home.key} vs {board.away.name or board.away.key}"


def normalise(state: FootballState, board: FootballBoard) -> FootballEventV1:
    """Return the payload of a match, from its state and board."""
    parts = state.latest
    return FootballEventV1(
        schema_version="football.event.v1",
        matchId=state.row.match_id,
        match_id=str(state.row.ref),
        domain_id=state.row.ref.source,
        title=title_of(board),
        status=status_of(state, board),
        headline=board.headline or None,
        status_detail=board.status_detail,
        clock=board.clock,
        added_time=board.added_time,
        var_in_progress=board.var_in_progress,
        tie=board.tie,
        teams=FootballTeamsV1(home=board.home, away=board.away),
        score=_score(board),
        lineups=parts.lineups,
        incidents=tuple(_incident(event) for event in state.incidents),
        statistics=parts.statistics,
        result=_result(state),
        start_time=board.start_at,
        players=_names(state, parts.lineups),
        metadata=_metadata(board),
    )


def _names(state: FootballState, lineups: Lineups | None) -> dict[str, str]:
    """Return the names of all player keys in the payload. Players of another match may be stored by mistake."""
    missing = {player.key for squad in lineups.squads for player in squad.missing or ()} if lineups else set()
    used = state.event_players | missing | (lineups.keys if lineups else set())
    return {key: state.players[key] for key in used & state.players.keys()}


def _metadata(board: FootballBoard) -> FootballMetadataV1:
    details = {name: getattr(board.details, name) for name in MatchDetails.__struct_fields__}
    return FootballMetadataV1(tournament=board.tournament, season=board.season, round=board.round, **details)


def _score(board: FootballBoard) -> FootballScoreV1 | None:
    if board.score is None:
        return None
    return FootballScoreV1(
        home=board.score.home, away=board.score.away, periods=board.periods, penalties=board.penalties
    )


def _result(state: FootballState) -> FootballResultV1 | None:
    result = state.result
    if not isinstance(result, FootballResult):
        return None
    return FootballResultV1(
        outcome=result.outcome, after=result.after, text=result.text, winner=result.winner, awarded=result.awarded
    )


def _incident(event: Event) -> dict[str, Any]:
    content = msgspec.to_builtins(event.content)
    fields = {name: value for name, value in content.items() if value is not None}
    if "home" in fields:
        fields["score"] = {side: fields.pop(side) for side in ("home", "away")}
    side = {"side": event.key.side} if event.key.side else {}
    return {**fields, **side, "key": str(event.key), "kind": event.key.kind}
