"""sofascore's statistics."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from longstop.sources.wire import decode
from longstop.sports.football.model import Statistic, Statistics


class _Figure(Struct, frozen=True):
    """A figure of both sides. Its text has four forms; the numbers beside it have one."""

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
    return Statistics(periods={part.period: tuple(_figures(part).values()) for part in parts})


def _figures(part: _Part) -> Mapping[str, Statistic]:
    """Return the figures by key; several groups repeat one, and older bodies have a name only."""
    found: dict[str, Statistic] = {}
    for figure in (figure for group in part.groups for figure in group.statisticsItems):
        key = figure.name if figure.key is UNSET else figure.key
        numbers: dict[str, Any] = {"home_total": figure.homeTotal, "away_total": figure.awayTotal}
        found.setdefault(key, Statistic(key=key, home=figure.homeValue, away=figure.awayValue, **numbers))
    return found
