"""Compares the goals of the events with the goals on the board. Pure."""

from collections.abc import Iterable

from longstop.model.data_finding import Finding, FindingKind
from longstop.sports.football.model import Difference, FootballState, FootballView, Goal, Goals, Incidents, Side


def differences(listed: Goals, shown: Goals | None) -> frozenset[Difference]:
    """Return the sides whose goals differ between events and board; none if the board has no score."""
    if shown is None:
        return frozenset()
    pairs = ((side, listed.of(side), shown.of(side)) for side in Side)
    return frozenset(pair for pair in pairs if pair[1] != pair[2])


def goals_in(incidents: Incidents) -> Goals:
    sides = [item.side for item in incidents.items if isinstance(item.content, Goal)]
    return Goals(home=sides.count(Side.HOME), away=sides.count(Side.AWAY))


def disagreement(state: FootballState, seen: FootballView) -> frozenset[Difference]:
    """Return how board and list differ if everything shown is accepted."""
    return differences(state.goals if seen.incidents is None else goals_in(seen.incidents), seen.board.score)


def mismatches(off: Iterable[Difference]) -> Iterable[Finding]:
    for side, listed, shown in sorted(off):
        detail = f"{listed} goals are listed, the board shows {shown}"
        yield Finding(kind=FindingKind.MISMATCH, place=side.value, detail=detail)
