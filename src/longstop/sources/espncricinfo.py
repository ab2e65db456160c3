"""espncricinfo: one page per match, with everything in the JSON that its own script starts from.

The page shows every innings' totals and overs, but only the **last 20 balls** (and the first over of each innings): a
windowed witness. What fell out of the window while nobody looked cannot be asked for again.

*Unverified*, since no such page was recorded: the listing, play under way (recorded was a finished match), breaks,
super overs, and that any slug leads to a match as long as its number is right.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated
from unicodedata import normalize

from msgspec import Meta, Struct

from longstop.errors import LayoutChanged, MalformedBody, SourceChallenged, WrongMatch, belonging_to
from longstop.fetching.base import FetchRequest
from longstop.model.cricket import Delivery, Dismissal, InningsScore, Overs, OverSummary, Runs, Score, Target, Wicket
from longstop.model.match import MatchStatus, Sport
from longstop.sources.addresses import at_site
from longstop.sources.base import (
    Ask,
    BallItem,
    Board,
    FeedPage,
    Listing,
    Names,
    OverItem,
    Reading,
    Resource,
    Scorecard,
    ScorecardInnings,
    SourceConfig,
    not_offered,
)
from longstop.sources.challenge import is_challenge
from longstop.sources.decode import decode
from longstop.sources.results import result_in

BALLS_PER_OVER = 6

_STATE = re.compile(rb'<script id="__NEXT_DATA__" type="application/json"[^>]*>(.*?)</script>', re.DOTALL)
#: Series and match, each a few words and a number.
_MATCH_PAGE = re.compile(r"/series/[^/]+-\d{1,12}/[^/]+-(?P<match>\d{1,12})(?:/|$)", re.ASCII)
_INNINGS_OVER = re.compile(r"^(innings break|super over)\b", re.IGNORECASE)

#: The words are steadier than the numbers beside them, of which only five were recorded.
_DISMISSALS = {
    "bowled": Dismissal.BOWLED,
    "caught": Dismissal.CAUGHT,
    "caught and bowled": Dismissal.CAUGHT,
    "lbw": Dismissal.LBW,
    "run out": Dismissal.RUN_OUT,
    "stumped": Dismissal.STUMPED,
    "hit wicket": Dismissal.HIT_WICKET,
    "retired hurt": Dismissal.RETIRED,
    "retired not out": Dismissal.RETIRED,
    "retired out": Dismissal.RETIRED,
    "obstructing the field": Dismissal.OBSTRUCTING,
}
#: For the first overs, whose balls have no words; 5, 8 and 11 were not recorded.
_NUMBERED = {
    1: Dismissal.CAUGHT,
    2: Dismissal.BOWLED,
    3: Dismissal.LBW,
    4: Dismissal.RUN_OUT,
    5: Dismissal.STUMPED,
    6: Dismissal.HIT_WICKET,
    8: Dismissal.OBSTRUCTING,
    11: Dismissal.RETIRED,
}


class EspncricinfoSource:
    """Reads espncricinfo."""

    name = "espncricinfo"
    sport = Sport.CRICKET
    #: Its pages carry their data in themselves.
    calls: tuple[str, ...] = ()
    sites: tuple[str, ...] = ("www.espncricinfo.com", "espncricinfo.com")

    def __init__(self, config: SourceConfig) -> None:
        self._sites = (*self.sites, *config.hosts)
        self._site_url = config.metadata.get("site_url", "https://www.espncricinfo.com")

    def request(self, ask: Ask) -> FetchRequest:
        path = "/live-cricket-score"
        if ask.resource is not Resource.LIST:
            path = f"/series/series-0/match-{ask.source_id}/full-scorecard"
        return FetchRequest(source=self.name, url=self._site_url + path)

    def match_of(self, url: str) -> str | None:
        parts = at_site(url, self._sites)
        found = _MATCH_PAGE.match(parts.path) if parts else None
        return found["match"] if found else None

    def parse(self, ask: Ask, body: bytes) -> Reading:
        with belonging_to(self.name, f"{ask.resource} {ask.source_id}".rstrip()):
            if ask.resource is Resource.LIST:
                page = decode(_state_of(body), _ListPage)
                return Listing(
                    boards=tuple(_to_board(match, ()) for match in page.props.appPageProps.data.content.matches)
                )
            data = decode(_state_of(body), _MatchPage).props.appPageProps.data.data
            if ask.source_id and str(data.match.objectId) != ask.source_id:
                raise WrongMatch(f"the page is of match {data.match.objectId}")
            match ask.resource:
                case Resource.LIVE:
                    return _to_board(data.match, data.content.all_innings)
                case Resource.BALLS:
                    return _to_feed(data.content)
                case Resource.SCORECARD:
                    return _to_scorecard(data.content.all_innings)
                case Resource.NAMES:
                    return _to_names(data)
                case other:
                    raise not_offered(self.name, other)


# --- the page -------------------------------------------------------------------------------------------------------

_Small = Annotated[int, Meta(ge=0, le=9_999)]
_Id = Annotated[int, Meta(ge=0, le=2**53)]
#: "Over.ball" as a number: 19.4 is nineteen overs and four balls. It is never calculated with.
_OverBall = Annotated[float, Meta(ge=0, le=999)]


class _Team(Struct, frozen=True):
    id: _Id
    longName: str


class _Player(Struct, frozen=True):
    id: _Id
    longName: str


class _TeamEntry(Struct, frozen=True):
    team: _Team
    score: str | None = None
    scoreInfo: str | None = None


class _Match(Struct, frozen=True):
    objectId: _Id
    state: str
    status: str
    teams: list[_TeamEntry]
    statusText: str | None = None
    format: str | None = None
    liveInning: _Small | None = None
    liveOvers: _OverBall | None = None
    startTime: datetime | None = None


class _Ball(Struct, frozen=True):
    id: _Id
    inningNumber: _Small
    oversActual: _OverBall
    overNumber: Annotated[int, Meta(ge=1, le=999)]
    ballNumber: Annotated[int, Meta(ge=1, le=99)]
    batsmanRuns: _Small
    isFour: bool
    isSix: bool
    isWicket: bool
    byes: _Small
    legbyes: _Small
    wides: _Small
    noballs: _Small
    penalties: _Small
    batsmanPlayerId: _Id | None = None
    bowlerPlayerId: _Id | None = None
    outPlayerId: _Id | None = None
    dismissalType: int | None = None
    dismissalText: "_DismissalText | None" = None


class _DismissalText(Struct, frozen=True):
    short: str | None = None


class _Over(Struct, frozen=True):
    overNumber: Annotated[int, Meta(ge=1, le=999)]
    overRuns: _Small
    isComplete: bool
    totalBalls: _Small
    totalRuns: _Small
    totalWickets: _Small
    bowlers: list[_Player] = []
    balls: list[_Ball] = []


class _Innings(Struct, frozen=True):
    inningNumber: Annotated[int, Meta(ge=1, le=99)]
    isCurrent: bool
    team: _Team
    runs: _Small
    wickets: _Small
    overs: _OverBall
    target: _Small | None = None
    totalOvers: _OverBall | None = None
    inningOvers: list[_Over] = []


class _Comments(Struct, frozen=True):
    ballComments: list[_Ball]
    superOverBallComments: list[_Ball] = []


class _Squad(Struct, frozen=True):
    players: list["_SquadPlayer"]


class _SquadPlayer(Struct, frozen=True):
    player: _Player


class _Squads(Struct, frozen=True):
    teamPlayers: list[_Squad]


class _Content(Struct, frozen=True):
    innings: list[_Innings]
    recentBallCommentary: _Comments | None = None
    superOverInnings: list[_Innings] = []
    matchPlayers: _Squads | None = None

    @property
    def all_innings(self) -> tuple[_Innings, ...]:
        return (*self.innings, *self.superOverInnings)

    @property
    def recent_balls(self) -> list[_Ball]:
        shown = self.recentBallCommentary
        return [*shown.superOverBallComments, *shown.ballComments] if shown else []


class _Data(Struct, frozen=True):
    match: _Match
    content: _Content


class _MatchData(Struct, frozen=True):
    data: _Data


class _ListContent(Struct, frozen=True):
    matches: list[_Match]


class _ListData(Struct, frozen=True):
    content: _ListContent


class _MatchPageProps(Struct, frozen=True):
    data: _MatchData


class _ListPageProps(Struct, frozen=True):
    data: _ListData


class _MatchProps(Struct, frozen=True):
    appPageProps: _MatchPageProps


class _ListProps(Struct, frozen=True):
    appPageProps: _ListPageProps


class _MatchPage(Struct, frozen=True):
    props: _MatchProps


class _ListPage(Struct, frozen=True):
    props: _ListProps


def _state_of(body: bytes) -> bytes:
    found = _STATE.search(body)
    if found is None:
        if is_challenge(body):
            raise SourceChallenged("a page that wants proof of a person, where data should be")
        start = body[:40].decode("utf-8", "replace")
        raise MalformedBody(f"the page has no embedded state; it starts {start!r}")
    return found[1]


# --- the scoreboard -------------------------------------------------------------------------------------------------


def _to_board(match: _Match, innings: tuple[_Innings, ...]) -> Board:
    status, headline = _status(match)
    result = result_in(match.statusText or match.status) if match.state == "POST" else None
    if match.state == "POST" and result is None:
        result = result_in(match.status)
    current = innings[-1] if innings else None
    pair = innings[(len(innings) - 1) // 2 * 2 :] if innings else ()
    teams = [str(entry.team.id) for entry in match.teams]
    batting = str(current.team.id) if current else ""
    return Board(
        source_id=str(match.objectId),
        status=MatchStatus.COMPLETED if result else status,
        headline=result.text if result else headline,
        batting=batting,
        bowling=next((team for team in teams if team != batting), "") if batting else "",
        first=_score(pair[0]) if pair else None,
        second=_score(pair[1]) if len(pair) > 1 else None,
        result=result,
        is_innings_over=result is not None or _INNINGS_OVER.search(headline) is not None,
        target=_target(current),
        match_format=match.format,
        start_at=match.startTime.astimezone(UTC) if match.startTime and match.startTime.tzinfo else None,
        fingerprint=_fingerprint(match),
    )


def _status(match: _Match) -> tuple[MatchStatus, str]:
    """Return what the site says of the play, and its words when that is not simply play."""
    match match.state:
        case "PRE":
            return MatchStatus.UPCOMING, ""
        case "LIVE" if match.status.lower() == "live":
            return MatchStatus.LIVE, ""
        case "LIVE" | "POST":
            return MatchStatus.BREAK, match.status
        case _:
            raise LayoutChanged(f"the match is in state {match.state[:20]!r}")


def _fingerprint(match: _Match) -> str:
    """Return what a listing and a match page both show and a ball always changes."""
    scores = [f"{entry.team.id}:{entry.score}:{entry.scoreInfo}" for entry in match.teams]
    return "|".join((match.state, match.status, str(match.liveInning), str(match.liveOvers), *scores))


def _score(innings: _Innings) -> InningsScore:
    return InningsScore(runs=innings.runs, wickets=innings.wickets, overs=_over_ball(innings.overs))


def _target(innings: _Innings | None) -> Target | None:
    if innings is None or not innings.target or innings.totalOvers is None:
        return None
    return Target(runs=innings.target, overs=_over_ball(innings.totalOvers))


def _over_ball(number: float) -> Overs:
    """Read 19.4 as (19, 4) from its digits: as a fraction it would be something else."""
    over, _, ball = repr(float(number)).partition(".")
    if not (over.isdecimal() and len(ball) == 1):
        raise LayoutChanged(f"{number!r} is no over and ball")
    return Overs(int(over), int(ball))


# --- balls and overs ------------------------------------------------------------------------------------------------


def _to_feed(content: _Content) -> FeedPage:
    names = _players(content)
    recent = tuple(_to_ball(ball, names) for ball in content.recent_balls)
    return FeedPage(
        items=recent,
        next_before=None,
        is_window=True,
        detached=(*_first_overs(content, names), *_overs(content.all_innings)),
    )


def _to_ball(ball: _Ball, names: dict[str, str]) -> BallItem:
    over = ball.overNumber - 1
    label = _over_ball(ball.oversActual)
    if label.over != over:
        raise LayoutChanged(f"ball {ball.id} is labelled {label} in over {over}")
    delivery = Delivery(
        label=label,
        runs=Runs(
            batter=ball.batsmanRuns,
            wides=ball.wides,
            noballs=ball.noballs,
            byes=ball.byes,
            legbyes=ball.legbyes,
            penalty=ball.penalties,
        ),
        boundary=4 if ball.isFour else 6 if ball.isSix else None,
        batter=_key(ball.batsmanPlayerId),
        bowler=_key(ball.bowlerPlayerId),
        wickets=tuple(_wickets(ball, names)),
    )
    return BallItem(id=ball.id, innings=ball.inningNumber, over=over, nth=ball.ballNumber, delivery=delivery)


def _wickets(ball: _Ball, names: dict[str, str]) -> Iterator[Wicket]:
    if ball.isWicket:
        key = _key(ball.outPlayerId)
        words = (ball.dismissalText.short if ball.dismissalText else None) or ""
        numbered = _NUMBERED.get(ball.dismissalType or 0, Dismissal.OTHER)
        yield Wicket(
            kind=_DISMISSALS.get(words.lower(), numbered),
            player_out=names.get(key or "", key or "unknown"),
            player_key=key,
        )


def _first_overs(content: _Content, names: dict[str, str]) -> Iterator[BallItem]:
    for innings in content.all_innings:
        for over in innings.inningOvers:
            yield from (_to_ball(ball, names) for ball in over.balls)


def _overs(all_innings: Iterable[_Innings]) -> Iterator[OverItem]:
    for innings in all_innings:
        balls_before = 0
        for over in innings.inningOvers:
            if over.isComplete:
                yield _to_over(innings.inningNumber, over, over.totalBalls - balls_before)
            balls_before = over.totalBalls


def _to_over(innings: int, over: _Over, balls: int) -> OverItem:
    summary = OverSummary(
        runs=over.overRuns,
        score=Score(runs=over.totalRuns, wickets=over.totalWickets),
        bowler=_key(over.bowlers[0].id) if over.bowlers else None,
        balls=max(0, balls),
    )
    index = over.overNumber - 1
    return OverItem(id=0, innings=innings, over=index, summary=summary, source_event_id=f"over-{innings}-{index}")


def _to_scorecard(all_innings: tuple[_Innings, ...]) -> Scorecard:
    return Scorecard(
        innings=tuple(
            ScorecardInnings(number=innings.inningNumber, team=str(innings.team.id), score=_score(innings))
            for innings in all_innings
        )
    )


def _to_names(data: _Data) -> Names:
    teams = {str(entry.team.id): normalize("NFC", entry.team.longName) for entry in data.match.teams}
    return Names(players=_players(data.content), teams=teams)


def _players(content: _Content) -> dict[str, str]:
    squads = content.matchPlayers.teamPlayers if content.matchPlayers else []
    listed = (entry.player for squad in squads for entry in squad.players)
    return {str(player.id): normalize("NFC", player.longName.strip()) for player in listed if player.longName.strip()}


def _key(number: int | None) -> str | None:
    return None if number is None else str(number)
