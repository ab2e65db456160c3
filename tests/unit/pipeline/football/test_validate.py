"""Whether figures are believed: they carry no name of a match, and are laid against the list of incidents."""

import pytest

from longstop.errors import ImpossibleObservation, WrongMatch
from longstop.model.football import Card, CardKind, Goal, GoalKind, Incident, Side
from longstop.pipeline.football.validate import validate_statistics
from longstop.sources.base import Incidents, SeenIncident, Statistic, Statistics


def figures(key: str, home: float, away: float, period: str = "ALL") -> Statistics:
    return Statistics(periods={period: (Statistic(key=key, home=home, away=away),)})


def listed(*contents: Incident, side: Side = Side.HOME) -> Incidents:
    items = (SeenIncident(source_event_id=str(nth), side=side, content=each) for nth, each in enumerate(contents))
    return Incidents(items=tuple(items))


def card(kind: CardKind = CardKind.YELLOW, player: str | None = "10") -> Card:
    return Card(minute=30, added=None, player=player, card=kind)


def goal(how: GoalKind = GoalKind.REGULAR) -> Goal:
    return Goal(minute=20, added=None, scorer="9", assist=None, how=how, home=1, away=0)


@pytest.mark.parametrize(
    ("statistics", "incidents"),
    [
        (figures("yellowCards", 2, 0), listed(card(), card())),
        # Either page may be the younger one.
        (figures("yellowCards", 1, 0), listed(card(), card())),
        (figures("yellowCards", 3, 1), listed(card(), card())),
        # A second yellow card is one; a red one, and a coach's, are none.
        (figures("yellowCards", 3, 0), listed(card(), card(CardKind.SECOND_YELLOW))),
        (figures("yellowCards", 0, 0), listed(card(CardKind.RED), card(CardKind.RED))),
        (figures("yellowCards", 0, 0), listed(card(player=None), card(player=None))),
        # No shot on target brings an own goal.
        (figures("shotsOnGoal", 0, 0), listed(goal(GoalKind.OWN_GOAL), goal(GoalKind.OWN_GOAL))),
        (figures("shotsOnGoal", 1, 0), listed(goal(), goal())),
        (figures("shotsOnGoal", 9, 9), listed(goal())),
        # Of a half alone the list is not asked; without a list nothing is known.
        (figures("yellowCards", 9, 9, "1ST"), listed(card())),
        (figures("yellowCards", 9, 9), None),
        (figures("ballPossession", 60, 41), None),
    ],
)
def test_figures_that_fit_what_is_listed_are_believed(statistics: Statistics, incidents: Incidents | None) -> None:
    validate_statistics(incidents, statistics)


@pytest.mark.parametrize(
    ("statistics", "incidents"),
    [
        (figures("yellowCards", 2, 0), listed()),
        (figures("yellowCards", 0, 2), listed(card(), card())),
        (figures("yellowCards", 0, 0), listed(card(), card(CardKind.SECOND_YELLOW))),
        (figures("shotsOnGoal", 0, 5), listed(goal(), goal(GoalKind.PENALTY))),
        (figures("shotsOnGoal", 5, 0), listed(goal(), goal(), side=Side.AWAY)),
    ],
)
def test_figures_that_contradict_the_list_are_of_another_match(statistics: Statistics, incidents: Incidents) -> None:
    with pytest.raises(WrongMatch, match="the statistics are of another match"):
        validate_statistics(incidents, statistics)


@pytest.mark.parametrize("statistics", [figures("ballPossession", 52, 50), figures("fouls", -1, 0, "1ST")])
def test_figures_that_cannot_be_true_are_refused(statistics: Statistics) -> None:
    with pytest.raises(ImpossibleObservation):
        validate_statistics(None, statistics)
