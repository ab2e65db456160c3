"""Football's nouns: what a result says, what counts as a step back, and the order of play."""

import pytest

from longstop.sports.football.model import (
    Card,
    CardKind,
    FootballResult,
    Goal,
    GoalKind,
    Goals,
    Kick,
    Outcome,
    PeriodEnd,
    Side,
    Substitution,
    is_step_back,
    order_of_play,
)
from tests.builders import event


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (FootballResult(outcome=Outcome.HOME, after="FT", home=2, away=1), "home won 2-1 FT"),
        (FootballResult(outcome=Outcome.DRAW, after="FT", home=0, away=0), "draw 0-0 FT"),
        (
            FootballResult(outcome=Outcome.AWAY, after="AP", home=1, away=1, home_penalties=0, away_penalties=3),
            "away won 1-1 (0-3) AP",
        ),
        (FootballResult(outcome=Outcome.ABANDONED, after="abandoned", home=1, away=0), "abandoned 1-0"),
        (FootballResult(outcome=Outcome.CANCELLED, after="cancelled"), "cancelled"),
    ],
)
def test_a_result_is_put_into_words(result: FootballResult, text: str) -> None:
    assert result.text == text


def test_a_score_is_asked_by_side() -> None:
    score = Goals(home=2, away=1)

    assert (score.of(Side.HOME), score.of(Side.AWAY), score.total) == (2, 1, 3)


def goal(home: int, away: int) -> Goal:
    return Goal(minute=1, how=GoalKind.REGULAR, home=home, away=away)


@pytest.mark.parametrize(
    ("old", "new", "is_back"),
    [
        (goal(2, 0), goal(1, 0), True),
        (goal(1, 1), goal(2, 0), True),
        (goal(1, 0), goal(1, 0), False),
        (goal(1, 0), goal(2, 0), False),
        (PeriodEnd(period="HT", home=1, away=0), PeriodEnd(period="HT", home=0, away=0), True),
        (
            Kick(sequence=1, is_scored=True, home=1, away=0),
            Kick(sequence=1, is_scored=False, home=0, away=0),
            True,
        ),
        (Card(minute=1, card=CardKind.RED), Card(minute=1, card=CardKind.YELLOW), True),
        (Card(minute=1, card=CardKind.YELLOW), Card(minute=1, card=CardKind.SECOND_YELLOW), False),
        (Substitution(minute=1, player_in="1"), Substitution(minute=1), False),
    ],
)
def test_a_lower_score_and_a_milder_card_are_steps_back(old: object, new: object, is_back: bool) -> None:
    assert is_step_back(old, new) is is_back


def test_events_sort_by_the_clock() -> None:
    events = [
        event("goal:home:2", "1", scored_at(minute=44)),
        event("goal:home:1", "2", scored_at(minute=45, added=2)),
        event("period:1", "3", PeriodEnd(period="HT", minute=45, home=2, away=0)),
        event("goal:away:1", "4", scored_at(minute=46)),
        event("card:home:1", "5", Card(minute=None, card=CardKind.YELLOW)),
        event("kick:away:1", "6", kick(1)),
        event("kick:home:1", "7", kick(2)),
        event("period:2", "8", PeriodEnd(period="PEN", minute=None, home=1, away=1)),
        event("result", "9", FootballResult(outcome=Outcome.HOME, after="AP")),
    ]

    mixed = [*events[5:], *reversed(events[:5])]

    assert [each.source_event_id for each in sorted(mixed, key=order_of_play)] == list("123456789")


def scored_at(minute: int, added: int | None = None) -> Goal:
    return Goal(minute=minute, added=added, how=GoalKind.REGULAR, home=1, away=0)


def kick(sequence: int) -> Kick:
    return Kick(sequence=sequence, is_scored=True, home=1, away=0)
