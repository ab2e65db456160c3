"""What nobody saw: a list that shows its newest balls only leaves holes, and an over's own sum says how large they are.

The missing balls themselves stay unknown. Their sum is a record of its own, so that totals add up and nobody takes it
for balls; when the balls turn up after all, the record is withdrawn.
"""

from collections.abc import Mapping, Sequence

from longstop.model.cricket import Delivery, Dismissal, InferredBalls, InningsScore, OverSummary, Score
from longstop.model.event import Event, EventKey, EventKind
from longstop.pipeline.assemble import Sighting
from longstop.pipeline.timeline import lay_out, proposed


def inferred(
    known: Mapping[EventKey, Event], sighting: Sighting, innings: int, score: InningsScore | None
) -> dict[int, InferredBalls]:
    """Return, by over, what an innings gave beyond the deliveries held and seen; nothing for a list that shows all."""
    if not sighting.is_window:
        return {}
    summaries = _summaries(known, sighting, innings)
    if score is not None:
        summaries |= _last_part(summaries, score)
    deliveries = proposed(lay_out(known, sighting, innings))
    found: dict[int, InferredBalls] = {}
    for over, summary in sorted(summaries.items()):
        if not _is_inside(sighting, innings, over):
            rest = _rest(summary, summaries.get(over - 1), [each for each in deliveries if each.label.over == over])
            if rest is not None:
                found[over] = rest
    return found


def _summaries(known: Mapping[EventKey, Event], sighting: Sighting, innings: int) -> dict[int, OverSummary]:
    held = {
        key.over: event.content
        for key, event in known.items()
        if key.kind is EventKind.OVER and key.innings == innings and event.is_live
    }
    seen = {
        event.over: event.content
        for event in sighting.events
        if event.kind is EventKind.OVER and event.innings == innings
    }
    return {over: content for over, content in (held | seen).items() if isinstance(content, OverSummary)}


def _last_part(summaries: Mapping[int, OverSummary], score: InningsScore) -> dict[int, OverSummary]:
    """Return the over that an innings ended in, or is in: nobody sums it up, but the total less the rest does."""
    over, balls = score.overs.over, score.overs.ball
    before = summaries.get(over - 1)
    is_known = over in summaries or (before is None and over > 0)
    if is_known or score.runs < (start := before.score.runs if before else 0):
        return {}
    total = Score(runs=score.runs, wickets=score.wickets)
    return {over: OverSummary(runs=score.runs - start, score=total, balls=balls)}


def _is_inside(sighting: Sighting, innings: int, over: int) -> bool:
    """Return whether the window shows the whole over: then what does not add up is a mismatch, not a hole."""
    return sighting.window_from is not None and sighting.window_from <= (innings, over, 1)


def _rest(summary: OverSummary, before: OverSummary | None, shown: Sequence[Delivery]) -> InferredBalls | None:
    wickets = sum(wicket.kind is not Dismissal.RETIRED for each in shown for wicket in each.wickets)
    runs = summary.runs - sum(each.runs.total for each in shown)
    fallen = summary.score.wickets - (before.score.wickets if before else 0) - wickets
    balls = (summary.balls or 0) - sum(each.runs.is_legal for each in shown)
    if min(runs, fallen, balls) < 0 or not (runs or fallen or balls):
        return None
    return InferredBalls(runs=runs, wickets=fallen, balls=balls)
