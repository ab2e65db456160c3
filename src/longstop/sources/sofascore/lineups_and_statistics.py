"""Parses sofascore's line-ups and statistics."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from longstop.sources.bodies_and_urls import Id, Small, clean_name, decode
from longstop.sports.football.model import LineupPlayer, Lineups, MissingPlayer, Squad, Statistic, Statistics


class SofascorePlayer(Struct, frozen=True):
    id: Id
    name: str = ""


class _PlayerFigures(Struct, frozen=True):
    """Sparse: a missing figure is either zero or not recorded."""

    rating: Annotated[float, Meta(ge=0, le=10)] | UnsetType | None = UNSET
    minutesPlayed: Small | UnsetType | None = UNSET


class _Entry(Struct, frozen=True):
    player: SofascorePlayer
    substitute: bool
    captain: bool = False
    position: str | UnsetType | None = UNSET
    shirtNumber: Small | UnsetType | None = UNSET
    statistics: _PlayerFigures = _PlayerFigures()


class _Missing(Struct, frozen=True):
    player: SofascorePlayer
    type: str
    reason: Small | UnsetType = UNSET
    description: str | UnsetType = UNSET
    #: Not needed to read a squad: any other type counts as absent.
    expectedEndDate: Any = UNSET


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
    """Convert one side. A player's `teamId` is not used: it may be a club or a youth team."""
    if squad is None:
        return None
    return Squad(
        formation=squad.formation,
        starters=tuple(_to_player(entry) for entry in squad.players if not entry.substitute),
        bench=tuple(_to_player(entry) for entry in squad.players if entry.substitute),
        missing=UNSET if squad.missingPlayers is UNSET else tuple(_to_missing(each) for each in squad.missingPlayers),
    )


def _to_player(entry: _Entry) -> LineupPlayer:
    return LineupPlayer(
        key=str(entry.player.id),
        name=clean_name(entry.player.name),
        is_captain=entry.captain,
        position=entry.position,
        shirt=entry.shirtNumber,
        rating=entry.statistics.rating,
        minutes=entry.statistics.minutesPlayed,
    )


def _to_missing(missing: _Missing) -> MissingPlayer:
    return MissingPlayer(
        key=str(missing.player.id),
        name=clean_name(missing.player.name),
        kind=missing.type,
        reason=missing.reason,
        description=missing.description,
        expected_end=missing.expectedEndDate if isinstance(missing.expectedEndDate, str) else UNSET,
    )


# --- statistics ------------------------------------------------------------------------------------------------------


class _Figure(Struct, frozen=True):
    """A figure of both sides. Its text has four formats, so only the numbers are read."""

    name: str
    homeValue: float
    awayValue: float
    key: str | UnsetType = UNSET
    homeTotal: float | UnsetType = UNSET
    awayTotal: float | UnsetType = UNSET


class _Group(Struct, frozen=True):
    statisticsItems: list[_Figure]


class _Part(Struct, frozen=True):
    period: str
    groups: list[_Group]


class _StatisticsBody(Struct, frozen=True):
    statistics: list[_Part]


def read_statistics(body: bytes) -> Statistics:
    parts = decode(body, _StatisticsBody).statistics
    return Statistics(periods={part.period: _figures(part) for part in parts})


def _figures(part: _Part) -> Mapping[str, Statistic]:
    """Return the figures by key. Groups repeat figures; older bodies have a name instead of a key."""
    found: dict[str, Statistic] = {}
    for figure in (figure for group in part.groups for figure in group.statisticsItems):
        key = figure.name if figure.key is UNSET else figure.key
        numbers: dict[str, Any] = {"home_total": figure.homeTotal, "away_total": figure.awayTotal}
        found.setdefault(key, Statistic(home=figure.homeValue, away=figure.awayValue, **numbers))
    return found
