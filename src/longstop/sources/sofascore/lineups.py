"""sofascore's line-ups."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from longstop.sources.sofascore.wire import Player
from longstop.sources.wire import Small, decode, tidy
from longstop.sports.football.model import LineupPlayer, Lineups, MissingPlayer, Squad


class _PlayerFigures(Struct, frozen=True):
    """Sparse: a figure that is not there is zero or not recorded, and nobody can tell which."""

    rating: Annotated[float, Meta(ge=0, le=10)] | UnsetType | None = UNSET
    minutesPlayed: Small | UnsetType | None = UNSET


class _Entry(Struct, frozen=True):
    player: Player
    substitute: bool
    captain: bool = False
    position: str | UnsetType | None = UNSET
    shirtNumber: Small | UnsetType | None = UNSET
    statistics: _PlayerFigures = _PlayerFigures()


class _Missing(Struct, frozen=True):
    player: Player
    type: str
    reason: Small | UnsetType = UNSET
    description: str | UnsetType = UNSET


class _Squad(Struct, frozen=True):
    players: list[_Entry]
    formation: str | UnsetType | None = UNSET
    missingPlayers: list[_Missing] | UnsetType = UNSET


class _LineupsBody(Struct, frozen=True):
    confirmed: bool
    home: _Squad | None = None
    away: _Squad | None = None


def read_lineups(body: bytes) -> Lineups:
    shown = decode(body, _LineupsBody)
    return Lineups(is_confirmed=shown.confirmed, home=_to_squad(shown.home), away=_to_squad(shown.away))


def _to_squad(squad: _Squad | None) -> Squad | None:
    """Read a side. A player's `teamId` may be his club's or a youth team's: only the side says whom he plays for."""
    if squad is None:
        return None
    players = [_to_player(entry) for entry in squad.players]
    return Squad(
        formation=squad.formation,
        players=tuple(sorted(players, key=lambda player: not player.is_starter)),
        missing=UNSET if squad.missingPlayers is UNSET else tuple(_to_missing(each) for each in squad.missingPlayers),
    )


def _to_player(entry: _Entry) -> LineupPlayer:
    return LineupPlayer(
        key=str(entry.player.id),
        name=tidy(entry.player.name),
        is_starter=not entry.substitute,
        is_captain=entry.captain,
        position=entry.position,
        shirt=entry.shirtNumber,
        rating=entry.statistics.rating,
        minutes=entry.statistics.minutesPlayed,
    )


def _to_missing(missing: _Missing) -> MissingPlayer:
    return MissingPlayer(
        key=str(missing.player.id),
        name=tidy(missing.player.name),
        kind=missing.type,
        reason=missing.reason,
        description=missing.description,
    )
