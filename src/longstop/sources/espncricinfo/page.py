"""The JSON that a page of espncricinfo carries in itself, as far as we read it."""

import re
from datetime import datetime
from typing import Annotated, Generic, TypeVar

from msgspec import Meta, Struct

from longstop.errors import MalformedBody, SourceChallenged
from longstop.sources.challenge import is_challenge
from longstop.sources.wire import Id, Small

_STATE = re.compile(rb'<script id="__NEXT_DATA__" type="application/json"[^>]*>(.*?)</script>', re.DOTALL)

#: "Over.ball" as a number: 19.4 is nineteen overs and four balls. It is never calculated with.
OverBall = Annotated[float, Meta(ge=0, le=999)]

Kind = TypeVar("Kind")


class Team(Struct, frozen=True):
    id: Id
    longName: str


class Player(Struct, frozen=True):
    id: Id
    longName: str


class TeamEntry(Struct, frozen=True):
    team: Team
    score: str | None = None
    scoreInfo: str | None = None


class Match(Struct, frozen=True):
    objectId: Id
    state: str
    status: str
    teams: list[TeamEntry]
    statusText: str | None = None
    format: str | None = None
    liveInning: Small | None = None
    liveOvers: OverBall | None = None
    startTime: datetime | None = None


class Ball(Struct, frozen=True):
    id: Id
    inningNumber: Small
    oversActual: OverBall
    overNumber: Annotated[int, Meta(ge=1, le=999)]
    ballNumber: Annotated[int, Meta(ge=1, le=99)]
    batsmanRuns: Small
    isFour: bool
    isSix: bool
    isWicket: bool
    byes: Small
    legbyes: Small
    wides: Small
    noballs: Small
    penalties: Small
    batsmanPlayerId: Id | None = None
    bowlerPlayerId: Id | None = None
    outPlayerId: Id | None = None
    dismissalType: int | None = None
    dismissalText: "DismissalText | None" = None


class DismissalText(Struct, frozen=True):
    short: str | None = None


class Over(Struct, frozen=True):
    overNumber: Annotated[int, Meta(ge=1, le=999)]
    overRuns: Small
    isComplete: bool
    totalBalls: Small
    totalRuns: Small
    totalWickets: Small
    bowlers: list[Player] = []
    balls: list[Ball] = []


class Innings(Struct, frozen=True):
    inningNumber: Annotated[int, Meta(ge=1, le=99)]
    isCurrent: bool
    team: Team
    runs: Small
    wickets: Small
    overs: OverBall
    target: Small | None = None
    totalOvers: OverBall | None = None
    inningOvers: list[Over] = []


class Comments(Struct, frozen=True):
    ballComments: list[Ball]
    superOverBallComments: list[Ball] = []


class Squad(Struct, frozen=True):
    players: list["SquadPlayer"]


class SquadPlayer(Struct, frozen=True):
    player: Player


class Squads(Struct, frozen=True):
    teamPlayers: list[Squad]


class Content(Struct, frozen=True):
    innings: list[Innings]
    recentBallCommentary: Comments | None = None
    superOverInnings: list[Innings] = []
    matchPlayers: Squads | None = None

    @property
    def all_innings(self) -> tuple[Innings, ...]:
        return (*self.innings, *self.superOverInnings)

    @property
    def recent_balls(self) -> list[Ball]:
        shown = self.recentBallCommentary
        return [*shown.superOverBallComments, *shown.ballComments] if shown else []


class Data(Struct, frozen=True):
    match: Match
    content: Content


class MatchData(Struct, frozen=True):
    data: Data


class ListContent(Struct, frozen=True):
    matches: list[Match]


class ListData(Struct, frozen=True):
    content: ListContent


class PageProps(Struct, Generic[Kind], frozen=True):
    data: Kind


class Props(Struct, Generic[Kind], frozen=True):
    appPageProps: PageProps[Kind]


class Page(Struct, Generic[Kind], frozen=True):
    """Any page; which data it holds depends on its kind."""

    props: Props[Kind]


def state_of(body: bytes) -> bytes:
    found = _STATE.search(body)
    if found is None:
        if is_challenge(body):
            raise SourceChallenged("a page that wants proof of a person, where data should be")
        start = body[:40].decode("utf-8", "replace")
        raise MalformedBody(f"the page has no embedded state; it starts {start!r}")
    return found[1]
