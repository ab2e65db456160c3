"""The normalised payload of a football match, `football.event.v1`: what a snapshot holds and the API serves.

An absent field was not said by any source, `null` was said to be nothing, zero was counted.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

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
    #: Absent for who was not rated: who has hardly played, and everybody where the source rates nobody.
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
    #: For so many of so many.
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
