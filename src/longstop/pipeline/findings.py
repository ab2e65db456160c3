"""Honesty: what is missing or does not add up becomes a record that stays open until it is answered."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby

from longstop.model.cricket import Delivery, InferredBalls
from longstop.model.event import EventKind
from longstop.pipeline.state import MatchState
from longstop.pipeline.tally import Difference
from longstop.storage.base import Finding, FindingKind


def find(state: MatchState, differences: Mapping[int, Difference]) -> tuple[Finding, ...]:
    """Return what is wrong with a match as it would now be stored."""
    return (*_mismatches(differences), *_gaps(state))


def _mismatches(differences: Mapping[int, Difference]) -> Iterable[Finding]:
    for innings, difference in sorted(differences.items()):
        if difference:
            yield Finding(kind=FindingKind.MISMATCH, place=str(innings), detail=str(difference))


def _gaps(state: MatchState) -> Iterable[Finding]:
    unseen = {f"{event.key.innings}:{event.key.over}": event.content for event in state.live(EventKind.INFERRED)}
    for place, content in unseen.items():
        if isinstance(content, InferredBalls):
            detail = f"not shown: {content.balls} balls, {content.runs} runs, {content.wickets} wickets"
            yield Finding(kind=FindingKind.GAP, place=place, detail=detail)
    deliveries = [event for event in state.live(EventKind.DELIVERY) if isinstance(event.content, Delivery)]
    for innings, events in groupby(deliveries, key=lambda event: event.key.innings):
        found = gaps(innings, [event.content for event in events if isinstance(event.content, Delivery)])
        yield from (finding for finding in found if finding.place not in unseen)


def gaps(innings: int, deliveries: Sequence[Delivery]) -> Iterable[Finding]:
    """Return the balls that must have been bowled, by the labels of those after them, and are not there."""
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


def token(finding: Finding) -> str:
    """Return how a finding is remembered between two looks."""
    return f"finding {finding.kind} {finding.place} {finding.detail}"


def confirmed(found: Iterable[Finding], suspects: Collection[str], is_open: Collection[Finding]) -> tuple[Finding, ...]:
    """Return the findings that two looks agree on: endpoints are read one after the other and may be out of step."""
    return tuple(finding for finding in found if finding in is_open or token(finding) in suspects)
