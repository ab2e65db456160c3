"""espncricinfo's balls, overs and names: the last twenty balls, each first over, and the overs' sums."""

from collections.abc import Iterable, Iterator

from longstop.errors import LayoutChanged
from longstop.sources.espncricinfo.board import over_ball
from longstop.sources.espncricinfo.page import Ball, Content, Data, Innings, Over
from longstop.sources.wire import tidy
from longstop.sports.cricket.model import (
    BallItem,
    Delivery,
    Dismissal,
    EventListPage,
    Names,
    OverItem,
    OverSummary,
    Runs,
    Score,
    Wicket,
)

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


def to_feed(content: Content) -> EventListPage:
    names = _players(content)
    recent = tuple(_to_ball(ball, names) for ball in content.recent_balls)
    return EventListPage(
        items=recent,
        next_before=None,
        is_window=True,
        detached=(*_first_overs(content, names), *_overs(content.all_innings)),
    )


def _to_ball(ball: Ball, names: dict[str, str]) -> BallItem:
    over = ball.overNumber - 1
    label = over_ball(ball.oversActual)
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


def _wickets(ball: Ball, names: dict[str, str]) -> Iterator[Wicket]:
    if ball.isWicket:
        key = _key(ball.outPlayerId)
        words = (ball.dismissalText.short if ball.dismissalText else None) or ""
        numbered = _NUMBERED.get(ball.dismissalType or 0, Dismissal.OTHER)
        yield Wicket(
            kind=_DISMISSALS.get(words.lower(), numbered),
            player_out=names.get(key or "", key or "unknown"),
            player_key=key,
        )


def _first_overs(content: Content, names: dict[str, str]) -> Iterator[BallItem]:
    for innings in content.all_innings:
        for over in innings.inningOvers:
            yield from (_to_ball(ball, names) for ball in over.balls)


def _overs(all_innings: Iterable[Innings]) -> Iterator[OverItem]:
    for innings in all_innings:
        balls_before = 0
        for over in innings.inningOvers:
            if over.isComplete:
                yield _to_over(innings.inningNumber, over, over.totalBalls - balls_before)
            balls_before = over.totalBalls


def _to_over(innings: int, over: Over, balls: int) -> OverItem:
    summary = OverSummary(
        runs=over.overRuns,
        score=Score(runs=over.totalRuns, wickets=over.totalWickets),
        bowler=_key(over.bowlers[0].id) if over.bowlers else None,
        balls=max(0, balls),
    )
    index = over.overNumber - 1
    return OverItem(id=0, innings=innings, over=index, summary=summary, source_event_id=f"over-{innings}-{index}")


def to_names(data: Data) -> Names:
    teams = {str(entry.team.id): tidy(entry.team.longName) for entry in data.match.teams}
    return Names(players=_players(data.content), teams=teams)


def _players(content: Content) -> dict[str, str]:
    squads = content.matchPlayers.teamPlayers if content.matchPlayers else []
    listed = (entry.player for squad in squads for entry in squad.players)
    return {str(player.id): tidy(player.longName) for player in listed if player.longName.strip()}


def _key(number: int | None) -> str | None:
    return None if number is None else str(number)
