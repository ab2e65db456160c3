"""Innings and result rows: no feed lists them, the scoreboard implies them."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from longstop.model.cricket import Delivery, InningsScore, InningsSummary, Overs
from longstop.model.event import Event, EventKey, EventKind
from longstop.pipeline.assemble import SeenEvent
from longstop.sources.base import Board, Scorecard


class Milestones(Struct, frozen=True, kw_only=True):
    """What has been reached by now, and what the source takes back."""

    reached: tuple[SeenEvent, ...] = ()
    withdrawn: tuple[EventKey, ...] = ()


NO_MILESTONES = Milestones()
_NO_BALL = Overs(0, 0)


def score_of(innings: int, newest: int, board: Board, scorecard: Scorecard | None) -> InningsScore | None:
    """Return the source's own total of an innings: from the scoreboard while it shows it, else from the scorecard."""
    return next(_scores(innings, newest, board, scorecard), None)


def _scores(innings: int, newest: int, board: Board, scorecard: Scorecard | None) -> Iterator[InningsScore]:
    if innings in pair_of(newest):
        shown = board.first if innings % 2 else board.second
        if shown is not None and not shown.is_blank:
            yield shown
    for item in scorecard.innings if scorecard else ():
        # A played innings of zeros is a site's filler, here as on the scoreboard.
        if item.number == innings and not item.score.is_blank:
            yield item.score


def pair_of(newest: int) -> tuple[int, int]:
    """Return the two innings that a scoreboard has room for: a super over is a new pair."""
    first = newest - 1 + newest % 2 if newest else 1
    return first, first + 1


def sides(newest: int, board: Board, scorecard: Scorecard | None) -> dict[int, str]:
    """Return who bats in which innings, as far as the source says."""
    known = {item.number: item.team for item in scorecard.innings} if scorecard else {}
    # Between innings a site may have turned the sides already, or not: only play is unambiguous.
    if newest and board.batting and not board.is_innings_over:
        known.setdefault(newest, board.batting)
        if newest % 2 == 0:
            known.setdefault(newest - 1, board.bowling)
    return known


def milestones(
    known: Mapping[EventKey, Event],
    newest: int,
    board: Board,
    scorecard: Scorecard | None,
    seen: Iterable[SeenEvent] = (),
) -> Milestones:
    """Return the innings that are closed and the result, as the source shows them now.

    A total of fewer balls than the list has is an older copy: no innings ends with it. Nor does the newest innings end
    with a total of which the scoreboard does not say that it is the end.
    """
    bowled = _bowled(known, seen)
    last_closed = _last_closed(known, newest, board, scorecard)
    batting = sides(newest, board, scorecard)
    reached: list[SeenEvent] = []
    last_told = last_closed if board.is_innings_over else min(last_closed, newest - 1)
    for innings in range(1, last_told + 1):
        shown = _scores(innings, newest, board, scorecard)
        score = next((each for each in shown if each.overs >= bowled.get(innings, _NO_BALL)), None)
        if score is not None:
            before = known.get(EventKey(EventKind.INNINGS, innings))
            # Who batted does not change: a board between two innings may have turned the sides already.
            reached.append(_closed(innings, score, _team_of(before) or batting.get(innings)))
    withdrawn = [
        key
        for key, event in known.items()
        if key.kind is EventKind.INNINGS and event.is_live and key.innings > last_closed
    ]
    if board.result is not None:
        reached.append(
            SeenEvent(kind=EventKind.RESULT, innings=0, over=0, source_event_id="result", content=board.result)
        )
    else:
        withdrawn.append(EventKey(EventKind.RESULT))
    return Milestones(reached=tuple(reached), withdrawn=tuple(withdrawn))


def _last_closed(known: Mapping[EventKey, Event], newest: int, board: Board, scorecard: Scorecard | None) -> int:
    """Return the last innings that has ended.

    It stays so until another ball of it is shown: sites clear "Innings Break" before the next innings has a ball.
    """
    if board.is_innings_over:
        return newest
    closed = known.get(EventKey(EventKind.INNINGS, newest))
    if closed is None or not closed.is_live or not isinstance(closed.content, InningsSummary):
        return newest - 1
    score = score_of(newest, newest, board, scorecard)
    return newest - 1 if score and score.overs > closed.content.overs else newest


def _bowled(known: Mapping[EventKey, Event], seen: Iterable[SeenEvent]) -> dict[int, Overs]:
    """Return the label of the last legal ball of every innings, among those that we hold or see."""
    held = [(key.innings, event.content) for key, event in known.items() if event.is_live]
    last: dict[int, Overs] = {}
    for innings, content in (*held, *((event.innings, event.content) for event in seen)):
        if isinstance(content, Delivery) and content.runs.is_legal:
            last[innings] = max(last.get(innings, _NO_BALL), content.label)
    return last


def _closed(innings: int, score: InningsScore, team: str | None) -> SeenEvent:
    content = InningsSummary(team=team, runs=score.runs, wickets=score.wickets, overs=score.overs)
    return SeenEvent(
        kind=EventKind.INNINGS, innings=innings, over=0, source_event_id=f"innings-{innings}", content=content
    )


def _team_of(event: Event | None) -> str | None:
    return event.content.team if event and isinstance(event.content, InningsSummary) else None
