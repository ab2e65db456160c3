"""From what we hold to the payload that is served: `football.event.v1`."""

from typing import Any

import msgspec
from msgspec import UNSET

from longstop.model.event import Content, Event
from longstop.model.football import FootballResult
from longstop.model.football_payload import (
    FOOTBALL_SCHEMA_VERSION,
    FootballEventV1,
    FootballMetadataV1,
    FootballResultV1,
    FootballScoreV1,
    FootballTeamsV1,
    FootballTeamV1,
    IncidentV1,
)
from longstop.model.match import MatchStatus
from longstop.pipeline.football.state import FootballState
from longstop.sources.base import FootballBoard, LineupPlayer, Lineups, MissingPlayer, Squad, Statistics

#: Parts of the payload that are read now and then: what a run before this one has read of them stays.
_PARTS = ("lineups", "statistics")


def status_of(state: FootballState, board: FootballBoard) -> MatchStatus:
    """Return the status to serve: a result counts once it is stored, not when it is first glimpsed."""
    if state.result is not None:
        return MatchStatus.COMPLETED
    if board.status is not MatchStatus.COMPLETED:
        return board.status
    return MatchStatus.UPCOMING if board.score is None else MatchStatus.LIVE


def title_of(board: FootballBoard) -> str:
    return f"{board.home.name or board.home.key} vs {board.away.name or board.away.key}"


def normalise(state: FootballState, board: FootballBoard) -> FootballEventV1:
    """Return the payload of a match as it is held in `state` and shown on `board`."""
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
        metadata=FootballMetadataV1.model_validate({name: said for name, said in about.items() if said is not None}),
        # Nobody said it: absent, which is not the same as null.
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
    fields: dict[str, Any] = {"key": str(event.key), "kind": event.key.kind.value, **_told(event.content)}
    if event.key.side:
        fields["side"] = event.key.side
    return IncidentV1.model_validate(fields)


def _told(content: Content) -> dict[str, Any]:
    """Return an event's own fields; of what nobody said, nothing."""
    fields = {name: said for name, said in msgspec.to_builtins(content).items() if said is not None and name != "kind"}
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
        said = (msgspec.to_builtins(figure) for figure in figures)
        periods[period] = {figure.pop("key"): figure for figure in said}
    return periods
