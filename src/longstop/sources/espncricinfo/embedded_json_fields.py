"""The JSON embedded in a page of espncricinfo: the fields that are used."""

from datetime import datetime
from typing import Annotated, Generic, TypeVar

from msgspec import Meta, Struct

from longstop.errors import LayoutChanged, MalformedBody, SourceChallenged
from longstop.sources.bodies_and_urls import Id, Small, is_challenge

_NEXT_DATA = b'<script id="__NEXT_DATA__" type="application/json"'

#: "Over.ball" as a number: 19.4 is nineteen overs and four balls. Never use it in arithmetic.
OverBall = Annotated[float, Meta(ge=0, le=999)]

PageData = TypeVar("PageData")


class EspnNamed(Struct, frozen=True):
    """A team or a player."""

    id: Id
    longName: str


class EspnTeamEntry(Struct, frozen=True):
    team: EspnNamed
    score: str | None = None
    scoreInfo: str | None = None


class EspnMatch(Struct, frozen=True):
    objectId: Id
    state: str
    status: str
    teams: list[EspnTeamEntry]
    statusText: str | None = None
    format: str | None = None
    liveInning: Small | None = None
    liveOvers: OverBall | None = None
    startTime: datetime | None = None


class EspnBall(Struct, frozen=True):
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
    dismissalText: "EspnDismissalText | None" = None


class EspnDismissalText(Struct, frozen=True):
    short: str | None = None


class EspnOver(Struct, frozen=True):
    overNumber: Annotated[int, Meta(ge=1, le=999)]
    overRuns: Small
    isComplete: bool
    totalBalls: Small
    totalRuns: Small
    totalWickets: Small
    bowlers: list[EspnNamed] = []
    balls: list[EspnBall] = []


class EspnInnings(Struct, frozen=True):
    inningNumber: Annotated[int, Meta(ge=1, le=99)]
    team: EspnNamed
    runs: Small
    wickets: Small
    overs: OverBall
    target: Small | None = None
    totalOvers: OverBall | None = None
    inningOvers: list[EspnOver] = []


class EspnComments(Struct, frozen=True):
    ballComments: list[EspnBall]
    superOverBallComments: list[EspnBall] = []


class EspnSquad(Struct, frozen=True):
    players: list["EspnSquadPlayer"]


class EspnSquadPlayer(Struct, frozen=True):
    player: EspnNamed


class EspnSquads(Struct, frozen=True):
    teamPlayers: list[EspnSquad]


class EspnBatter(Struct, frozen=True):
    player: EspnNamed
    runs: Small | None = None
    balls: Small | None = None
    #: 1 on strike, 2 at the other end.
    currentType: int | None = None


class EspnBowler(Struct, frozen=True):
    player: EspnNamed
    conceded: Small | None = None
    balls: Small | None = None
    wickets: Small | None = None
    #: 1 bowls now, 2 bowls from the other end.
    currentType: int | None = None


class EspnLiveSummary(Struct, frozen=True):
    """The state of play: only in play."""

    recentBalls: list[EspnBall] = []
    batsmen: list[EspnBatter] = []
    bowlers: list[EspnBowler] = []


class EspnSupport(Struct, frozen=True):
    liveSummary: EspnLiveSummary | None = None
    superOverLiveSummary: EspnLiveSummary | None = None


class EspnContent(Struct, frozen=True):
    innings: list[EspnInnings]
    recentBallCommentary: EspnComments | None = None
    supportInfo: EspnSupport | None = None
    superOverInnings: list[EspnInnings] = []
    matchPlayers: EspnSquads | None = None

    @property
    def all_innings(self) -> tuple[EspnInnings, ...]:
        return (*self.innings, *self.superOverInnings)

    @property
    def summary(self) -> EspnLiveSummary:
        """Return the state of play; empty if the page shows none."""
        support = self.supportInfo or EspnSupport()
        return support.superOverLiveSummary or support.liveSummary or EspnLiveSummary()

    @property
    def recent_balls(self) -> list[EspnBall]:
        """Return the newest balls. In play they may be in the summary only, which has no text of a dismissal."""
        comments, support = self.recentBallCommentary, self.supportInfo or EspnSupport()
        balls = [*comments.superOverBallComments, *comments.ballComments] if comments else []
        for summary in (support.superOverLiveSummary, support.liveSummary):
            known = {ball.id for ball in balls}
            balls += [ball for ball in summary.recentBalls if ball.id not in known] if summary else []
        return balls


class EspnData(Struct, frozen=True):
    match: EspnMatch
    content: EspnContent


class EspnMatchData(Struct, frozen=True):
    data: EspnData


class EspnListContent(Struct, frozen=True):
    matches: list[EspnMatch]


class EspnListData(Struct, frozen=True):
    content: EspnListContent


class EspnOlderListData(Struct, frozen=True):
    pageData: EspnListData


class EspnPageProps(Struct, Generic[PageData], frozen=True):
    data: PageData


class EspnProps(Struct, Generic[PageData], frozen=True):
    appPageProps: EspnPageProps[PageData]


class EspnPage(Struct, Generic[PageData], frozen=True):
    """Any page; its kind decides which data it has."""

    props: EspnProps[PageData]


class EspnListProps(Struct, frozen=True):
    """The list, in the layout of today or that of 2022."""

    appPageProps: EspnPageProps[EspnListData] | None = None
    pageProps: EspnPageProps[EspnOlderListData] | None = None


class EspnListPage(Struct, frozen=True):
    props: EspnListProps

    @property
    def matches(self) -> list[EspnMatch]:
        if self.props.appPageProps is not None:
            return self.props.appPageProps.data.content.matches
        if self.props.pageProps is not None:
            return self.props.pageProps.data.pageData.content.matches
        raise LayoutChanged("the list has neither props.appPageProps nor props.pageProps")


def embedded_json(body: bytes) -> bytes:
    """Return the JSON that the page's own script starts from. No regular expression: its time could grow squared."""
    _, _, tag = body.partition(_NEXT_DATA)
    content, end, _ = tag.partition(b">")[2].partition(b"</script>")
    if not end:
        if is_challenge(body):
            raise SourceChallenged("the site served a CAPTCHA page instead of data")
        start = body[:40].decode("utf-8", "replace")
        raise MalformedBody(f"the page has no embedded JSON; it starts with {start!r}")
    return content
