"""Totals of an innings: sums of events, comparison with the scoreboard, gaps. Pure.

Also derives the events that no list shows: innings and result (`milestones`, from the scoreboard), and sums of balls
that a window did not show (`inferred`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from longstop.matches.event_versions_and_confirmation import awaited
from longstop.model.data_finding import Finding, FindingKind
from longstop.model.event import RESULT, Event, EventKey
from longstop.sports.cricket.align import POLLS_AGAINST_EVENTS, Milestones, lay_out, proposed
from longstop.sports.cricket.model import (
    Board,
    CricketKind,
    CricketState,
    Delivery,
    Difference,
    Dismissal,
    InferredBalls,
    InningsScore,
    InningsSummary,
    Overs,
    OverSummary,
    Score,
    Scorecard,
    SeenEvent,
    SeenEvents,
    innings_of,
    live,
    over_of,
)

_NO_BALL = Overs(0, 0)


class Tally(Struct, frozen=True, kw_only=True):
    """The sum of an innings' deliveries."""

    runs: int
    #: Wickets that every scoreboard counts.
    wickets: int
    #: Retired batters. Hurt does not count as a wicket, out does; the source does not say which.
    retired: int
    overs: Overs


def tally(
    deliveries: Sequence[Delivery], ended_overs: Collection[int], unseen: Mapping[int, InferredBalls] | None = None
) -> Tally:
    """Sum up deliveries in the order of play.

    `ended_overs` are the overs with a summary, `unseen` the sums of balls that were not shown, by over.
    """
    sums = (unseen or {}).values()
    fallen = [wicket.kind for delivery in deliveries for wicket in delivery.wickets]
    return Tally(
        runs=sum(delivery.runs.total for delivery in deliveries) + sum(each.runs for each in sums),
        wickets=sum(kind is not Dismissal.RETIRED for kind in fallen) + sum(each.wickets for each in sums),
        retired=sum(kind is Dismissal.RETIRED for kind in fallen),
        overs=_overs(deliveries, ended_overs, unseen or {}),
    )


def _overs(deliveries: Sequence[Delivery], ended_overs: Collection[int], unseen: Mapping[int, InferredBalls]) -> Overs:
    reached = {delivery.label.over for delivery in deliveries[-1:]} | set(ended_overs) | set(unseen)
    last = max(reached, default=None)
    if last is None:
        return Overs(0, 0)
    if last in ended_overs:
        # Umpires miscount: an over may end after five balls or seven.
        return Overs(last + 1, 0)
    legal = sum(each.runs.is_legal for each in deliveries if each.label.over == last)
    return Overs(last, legal + (unseen[last].balls if last in unseen else 0))


def compare(ours: Tally, score: InningsScore) -> Difference:
    """Return how much more the scoreboard shows than the events."""
    counted = min(max(score.wickets, ours.wickets), ours.wickets + ours.retired)
    return Difference(
        runs=score.runs - ours.runs,
        wickets=score.wickets - counted,
        balls=score.overs.balls - ours.overs.balls,
    )


# --- innings and result ------------------------------------------------------------------------------------------


def score_of(innings: int, newest: int, board: Board, scorecard: Scorecard | None) -> InningsScore | None:
    """Return the source's total of an innings: from the scoreboard if it shows it, else from the scorecard."""
    return next(_scores(innings, newest, board, scorecard), None)


def _scores(innings: int, newest: int, board: Board, scorecard: Scorecard | None) -> Iterator[InningsScore]:
    if innings in pair_of(newest):
        shown = board.first if innings % 2 else board.second
        if shown is not None and not shown.is_blank:
            yield shown
    for item in scorecard.innings if scorecard else ():
        # All zeros is a placeholder of the site, here as on the scoreboard.
        if item.number == innings and not item.score.is_blank:
            yield item.score


def pair_of(newest: int) -> tuple[int, int]:
    """Return the two innings that a scoreboard shows; a super over is a new pair."""
    first = newest - 1 + newest % 2 if newest else 1
    return first, first + 1


def sides(
    state: CricketState, newest: int, board: Board, scorecard: Scorecard | None
) -> tuple[dict[int, str], frozenset[str]]:
    """Return the batting side of each innings, and the tokens of changes that await a second poll.

    Sites sometimes swap the two teams. The scoreboard during play counts unless the scorecard contradicts it, and
    replaces a known side only after five polls. A scorecard alone only adds unknown sides.
    """
    known, suspects = dict(state.sides), set[str]()
    shown = {item.number: item.team for item in scorecard.innings} if scorecard else {}
    play = sides_in_play(state, newest, board, scorecard)
    for innings, team in play.items():
        if shown.get(innings, team) != team:
            continue
        suspect = None
        if known.get(innings, team) != team:
            suspect = awaited(f"side {innings} {team}", state.suspects, POLLS_AGAINST_EVENTS)
        if suspect is None:
            known[innings] = team
        else:
            suspects.add(suspect)
    for innings in shown.keys() - play.keys():
        known.setdefault(innings, shown[innings])
    return known, frozenset(suspects)


def sides_in_play(state: CricketState, newest: int, board: Board, scorecard: Scorecard | None) -> dict[int, str]:
    """Return the batting sides by the scoreboard; none between innings, when it may or may not have swapped them."""
    is_known = board.batting and board.is_batting_known
    if not newest or not is_known or _last_closed(state.events, newest, board, scorecard) >= newest:
        return {}
    return {newest: board.batting, newest - 1: board.bowling} if newest % 2 == 0 else {newest: board.batting}


def milestones(
    known: Mapping[EventKey, Event],
    newest: int,
    board: Board,
    scorecard: Scorecard | None,
    seen: Iterable[SeenEvent] = (),
    batting: Mapping[int, str] | None = None,
) -> Milestones:
    """Return the closed innings and the result, as the source shows them now.

    A total with fewer balls than the list is an older copy and closes no innings. The newest innings is closed only if
    the scoreboard says so.
    """
    bowled = _bowled(known, seen)
    last_closed = _last_closed(known, newest, board, scorecard)
    reached: list[SeenEvent] = []
    last_told = last_closed if board.is_innings_over else min(last_closed, newest - 1)
    for innings in range(1, last_told + 1):
        shown = _scores(innings, newest, board, scorecard)
        score = next((each for each in shown if each.overs >= bowled.get(innings, _NO_BALL)), None)
        if score is not None:
            reached.append(_closed(innings, score, (batting or {}).get(innings)))
    withdrawn = [
        key
        for key, event in known.items()
        if key.kind == CricketKind.INNINGS and event.is_live and innings_of(key) > last_closed
    ]
    if board.result is not None:
        reached.append(SeenEvent(innings=0, over=0, source_event_id="result", content=board.result))
    else:
        withdrawn.append(RESULT)
    return Milestones(reached=tuple(reached), withdrawn=tuple(withdrawn))


def _last_closed(known: Mapping[EventKey, Event], newest: int, board: Board, scorecard: Scorecard | None) -> int:
    """Return the last innings that has ended.

    It stays ended until another ball of it is shown: sites clear "Innings Break" before the next innings has a ball.
    """
    if board.is_innings_over:
        return newest
    closed = known.get(EventKey(CricketKind.INNINGS, (newest,)))
    if closed is None or not closed.is_live or not isinstance(closed.content, InningsSummary):
        return newest - 1
    score = score_of(newest, newest, board, scorecard)
    return newest - 1 if score and score.overs.balls > closed.content.overs.balls else newest


def _bowled(known: Mapping[EventKey, Event], seen: Iterable[SeenEvent]) -> dict[int, Overs]:
    """Return the label of the last legal ball of every innings, stored or shown."""
    held = ((innings_of(event.key), ball) for event, ball in live(known, Delivery))
    shown = ((event.innings, event.content) for event in seen if isinstance(event.content, Delivery))
    last: dict[int, Overs] = {}
    for innings, ball in (*held, *shown):
        if ball.runs.is_legal:
            last[innings] = max(last.get(innings, _NO_BALL), ball.label)
    return last


def _closed(innings: int, score: InningsScore, team: str | None) -> SeenEvent:
    content = InningsSummary(team=team, runs=score.runs, wickets=score.wickets, overs=score.overs)
    return SeenEvent(innings=innings, over=0, source_event_id=f"innings-{innings}", content=content)


# --- balls that a window did not show -----------------------------------------------------------------------------


def inferred(
    known: Mapping[EventKey, Event], listed: SeenEvents, innings: int, score: InningsScore | None
) -> dict[int, InferredBalls]:
    """Return, by over, the sums of balls that are neither stored nor shown; empty for a complete list."""
    if not listed.is_window:
        return {}
    summaries = _summaries(known, listed, innings)
    if score is not None:
        summaries |= _last_part(summaries, score)
    deliveries = proposed(lay_out(known, listed, innings))
    found: dict[int, InferredBalls] = {}
    for over, summary in sorted(summaries.items()):
        if not _is_inside(listed, innings, over):
            rest = _rest(summary, summaries.get(over - 1), [each for each in deliveries if each.label.over == over])
            if rest is not None:
                found[over] = rest
    return found


def _summaries(known: Mapping[EventKey, Event], listed: SeenEvents, innings: int) -> dict[int, OverSummary]:
    held = {over_of(event.key): summary for event, summary in live(known, OverSummary, innings)}
    shown = (event for event in listed.events if event.innings == innings)
    return held | {event.over: event.content for event in shown if isinstance(event.content, OverSummary)}


def _last_part(summaries: Mapping[int, OverSummary], score: InningsScore) -> dict[int, OverSummary]:
    """Return the summary of the last, incomplete over: the total minus the completed overs."""
    over, balls = score.overs.over, score.overs.ball
    before = summaries.get(over - 1)
    if over in summaries or (before is None and over > 0):
        return {}
    start = before.score.runs if before else 0
    total = Score(runs=score.runs, wickets=score.wickets)
    return {over: OverSummary(runs=score.runs - start, score=total, balls=balls)}


def _is_inside(listed: SeenEvents, innings: int, over: int) -> bool:
    """Return whether the window shows the whole over: then a difference is a mismatch, not a gap."""
    return listed.window_from is not None and listed.window_from <= (innings, over, 1)


def _rest(summary: OverSummary, before: OverSummary | None, shown: Sequence[Delivery]) -> InferredBalls | None:
    wickets = sum(wicket.kind is not Dismissal.RETIRED for each in shown for wicket in each.wickets)
    runs = summary.runs - sum(each.runs.total for each in shown)
    fallen = summary.score.wickets - (before.score.wickets if before else 0) - wickets
    balls = (summary.balls or 0) - sum(each.runs.is_legal for each in shown)
    if balls <= 0 and min(runs, fallen, balls) < 0:
        return None  # the summary is older than the balls
    # A wicket or run that was taken back later may still be in the total of the over before.
    rest = InferredBalls(runs=max(0, runs), wickets=max(0, fallen), balls=balls)
    return rest if rest.runs or rest.wickets or rest.balls else None


# --- findings ------------------------------------------------------------------------------------------------------


def find(state: CricketState, differences: Mapping[int, Difference]) -> tuple[Finding, ...]:
    """Return the mismatches and gaps of a match."""
    return (*_mismatches(differences), *_gaps(state))


def _mismatches(differences: Mapping[int, Difference]) -> Iterable[Finding]:
    for innings, difference in sorted(differences.items()):
        if difference:
            yield Finding(kind=FindingKind.MISMATCH, place=str(innings), detail=str(difference))


def _gaps(state: CricketState) -> Iterable[Finding]:
    unseen = {
        f"{innings_of(event.key)}:{over_of(event.key)}": balls for event, balls in live(state.events, InferredBalls)
    }
    for place, balls in unseen.items():
        detail = f"not shown: {balls.balls} balls, {balls.runs} runs, {balls.wickets} wickets"
        yield Finding(kind=FindingKind.GAP, place=place, detail=detail)
    for innings, events in groupby(live(state.events, Delivery), key=lambda pair: innings_of(pair[0].key)):
        found = gaps(innings, [ball for _, ball in events])
        yield from (finding for finding in found if finding.place not in unseen)


def gaps(innings: int, deliveries: Sequence[Delivery]) -> Iterable[Finding]:
    """Return the balls that are missing, given the labels of later balls."""
    expected_over = 0
    for over, balls in groupby(deliveries, key=lambda delivery: delivery.label.over):
        for missing in range(expected_over, over):
            yield Finding(kind=FindingKind.GAP, place=f"{innings}:{missing}", detail="the whole over is missing")
        legal = [ball.label.ball for ball in balls if ball.runs.is_legal]
        absent = sorted(set(range(1, max(legal, default=0) + 1)) - set(legal))
        if absent:
            detail = f"missing: ball {', '.join(map(str, absent))}"
            yield Finding(kind=FindingKind.GAP, place=f"{innings}:{over}", detail=detail)
        expected_over = max(expected_over, over + 1)
