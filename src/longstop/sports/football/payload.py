"""The normalised payload of a football match, `football.event.v1`: stored in snapshots and served by the API.

An absent field is unknown, `null` means that the source states there is none, and zero was counted.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Struct
from pydantic import BaseModel, ConfigDict, Field

from longstop.model.event import Event
from longstop.model.match import MatchStatus
from longstop.sports.football.model import (
    FootballBoard,
    FootballResult,
    FootballState,
    LineupPlayer,
    Lineups,
    MissingPlayer,
    Squad,
    Statistics,
)

FOOTBALL_SCHEMA_VERSION: Literal["football.event.v1"] = "football.event.v1"

Count = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FootballTeamV1(_Part):
    key: str
    name: str


class FootballTeamsV1(_Part):
    home: FootballTeamV1
    away: FootballTeamV1


class GoalsV1(_Part):
    home: Count
    away: Count


class PeriodScoreV1(GoalsV1):
    """What one part of the match gave."""

    #: `period1`, `period2`, `extra1` or `extra2`.
    period: str


class FootballScoreV1(GoalsV1):
    """Goals, those of a shoot-out apart."""

    periods: tuple[PeriodScoreV1, ...]
    #: Absent when there was no shoot-out.
    penalties: GoalsV1 | None = None


class LineupPlayerV1(_Part):
    key: str
    name: str
    position: str | None = None
    shirt: Count | None = None
    #: Absent if the player was not rated, for example after a short appearance.
    rating: float | None = None
    #: Minutes on the pitch; absent for who has not played.
    minutes: Count | None = None
    is_captain: bool = False


class MissingPlayerV1(_Part):
    key: str
    name: str
    type: str
    #: The source's number for why.
    reason: int | None = None
    description: str | None = None


class SquadV1(_Part):
    #: As in 4-3-3; the goalkeeper is not counted.
    formation: str | None = None
    #: The eleven, in the order of the formation from the goalkeeper on.
    starters: tuple[LineupPlayerV1, ...]
    bench: tuple[LineupPlayerV1, ...]
    missing: tuple[MissingPlayerV1, ...] | None = None


class LineupsV1(_Part):
    """Who plays: a guess until it is confirmed."""

    confirmed: bool
    home: SquadV1 | None = None
    away: SquadV1 | None = None


class StatisticV1(_Part):
    home: float
    away: float
    #: For ratios such as 12 of 20.
    home_total: float | None = None
    away_total: float | None = None


class IncidentV1(_Part):
    """An event of the match, under the key that it has among the events."""

    key: str
    kind: Literal["goal", "card", "substitution", "var", "missed_penalty", "period", "kick"]
    side: Literal["home", "away"] | None = None
    minute: Count | None = None
    added: Count | None = None
    #: The score after it; of a kick, and at the end of the kicks, the shoot-out's.
    score: GoalsV1 | None = None
    how: str | None = None
    scorer: str | None = None
    assist: str | None = None
    card: str | None = None
    player: str | None = None
    player_in: str | None = None
    player_out: str | None = None
    is_injury: bool | None = None
    decision: str | None = None
    period: str | None = None
    sequence: Count | None = None
    is_scored: bool | None = None


class FootballResultV1(_Part):
    outcome: str
    after: str
    text: str


class FootballMetadataV1(_Part):
    tournament: str | None = None
    season: str | None = None
    round: int | None = None


class FootballEventV1(_Part):
    """One match, whole."""

    schema_version: Literal["football.event.v1"]
    matchId: int  # noqa: N815 - the name that API users of the seeds know
    match_id: str
    domain_id: str
    title: str
    status: Literal["upcoming", "live", "break", "completed"]
    #: The source's words for where the match stands.
    headline: str | None = None
    teams: FootballTeamsV1
    #: Absent before the kick-off, and where nothing was played.
    score: FootballScoreV1 | None = None
    #: Absent while the source shows none.
    lineups: LineupsV1 | None = None
    #: In the order of play.
    incidents: tuple[IncidentV1, ...]
    #: By period (`ALL` for the whole match), then by the source's name of the figure.
    statistics: dict[str, dict[str, StatisticV1]] | None = None
    result: FootballResultV1 | None = None
    start_time: datetime | None = None
    #: Names of all player keys in this payload and in the match's events.
    players: dict[str, str]
    metadata: FootballMetadataV1


# --- from state and board to the payload ---------------------------------------------------------------------------

#: Parts of the payload that are read once a minute; until then the stored ones are kept.
_PARTS = ("lineups", "statistics")


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
    result = state.result
    fields: dict[str, Any] = {
        "headline": board.headline or None,
        "score": _score(board),
        "result": _result(result) if isinstance(result, FootballResult) else None,
        "start_time": board.start_at,
    }
    parts = {
        **_parts_before(state),
        **({"lineups": _lineups(state.lineups)} if state.lineups else {}),
        **({"statistics": _statistics(state.statistics)} if state.statistics else {}),
    }
    about = {"tournament": board.tournament, "season": board.season, "round": board.round}
    return FootballEventV1(
        schema_version=FOOTBALL_SCHEMA_VERSION,
        matchId=state.row.match_id,
        match_id=str(state.row.ref),
        domain_id=state.row.ref.source,
        title=title_of(board),
        status=status_of(state, board).value,
        teams=FootballTeamsV1(
            home=FootballTeamV1(key=board.home.key, name=board.home.name),
            away=FootballTeamV1(key=board.away.key, name=board.away.name),
        ),
        incidents=tuple(_incident(event) for event in state.incidents),
        players=dict(sorted(state.players.items())),
        metadata=FootballMetadataV1.model_validate({name: value for name, value in about.items() if value is not None}),
        # Unknown fields are absent, not null.
        **{name: value for name, value in fields.items() if value is not None},
        **parts,
    )


def _parts_before(state: FootballState) -> dict[str, Any]:
    if state.snapshot is None:
        return {}
    stored: dict[str, Any] = msgspec.json.decode(state.snapshot.payload)
    return {name: stored[name] for name in _PARTS if name in stored}


def _score(board: FootballBoard) -> FootballScoreV1 | None:
    if board.score is None:
        return None
    periods = [{"period": part.name, "home": part.home, "away": part.away} for part in board.periods]
    fields: dict[str, Any] = {"home": board.score.home, "away": board.score.away, "periods": periods}
    if board.penalties:
        fields["penalties"] = {"home": board.penalties.home, "away": board.penalties.away}
    return FootballScoreV1.model_validate(fields)


def _result(result: FootballResult) -> FootballResultV1:
    return FootballResultV1(outcome=result.outcome.value, after=result.after, text=result.text)


def _incident(event: Event) -> IncidentV1:
    fields: dict[str, Any] = {"key": str(event.key), "kind": event.key.kind, **_fields(event.content)}
    if event.key.side:
        fields["side"] = event.key.side
    return IncidentV1.model_validate(fields)


def _fields(content: Struct) -> dict[str, Any]:
    """Return the known fields of an event."""
    fields = {
        name: value for name, value in msgspec.to_builtins(content).items() if value is not None and name != "kind"
    }
    if "home" in fields:
        fields["score"] = {side: fields.pop(side) for side in ("home", "away")}
    return fields


def _lineups(lineups: Lineups) -> dict[str, Any]:
    sides = {"home": lineups.home, "away": lineups.away}
    return {"confirmed": lineups.is_confirmed, **{side: _squad(squad) for side, squad in sides.items() if squad}}


def _squad(squad: Squad) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "starters": [_player(player) for player in squad.players if player.is_starter],
        "bench": [_player(player) for player in squad.players if not player.is_starter],
    }
    if squad.formation is not UNSET:
        fields["formation"] = squad.formation
    if squad.missing is not UNSET:
        fields["missing"] = [_missing(player) for player in squad.missing]
    return fields


def _player(player: LineupPlayer) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(player)
    del fields["is_starter"]
    if not player.is_captain:
        del fields["is_captain"]
    return fields


def _missing(player: MissingPlayer) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(player)
    return {"type": fields.pop("kind"), **fields}


def _statistics(statistics: Statistics) -> dict[str, Any]:
    periods: dict[str, Any] = {}
    for period, figures in statistics.periods.items():
        encoded = (msgspec.to_builtins(figure) for figure in figures)
        periods[period] = {figure.pop("key"): figure for figure in encoded}
    return periods
