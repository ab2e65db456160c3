"""The normalised payload of a cricket match, `cricket.match.v1`: what a snapshot holds and the API serves.

An absent field was not said by any source, `null` was said to be nothing, zero was counted.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

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
    #: The batting side's key; absent while the source has not said which.
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
