"""Whether lists, line-ups and figures are believed: none of them carries the name of a match."""

import msgspec
import pytest

from longstop.errors import ImpossibleObservation, WrongMatch
from longstop.model.match import MatchStatus
from longstop.sports.football.model import (
    Card,
    CardKind,
    FootballBoard,
    FootballState,
    FootballTeam,
    Goal,
    GoalKind,
    Goals,
    Incident,
    Incidents,
    LineupPlayer,
    Lineups,
    PeriodEnd,
    PeriodScore,
    SeenIncident,
    Side,
    Squad,
    Statistic,
    Statistics,
)
from longstop.sports.football.page_validation import (
    POLLS_AGAINST,
    POLLS_UNKNOWN,
    fits,
    is_known_squad,
    needs_lineups,
    polls_needed,
    validate_again,
    validate_statistics,
)
from tests.builders import event, fold, match_row


def figures(key: str, home: float, away: float, period: str = "ALL") -> Statistics:
    return Statistics(periods={period: {key: Statistic(home=home, away=away)}})


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


def board(home: int = 0, away: int = 0, *periods: tuple[int, int]) -> FootballBoard:
    parts = (PeriodScore(name=f"period{nth}", home=one, away=two) for nth, (one, two) in enumerate(periods, 1))
    return FootballBoard(
        source_id="77",
        status=MatchStatus.LIVE,
        headline="2nd half",
        home=FootballTeam(key="1", name="Fennick FC"),
        away=FootballTeam(key="2", name="Port Élan United"),
        score=Goals(home=home, away=away),
        periods=tuple(parts),
    )


def playing(*keys: str) -> Lineups:
    players = tuple(LineupPlayer(key=key, name=key) for key in keys)
    return Lineups(is_confirmed=False, home=Squad(starters=(), bench=players), away=None)


def state(*held: Incident, lineups: Lineups | None = None) -> FootballState:
    events = [event(f"card:home:{nth + 1}", str(nth), content) for nth, content in enumerate(held)]
    row = match_row()
    return FootballState(
        row=row, events=fold(*events), snapshot=None, findings=(), players={}, teams={}, lineups=lineups
    )


def ended(period: str, home: int, away: int) -> PeriodEnd:
    return PeriodEnd(period=period, minute=45, home=home, away=away)


@pytest.mark.parametrize(
    ("known", "incidents", "looks"),
    [
        # An empty list says nothing that could be wrong.
        (state(), listed(), 1),
        (state(lineups=playing("10", "11")), listed(card()), 1),
        (state(card()), listed(card()), 1),
        # The same player, corrected to another card.
        (state(card()), listed(card(CardKind.RED)), 1),
        # People alone do not vouch against the score: they play in other matches too.
        (state(card(player="9")), listed(goal()), POLLS_UNKNOWN),
        (state(lineups=playing("9", "10")), listed(goal(), card()), POLLS_UNKNOWN),
        # An event that we hold does, since the board may lag behind.
        (state(card()), listed(card(), goal()), 1),
        # A coach has no key, and an event that is equal in everything is the one that we hold.
        (state(card(player=None)), listed(card(player=None)), 1),
        # Without a goal the board says nothing about the list.
        (state(), listed(card()), POLLS_AGAINST),
        (state(lineups=playing("10")), listed(ended("HT", 0, 0), side=Side.HOME), POLLS_AGAINST),
        (state(), listed(goal()), POLLS_AGAINST),
        (state(lineups=playing("11", "12")), listed(card()), POLLS_AGAINST),
        # The number of the event is the same, and nothing else.
        (state(card(player="11")), listed(card()), POLLS_AGAINST),
    ],
)
def test_a_list_is_believed_the_later_the_more_speaks_against_it(
    known: FootballState, incidents: Incidents, looks: int
) -> None:
    assert polls_needed(known, board(), incidents) == looks


def test_a_board_without_a_score_does_not_help_people_to_vouch_for_a_list() -> None:
    unscored = msgspec.structs.replace(board(), score=None)

    assert polls_needed(state(lineups=playing("10")), unscored, listed(card())) == POLLS_UNKNOWN


@pytest.mark.parametrize(
    ("shown", "incidents"),
    [
        (board(1, 0), listed(goal())),
        (board(1, 0, (1, 0)), listed(goal(), ended("HT", 1, 0))),
        (board(1, 0, (1, 0), (0, 0)), listed(goal(), ended("HT", 1, 0), ended("FT", 1, 0))),
        # The halves are not shown, or the end is of something else than a half.
        (board(1, 0), listed(goal(), ended("HT", 0, 0))),
        (board(1, 0, (1, 0)), listed(goal(), ended("PEN", 4, 3))),
    ],
)
def test_a_list_with_the_goals_of_the_board_fits(shown: FootballBoard, incidents: Incidents) -> None:
    assert fits(shown, incidents)


@pytest.mark.parametrize(
    ("shown", "incidents"),
    [
        (board(), listed(goal())),
        (board(1, 0), listed(goal(), side=Side.AWAY)),
        (board(1, 0), listed(card())),
        (board(1, 0, (1, 0)), listed(goal(), ended("HT", 0, 0))),
        (board(1, 0, (0, 0), (1, 0)), listed(goal(), ended("HT", 0, 0), ended("FT", 0, 0))),
    ],
)
def test_a_list_with_other_goals_or_at_another_time_does_not_fit(shown: FootballBoard, incidents: Incidents) -> None:
    assert not fits(shown, incidents)


@pytest.mark.parametrize(
    ("known", "incidents", "is_wanted"),
    [
        (state(), listed(card()), True),
        (state(lineups=playing("11", "12")), listed(card()), True),
        (state(card()), listed(card()), False),
        (state(lineups=playing("10")), listed(card()), False),
        # Line-ups could say nothing of it.
        (state(), listed(card(player=None)), False),
        (state(), listed(), False),
        (state(), None, False),
    ],
)
def test_line_ups_are_wanted_where_nothing_else_speaks_for_a_list(
    known: FootballState, incidents: Incidents | None, *, is_wanted: bool
) -> None:
    assert needs_lineups(known, incidents) is is_wanted


@pytest.mark.parametrize(
    ("known", "lineups", "is_known"),
    [
        (state(), playing("10", "11"), False),
        (state(lineups=playing("20", "21")), playing("10", "11"), False),
        (state(lineups=playing("10", "12")), playing("10", "11"), True),
        # Whether they agree with stored data was checked before.
        (state(card()), playing("10", "11"), True),
        (state(), playing(), True),
    ],
)
def test_line_ups_are_known_by_events_or_by_line_ups_before(
    known: FootballState, lineups: Lineups, *, is_known: bool
) -> None:
    assert is_known_squad(known, lineups) is is_known


def test_two_readings_of_line_ups_may_differ_in_a_few_people_only() -> None:
    validate_again(playing("10", "11", "12"), playing("10", "11", "13"))

    with pytest.raises(WrongMatch, match="two responses have different line-ups"):
        validate_again(playing("10", "11", "12"), playing("20", "21", "12"))


@pytest.mark.parametrize("second", [playing(), playing("10")], ids=["no player", "one of three"])
def test_a_second_reading_of_line_ups_that_names_hardly_anybody_confirms_nothing(second: Lineups) -> None:
    with pytest.raises(WrongMatch):
        validate_again(playing("10", "11", "12"), second)
