"""Converts a page of espncricinfo to views: scoreboard, scorecard, event list and names.

The event list has the newest balls, the first over of each innings, and a summary of every over.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC

from longstop.errors import LayoutChanged
from longstop.model.match import MatchStatus
from longstop.sources.bodies_and_urls import clean_name
from longstop.sources.espncricinfo.embedded_json_fields import (
    EspnBall,
    EspnBatter,
    EspnBowler,
    EspnContent,
    EspnData,
    EspnInnings,
    EspnLiveSummary,
    EspnMatch,
    EspnOver,
)
from longstop.sports.cricket.model import (
    Batter,
    Board,
    Bowler,
    Delivery,
    Dismissal,
    EventListPage,
    InningsScore,
    Names,
    Overs,
    OverSummary,
    Runs,
    RunTarget,
    Score,
    Scorecard,
    ScorecardInnings,
    SeenEvent,
    Wicket,
    ends_innings,
    result_in,
)


def to_board(match: EspnMatch, innings: tuple[EspnInnings, ...] = (), summary: EspnLiveSummary | None = None) -> Board:
    status, headline = _status(match)
    result = result_in(match.statusText or match.status) if match.state == "POST" else None
    if match.state == "POST" and result is None:
        result = result_in(match.status)
    current = innings[-1] if innings else None
    pair = innings[(len(innings) - 1) // 2 * 2 :] if innings else ()
    teams = [str(entry.team.id) for entry in match.teams]
    is_live = match.state == "LIVE"
    batting = str(current.team.id) if current else next(iter(teams), "")
    return Board(
        source_id=str(match.objectId),
        status=MatchStatus.COMPLETED if result else status,
        headline=result.text if result else headline,
        batting=batting,
        bowling=next((team for team in teams if team != batting), ""),
        is_batting_known=current is not None,
        first=_score(pair[0]) if pair else None,
        second=_score(pair[1]) if len(pair) > 1 else None,
        result=result,
        is_innings_over=ends_innings(headline, result),
        target=_target(current),
        match_format=match.format,
        start_at=match.startTime.astimezone(UTC) if match.startTime and match.startTime.tzinfo else None,
        batters=tuple(_batters(summary.batsmen)) if summary and is_live else (),
        bowler=_bowler(summary.bowlers) if summary and is_live else None,
        fingerprint=_fingerprint(match),
    )


def _batters(shown: Iterable[EspnBatter]) -> Iterator[Batter]:
    for each in shown:
        if each.runs is not None and each.balls is not None:
            yield Batter(key=str(each.player.id), runs=each.runs, balls=each.balls, on_strike=each.currentType == 1)


def _bowler(shown: Iterable[EspnBowler]) -> Bowler | None:
    now = next((bowler for bowler in shown if bowler.currentType == 1), None)
    if now is None or now.conceded is None or now.balls is None or now.wickets is None:
        return None
    return Bowler(key=str(now.player.id), runs=now.conceded, balls=now.balls, wickets=now.wickets)


def _status(match: EspnMatch) -> tuple[MatchStatus, str]:
    """Return the status, and the site's text if there is a break."""
    match match.state:
        case "PRE":
            return MatchStatus.UPCOMING, ""
        case "LIVE" if match.status.lower() == "live":
            return MatchStatus.LIVE, ""
        case "LIVE" | "POST":
            return MatchStatus.BREAK, match.status
        case _:
            raise LayoutChanged(f"unknown match state {match.state[:20]!r}")


def _fingerprint(match: EspnMatch) -> str:
    """Return the fields that listing and match page share and that every ball changes."""
    scores = [f"{entry.team.id}:{entry.score}:{entry.scoreInfo}" for entry in match.teams]
    return "|".join((match.state, match.status, str(match.liveInning), str(match.liveOvers), *scores))


def _score(innings: EspnInnings) -> InningsScore:
    return InningsScore(runs=innings.runs, wickets=innings.wickets, overs=over_ball(innings.overs))


def _target(innings: EspnInnings | None) -> RunTarget | None:
    if innings is None or not innings.target or innings.totalOvers is None:
        return None
    return RunTarget(runs=innings.target, overs=over_ball(innings.totalOvers))


def over_ball(number: float) -> Overs:
    """Parse 19.4 as (19, 4) from its digits: 0.4 is four balls, not a fraction."""
    over, _, ball = repr(float(number)).partition(".")
    if not (over.isdecimal() and len(ball) == 1):
        raise LayoutChanged(f"cannot parse {number!r} as over and ball")
    return Overs(int(over), int(ball))


def to_scorecard(all_innings: tuple[EspnInnings, ...]) -> Scorecard:
    return Scorecard(
        innings=tuple(
            ScorecardInnings(number=innings.inningNumber, team=str(innings.team.id), score=_score(innings))
            for innings in all_innings
        )
    )


# --- event list and names -------------------------------------------------------------------------------------------

#: By text. The texts are more reliable than the numbers, of which only five were recorded.
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
#: By number, for the first overs, whose balls have no text; 5, 8 and 11 were not recorded.
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


def to_event_list(content: EspnContent) -> EventListPage:
    names = _players(content)
    recent = tuple(_to_ball(ball, names) for ball in content.recent_balls)
    return EventListPage(
        items=recent,
        next_before=None,
        is_window=True,
        detached=(*_first_overs(content, names), *_overs(content.all_innings)),
    )


def _to_ball(ball: EspnBall, names: dict[str, str]) -> SeenEvent:
    over = ball.overNumber - 1
    label = over_ball(ball.oversActual)
    if label.over != over:
        raise LayoutChanged(f"ball {ball.id} of over {over} has the label {label}")
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
    return SeenEvent(
        innings=ball.inningNumber, over=over, source_event_id=str(ball.id), content=delivery, nth=ball.ballNumber
    )


def _wickets(ball: EspnBall, names: dict[str, str]) -> Iterator[Wicket]:
    if ball.isWicket:
        key = _key(ball.outPlayerId)
        text = (ball.dismissalText.short if ball.dismissalText else None) or ""
        numbered = _NUMBERED.get(ball.dismissalType or 0, Dismissal.OTHER)
        yield Wicket(
            kind=_DISMISSALS.get(text.lower(), numbered),
            player_out=names.get(key or "", key or "unknown"),
            player_key=key,
        )


def _first_overs(content: EspnContent, names: dict[str, str]) -> Iterator[SeenEvent]:
    for innings in content.all_innings:
        for over in innings.inningOvers:
            yield from (_to_ball(ball, names) for ball in over.balls)


def _overs(all_innings: Iterable[EspnInnings]) -> Iterator[SeenEvent]:
    for innings in all_innings:
        balls_before = 0
        for over in innings.inningOvers:
            if over.isComplete:
                yield _to_over(innings.inningNumber, over, over.totalBalls - balls_before)
            balls_before = over.totalBalls


def _to_over(innings: int, over: EspnOver, balls: int) -> SeenEvent:
    summary = OverSummary(
        runs=over.overRuns,
        score=Score(runs=over.totalRuns, wickets=over.totalWickets),
        bowler=_key(over.bowlers[0].id) if over.bowlers else None,
        balls=max(0, balls),
    )
    index = over.overNumber - 1
    return SeenEvent(innings=innings, over=index, source_event_id=f"over-{innings}-{index}", content=summary)


def to_names(data: EspnData) -> Names:
    teams = {str(entry.team.id): clean_name(entry.team.longName) for entry in data.match.teams}
    return Names(players=_players(data.content), teams=teams)


def _players(content: EspnContent) -> dict[str, str]:
    squads = content.matchPlayers.teamPlayers if content.matchPlayers else []
    listed = (
        *(batter.player for batter in content.summary.batsmen),
        *(bowler.player for bowler in content.summary.bowlers),
        *(entry.player for squad in squads for entry in squad.players),
    )
    return {str(player.id): clean_name(player.longName) for player in listed if player.longName.strip()}


def _key(number: int | None) -> str | None:
    return None if number is None else str(number)
