"""sofascore: what its pages say, and what they must never be taken to say."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from longstop.errors import (
    ImpossibleObservation,
    LayoutChanged,
    MalformedBody,
    SourceChallenged,
    SourceError,
    UsageError,
    WrongMatch,
)
from longstop.model import source_queries_and_answers
from longstop.model.match import MatchStatus
from longstop.model.source_queries_and_answers import Listing, Query
from longstop.sources.bodies_and_urls import read_body
from longstop.sources.sofascore.source import SofascoreSource
from longstop.sports.cricket.model import BALLS
from longstop.sports.football import model
from longstop.sports.football.model import (
    Card,
    CardKind,
    FootballBoard,
    FootballResult,
    Goal,
    GoalKind,
    Goals,
    Incidents,
    Kick,
    Lineups,
    MatchClock,
    MatchDetails,
    MissedPenalty,
    Outcome,
    PeriodEnd,
    PeriodScore,
    Side,
    Statistic,
    Statistics,
    Substitution,
    Tie,
    VarDecision,
)
from tests.builders import NOW, body
from tests.football_site import SOFASCORE_CONFIG, STATUSES, card, event, goal, period, player, squad

PAGES = Path(__file__).parents[3] / "pages" / "sofascore"
SOURCE = SofascoreSource(SOFASCORE_CONFIG)

LIST = Query(resource=source_queries_and_answers.LIST)
LIVE = Query(resource=source_queries_and_answers.LIVE, source_id="77")
INCIDENTS = Query(resource=model.INCIDENTS, source_id="77")
LINEUPS = Query(resource=model.LINEUPS, source_id="77")
STATISTICS = Query(resource=model.STATISTICS, source_id="77")
PAGE_OF = {
    LIST: "live_list.json",
    LIVE: "live_in_play.json",
    INCIDENTS: "incidents_in_play.json",
    LINEUPS: "lineups_confirmed.json",
    STATISTICS: "statistics_in_play.json",
}


def page(name: str) -> bytes:
    return (PAGES / name).read_bytes()


def board_of(shown: dict[str, Any]) -> FootballBoard:
    found = read_body(SOURCE, LIVE, body({"event": shown}))
    assert isinstance(found, FootballBoard)
    return found


def incidents_of(*oldest_first: dict[str, Any]) -> Incidents:
    found = read_body(SOURCE, INCIDENTS, body({"incidents": oldest_first[::-1]}))
    assert isinstance(found, Incidents)
    return found


def lineups_of(shown: dict[str, Any]) -> Lineups:
    found = read_body(SOURCE, LINEUPS, body(shown))
    assert isinstance(found, Lineups)
    return found


@pytest.mark.parametrize(
    ("ask", "path"),
    [
        (LIST, "sport/football/events/live"),
        (LIVE, "event/77"),
        (INCIDENTS, "event/77/incidents"),
        (LINEUPS, "event/77/lineups"),
        (STATISTICS, "event/77/statistics"),
    ],
)
def test_each_question_has_its_address(ask: Query, path: str) -> None:
    assert SOURCE.request(ask).url == f"https://football.test/api/v1/{path}"


def test_a_question_that_the_site_has_no_page_for_is_refused() -> None:
    balls = Query(resource=BALLS, source_id="77")

    with pytest.raises(UsageError, match="no balls resource"):
        SOURCE.request(balls)
    with pytest.raises(UsageError, match="no balls resource"):
        read_body(SOURCE, balls, b"{}")


# --- the list and the event -----------------------------------------------------------------------------------------


def test_the_list_shows_every_match_with_its_score() -> None:
    found = read_body(SOURCE, LIST, page("live_list.json"))

    assert isinstance(found, Listing)
    boards = [board for board in found.boards if isinstance(board, FootballBoard)]
    assert [(board.source_id, board.status, board.score) for board in boards] == [
        ("77", MatchStatus.LIVE, Goals(home=2, away=1)),
        ("78", MatchStatus.BREAK, Goals(home=0, away=0)),
    ]


def test_an_empty_list_is_an_answer() -> None:
    assert read_body(SOURCE, LIST, b'{"events": []}') == Listing(boards=())


def test_an_entry_that_cannot_be_read_hides_no_other() -> None:
    found = read_body(SOURCE, LIST, body({"events": [event(), {"id": 78}, {"id": "x"}]}))

    assert isinstance(found, Listing)
    assert ([board.source_id for board in found.boards], found.unreadable) == (["77"], ("78", "?"))


def test_a_list_of_unreadable_entries_is_another_layout() -> None:
    with pytest.raises(LayoutChanged):
        read_body(SOURCE, LIST, body({"events": [{"id": 78}]}))


def test_an_event_in_play_has_teams_score_and_periods() -> None:
    found = read_body(SOURCE, LIVE, page("live_in_play.json"))

    assert isinstance(found, FootballBoard)
    assert (found.home.key, found.away.name) == ("1", "Port Élan United")
    assert (found.score, found.penalties, found.result) == (Goals(home=2, away=1), None, None)
    assert found.periods == (
        PeriodScore(name="period1", home=1, away=0),
        PeriodScore(name="period2", home=1, away=1),
    )
    assert (found.tournament, found.season, found.round) == ("Harbour League", "26/27", 14)
    assert found.start_at == NOW


@pytest.mark.req("FLD-3")
def test_before_the_kick_off_there_is_no_score_rather_than_nil_nil() -> None:
    found = read_body(SOURCE, LIVE, page("live_not_started.json"))

    assert isinstance(found, FootballBoard)
    assert (found.status, found.score, found.periods) == (MatchStatus.UPCOMING, None, ())
    assert board_of(event("1st half", 0, 0)).score == Goals(home=0, away=0)


def test_a_shoot_out_is_no_part_of_the_score() -> None:
    found = read_body(SOURCE, LIVE, page("live_after_penalties.json"))

    assert isinstance(found, FootballBoard)
    assert (found.score, found.penalties) == (Goals(home=1, away=1), Goals(home=5, away=4))
    assert found.result == FootballResult(
        outcome=Outcome.HOME, after="AP", home=1, away=1, home_penalties=5, away_penalties=4
    )


def test_without_a_displayed_score_the_kicks_are_taken_off_the_current_one() -> None:
    found = board_of(event("AP", {"current": 6, "penalties": 5}, {"current": 5, "penalties": 4}, winnerCode=1))

    assert found.score == Goals(home=1, away=1)


@pytest.mark.req("FLD-1")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Not started", MatchStatus.UPCOMING),
        ("Postponed", MatchStatus.UPCOMING),
        ("Start delayed", MatchStatus.UPCOMING),
        ("1st half", MatchStatus.LIVE),
        ("Started", MatchStatus.LIVE),
        ("Halftime", MatchStatus.BREAK),
        ("Awaiting extra time", MatchStatus.BREAK),
        ("Interrupted", MatchStatus.BREAK),
        ("Suspended", MatchStatus.BREAK),
        ("Will continue", MatchStatus.BREAK),
        ("Ended", MatchStatus.COMPLETED),
        ("Canceled", MatchStatus.COMPLETED),
    ],
)
def test_a_status_is_read_by_its_type(name: str, expected: MatchStatus) -> None:
    assert board_of(event(name, 0, 0)).status is expected


def test_a_status_of_an_unknown_type_is_a_break() -> None:
    shown = event(status={"code": 999, "description": "Dancing", "type": "dancing"})

    assert (board_of(shown).status, board_of(shown).headline) == (MatchStatus.BREAK, "Dancing")


@pytest.mark.parametrize(
    ("name", "winner", "outcome", "after"),
    [
        ("Ended", 1, Outcome.HOME, "FT"),
        ("Ended", 2, Outcome.AWAY, "FT"),
        ("Ended", 3, Outcome.DRAW, "FT"),
        ("AET", 2, Outcome.AWAY, "AET"),
        ("Abandoned", None, Outcome.ABANDONED, "abandoned"),
        ("Canceled", None, Outcome.CANCELLED, "cancelled"),
        ("Walkover", None, Outcome.WALKOVER, "walkover"),
    ],
)
def test_a_result_says_who_won_and_after_what(name: str, winner: int | None, outcome: Outcome, after: str) -> None:
    result = board_of(event(name, {}, {}, winnerCode=winner)).result

    assert result is not None
    assert (result.outcome, result.after, result.home) == (outcome, after, None)


def test_a_finished_match_without_a_winner_is_read_by_its_score() -> None:
    results = [board_of(event("Ended", home, away)).result for home, away in ((2, 1), (0, 1), (1, 1))]

    assert [result and result.outcome for result in results] == [Outcome.HOME, Outcome.AWAY, Outcome.DRAW]


def test_a_finished_match_with_neither_winner_nor_score_is_over_and_its_result_unknown() -> None:
    found = board_of(event("Ended", {}, {}))

    assert (found.status, found.score) == (MatchStatus.COMPLETED, None)
    assert found.result == FootballResult(outcome=Outcome.UNKNOWN, after="FT")
    assert found.result.text == "FT, result unknown"


@pytest.mark.parametrize("name", [name for name, (_, kind) in STATUSES.items() if kind not in ("finished", "canceled")])
def test_what_is_not_over_has_no_result(name: str) -> None:
    assert board_of(event(name, 1, 0)).result is None


# --- scores that need the status to be read --------------------------------------------------------------------------


@pytest.mark.req("FLD-3")
@pytest.mark.parametrize("name", ["Not started", "Postponed", "Start delayed"])
def test_nil_nil_before_the_kick_off_is_no_score(name: str) -> None:
    nil = {"current": 0, "display": 0, "period1": 0}

    found = board_of(event(name, nil, nil))

    assert (found.score, found.periods, found.result) == (None, (), None)


def test_a_displayed_score_below_zero_is_replaced_by_that_of_normal_and_extra_time() -> None:
    home = {"current": 1, "display": -2, "normaltime": 1, "overtime": 1, "penalties": 3}
    away = {"current": 2, "display": -2, "normaltime": 2, "extra1": 0, "extra2": 0, "penalties": 4}

    found = board_of(event("AP", home, away, winnerCode=2))

    assert (found.score, found.penalties) == (Goals(home=2, away=2), Goals(home=3, away=4))


def test_a_half_with_goals_below_zero_is_unknown_and_hides_no_other() -> None:
    home = {"current": 0, "display": 0, "period1": 1, "period2": -1, "normaltime": 0}

    found = board_of(event("2nd half", home, {"current": 0, "display": 0, "period1": 0, "period2": 0}))

    assert found.score == Goals(home=0, away=0)
    assert found.periods == (PeriodScore(name="period1", home=1, away=0),)


def test_a_shoot_out_under_way_is_taken_out_of_the_displayed_score() -> None:
    home, away = ({"current": shown, "display": shown, "normaltime": 1} for shown in (3, 4))

    found = board_of(event("Penalties", home, away))

    assert (found.score, found.penalties) == (Goals(home=1, away=1), Goals(home=2, away=3))
    assert found.suspicions == ()


def test_penalties_of_one_side_outside_a_shoot_out_hide_no_goal() -> None:
    home = {"current": 1, "display": 0, "normaltime": 1, "penalties": 1}

    found = board_of(event("2nd half", home, 0))

    assert (found.score, found.penalties, found.suspicions) == (Goals(home=1, away=0), None, ())


@pytest.mark.parametrize(
    ("named", "kicks", "outcome"),
    [
        ({"winnerCode": 3, "aggregatedWinnerCode": 1}, (4, 5), Outcome.HOME),
        ({"winnerCode": 3, "aggregatedWinnerCode": 3}, (4, 5), Outcome.AWAY),
        ({"winnerCode": 3, "aggregatedWinnerCode": "?"}, (5, 4), Outcome.HOME),
        ({"winnerCode": 2}, (5, 4), Outcome.AWAY),
        ({}, (5, 4), Outcome.HOME),
        ({"winnerCode": 3}, (0, 0), Outcome.UNKNOWN),
    ],
)
def test_after_penalties_there_is_a_winner(named: dict[str, Any], kicks: tuple[int, int], outcome: Outcome) -> None:
    home, away = ({"current": 1 + each, "display": 1, "normaltime": 1, "penalties": each} for each in kicks)

    result = board_of(event("AP", home, away, **named)).result

    assert result is not None
    assert (result.outcome, result.home, result.away) == (outcome, 1, 1)


def test_after_penalties_the_current_score_has_the_kicks_that_are_not_listed_yet() -> None:
    home, away = ({"current": current, "display": 1, "normaltime": 1, "penalties": None} for current in (4, 6))

    found = board_of(event("AP", home, away, winnerCode=3))

    assert found.penalties == Goals(home=3, away=5)
    assert found.result is not None
    assert found.result.outcome is Outcome.AWAY


def test_a_draw_on_the_way_to_a_won_tie_is_a_draw() -> None:
    result = board_of(event("Ended", 1, 1, winnerCode=3, aggregatedWinnerCode=1)).result

    assert result is not None
    assert result.outcome is Outcome.DRAW


@pytest.mark.parametrize(
    ("home", "away", "played"),
    [
        (
            {"current": 1, "display": 0, "period1": 1, "period2": 0, "normaltime": 0},
            {"current": 0, "display": 3},
            Goals(home=1, away=0),
        ),
        ({"current": 0, "display": 0, "period1": 0}, {"current": 3, "display": 3, "period1": 1}, Goals(home=0, away=1)),
        ({"current": 0, "display": 0}, {"current": 3, "display": 3}, Goals(home=0, away=3)),
    ],
    ids=["current", "halves", "nothing else"],
)
def test_an_awarded_match_keeps_the_played_and_the_awarded_score(
    home: dict[str, int], away: dict[str, int], played: Goals
) -> None:
    found = board_of(event("Ended", home, away, winnerCode=2, isAwarded=True))

    assert found.result is not None
    assert (found.score, found.result.awarded, found.suspicions) == (played, Goals(home=0, away=3), ())
    assert (found.result.outcome, found.result.winner) == (Outcome.AWAY, UNSET)


def test_an_award_is_told_with_what_was_played() -> None:
    awarded = Goals(home=0, away=3)
    played = FootballResult(outcome=Outcome.AWAY, after="FT", home=1, away=0, awarded=awarded)

    assert played.text == "away won 0-3 (awarded, played 1-0) FT"
    assert FootballResult(outcome=Outcome.WALKOVER, after="walkover", awarded=awarded).text == "walkover 0-3 (awarded)"


def test_a_postponed_match_that_was_awarded_has_a_result_and_was_not_played() -> None:
    found = board_of(event("Postponed", 0, 3, winnerCode=2, isAwarded=True))

    assert (found.status, found.score) == (MatchStatus.UPCOMING, None)
    assert found.result == FootballResult(outcome=Outcome.AWAY, after="awarded", awarded=Goals(home=0, away=3))


@pytest.mark.parametrize(
    ("name", "changes", "winner"),
    [
        ("Walkover", {"winnerCode": 2}, Side.AWAY),
        ("Walkover", {"isAwarded": True}, Side.AWAY),
        ("Abandoned", {"winnerCode": 2, "isAwarded": True}, Side.AWAY),
        ("Abandoned", {}, UNSET),
        ("Canceled", {"isAwarded": True}, Side.AWAY),
    ],
)
def test_a_match_that_was_not_played_to_its_end_names_its_winner_if_it_has_one(
    name: str, changes: dict[str, Any], winner: object
) -> None:
    result = board_of(event(name, 0, 3, **changes)).result

    assert result is not None
    assert result.winner == winner


def test_each_way_not_to_play_as_planned_is_told_apart() -> None:
    names = (
        "Postponed", "Start delayed", "Interrupted", "Suspended", "Will continue", "Canceled", "Abandoned",
        "Walkover", "Retired", "1st half", "Ended",
    )  # fmt: skip
    found = [board_of(event(name, 1, 0)).status_detail for name in names]

    assert found == [
        "postponed", "delayed", "interrupted", "suspended", "will_continue", "cancelled", "abandoned",
        "walkover", "retired", None, None,
    ]  # fmt: skip


# --- altered answers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("home", "away", "suspicions"),
    [
        ({"current": 2, "display": 3}, 0, ("the home score is 2 and is displayed as 3, without penalties",)),
        (0, {"current": 1, "display": -1}, ("the away score is 1 and is displayed as -1, without penalties",)),
        (
            {"current": 2, "display": 2, "period1": 2, "period2": 1, "normaltime": 2},
            0,
            ("the home goals of both halves add up to 3, but normal time has 2",),
        ),
        ({"current": 2, "display": 2, "period1": 2, "normaltime": 1}, 0, ()),
        ({"current": 6, "display": 1, "normaltime": 1, "penalties": 5}, {"current": 1, "display": 1}, ()),
    ],
)
def test_numbers_that_contradict_each_other_make_an_event_suspect_and_it_is_read(
    home: Any, away: Any, suspicions: tuple[str, ...]
) -> None:
    found = board_of(event("Ended", home, away, winnerCode=1))

    assert found.suspicions == suspicions
    assert found.result is not None


def test_a_suspicion_is_no_part_of_the_fingerprint() -> None:
    clean, suspect = ({"current": 1, "display": 1, "period1": 1, "period2": each, "normaltime": 1} for each in (0, 1))

    boards = [board_of(event("Ended", home, 0, winnerCode=1)) for home in (clean, suspect)]

    assert [bool(board.suspicions) for board in boards] == [False, True]
    assert boards[0].fingerprint == boards[1].fingerprint


@pytest.mark.parametrize(
    ("altered", "reason"),
    [
        (goal(1, 1, 0, is_home=False), "goal 1 is of the away side, but raises the other side's score, to 1-0"),
        (goal(1, 1, 0, time=-4), "goal 1 is in minute -4"),
        ({**goal(1, 1, 0, time=45), "addedTime": -2}, "goal 1 has -2 minutes of added time"),
        (card(1, time=-4), "card 1 is in minute -4"),
        (period("HT", 0, 0, 35), "period is in minute 35, in which no period ends"),
        (period("HT", 0, 0, -1), "period is in minute -1"),
        (
            {"incidentType": "injuryTime", "length": 3, "time": 97},
            "injuryTime is in minute 97, in which no period ends",
        ),
    ],
)
def test_incidents_that_no_clean_list_has_make_it_suspect_and_it_is_read(altered: dict[str, Any], reason: str) -> None:
    found = incidents_of(card(9), altered)

    assert reason in found.suspicions
    assert len(found.items) == (1 if altered["incidentType"] == "injuryTime" else 2)


def test_a_clean_list_is_not_suspect() -> None:
    found = incidents_of(
        goal(1, 1, 0),
        goal(2, 1, 1, is_home=True, how="ownGoal"),
        goal(3, 3, 1, is_home=True),
        card(4, time=-5),
        {"incidentType": "injuryTime", "length": 3, "time": 45},
        period("HT", 3, 1, 45),
        period("FT", 3, 1, 71, is_live=True),
        period("PEN", 4, 3, 999),
    )

    assert found.suspicions == ()


# --- what else an event shows ----------------------------------------------------------------------------------------


def test_details_clock_added_time_tie_and_checks_are_read_where_they_are_shown() -> None:
    started = int(NOW.timestamp())
    shown = event(
        "2nd half",
        {"current": 1, "display": 1, "aggregated": 3},
        {"current": 0, "display": 0, "aggregated": 2},
        homeTeam={"id": 1, "name": "Fennick FC", "gender": "F"},
        awayTeam={"id": 2, "name": "Port Élan United", "gender": "F"},
        tournament={"name": "Premier League", "category": {"name": "Ruritania", "country": {"name": "Ruritania"}}},
        roundInfo={"round": 27, "name": "Quarterfinals"},
        venue={"name": "The Quay", "city": {"name": "Port Élan"}},
        referee={"name": "A. Whistle", "games": 370},
        statusTime={"initial": 2700, "max": 5400, "timestamp": started, "extra": 540},
        time={"injuryTime1": 4, "injuryTime2": 6, "currentPeriodStartTimestamp": started},
        previousLegEventId=70,
        varInProgress={"homeTeam": False, "awayTeam": True},
    )

    found = board_of(shown)

    assert found.details == MatchDetails(
        round_name="Quarterfinals",
        category="Ruritania",
        country="Ruritania",
        gender="women",
        venue="The Quay",
        city="Port Élan",
        referee="A. Whistle",
    )
    assert found.clock == MatchClock(period_started_at=NOW, initial_seconds=2700, max_seconds=5400)
    assert found.added_time == {"period1": 4, "period2": 6}
    assert found.tie == Tie(aggregate=Goals(home=3, away=2), previous_leg="70")
    assert found.var_in_progress == (Side.AWAY,)


def test_what_an_event_does_not_show_or_shows_otherwise_is_absent() -> None:
    odd: dict[str, Any] = dict.fromkeys(
        ("venue", "referee", "statusTime", "time", "varInProgress", "previousLegEventId"), "odd"
    )

    odder: dict[str, Any] = {**{name: {"name": 5} for name in odd}, "previousLegEventId": 77}

    for shown in (event(), event(**odd), event(**odder)):
        found = board_of(shown)
        assert (found.details, found.clock, found.added_time) == (MatchDetails(), None, {})
        assert (found.tie, found.var_in_progress, found.status_detail) == (None, (), None)


def test_the_clock_stands_outside_play() -> None:
    running = {"initial": 2700, "timestamp": int(NOW.timestamp())}

    assert board_of(event("Halftime", statusTime=running)).clock is None


def test_drift_does_not_change_the_digest_and_news_does() -> None:
    def digest(**changes: Any) -> bytes:
        return SOURCE.digest(LIVE, body({"event": event(referee={"name": "A. Whistle", "games": 1}, **changes)}))

    plain = digest()

    assert digest(changes={"changeTimestamp": 5}, tournament={"name": "Harbour League", "userCount": 9}) == plain
    assert plain not in {digest(awayRedCards=1), digest(varInProgress={"homeTeam": True}), digest(venue={"name": "X"})}


def test_an_event_of_another_match_is_refused() -> None:
    with pytest.raises(WrongMatch):
        board_of(event(id=78))


def test_drift_does_not_change_the_fingerprint_and_news_does() -> None:
    plain = board_of(event()).fingerprint

    drifting = event(changes={"changeTimestamp": 5}, homeTeam={"id": 1, "name": "Fennick FC", "userCount": 77})
    assert board_of(drifting).fingerprint == plain
    news = (
        event(home=1),
        event("Halftime"),
        event(awayRedCards=1),
        event(startTimestamp=9),
        event(winnerCode=3),
        event(isAwarded=True),
    )
    assert plain not in {board_of(shown).fingerprint for shown in news}


def test_a_list_entry_of_a_match_in_play_is_not_complete() -> None:
    assert [board_of(event(name, 0, 0)).shows_every_change for name in ("1st half", "Halftime", "Ended")] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("field", ["id", "status", "homeTeam", "awayTeam", "homeScore", "awayScore", "startTimestamp"])
def test_an_event_that_misses_a_field_of_the_contract_is_another_layout(field: str) -> None:
    shown = event()
    del shown[field]

    with pytest.raises(LayoutChanged):
        board_of(shown)


def test_what_a_friendly_misses_is_nothing() -> None:
    shown = event()
    for field in ("season", "roundInfo"):
        del shown[field]

    found = board_of(shown)
    assert (found.season, found.round) == (None, None)


# --- the incidents --------------------------------------------------------------------------------------------------


def test_incidents_are_read_oldest_first_each_with_its_side() -> None:
    found = read_body(SOURCE, INCIDENTS, page("incidents_in_play.json"))

    assert isinstance(found, Incidents)
    assert [(item.source_event_id, item.side, item.content) for item in found.items] == [
        ("118000010", Side.HOME, Goal(minute=10, scorer="11", how=GoalKind.REGULAR, home=1, away=0)),
        ("118000020", Side.HOME, Card(minute=20, player="12", card=CardKind.YELLOW, reason="Foul")),
        ("118000030", Side.HOME, Card(minute=45, added=1, player="12", card=CardKind.SECOND_YELLOW, reason="Foul")),
        ("period-HT", None, PeriodEnd(period="HT", minute=45, added=2, home=1, away=0)),
        ("118000040", Side.HOME, Substitution(minute=46, player_in="31", player_out="13", is_injury=True)),
        ("118000050", Side.AWAY, Goal(minute=50, scorer="14", how=GoalKind.OWN_GOAL, home=1, away=1)),
        ("118000060", Side.HOME, Goal(minute=55, scorer="15", assist="16", how=GoalKind.PENALTY, home=2, away=1)),
        ("679006", Side.HOME, VarDecision(minute=55, decision="goal awarded", player="11", is_confirmed=True)),
        ("118000070", Side.AWAY, MissedPenalty(minute=60, player="41", reason="Goalkeeper save")),
        ("118000080", Side.HOME, Card(minute=None, player="12", card=CardKind.YELLOW, reason="Foul")),
    ]
    assert found.players["15"] == "Player 15"


def test_kicks_and_the_end_of_a_shoot_out_have_no_minute() -> None:
    found = read_body(SOURCE, INCIDENTS, page("incidents_shoot_out.json"))

    assert isinstance(found, Incidents)
    assert [item.content for item in found.items][-3:] == [
        Kick(sequence=1, player="11", is_scored=True, home=1, away=0),
        Kick(sequence=2, player="41", is_scored=False, home=1, away=0),
        PeriodEnd(period="PEN", minute=None, home=1, away=0),
    ]


@pytest.mark.parametrize("is_home", [True, False])
def test_an_own_goal_counts_for_the_side_whose_score_it_raised(is_home: bool) -> None:
    found = incidents_of(goal(1, 1, 0), goal(2, 1, 1, is_home=is_home, how="ownGoal"))

    assert [item.side for item in found.items] == [Side.HOME, Side.AWAY]


def test_an_own_goal_before_which_a_goal_is_missing_stands_where_the_site_puts_it() -> None:
    [found] = incidents_of(goal(2, 2, 0, is_home=False, how="ownGoal")).items

    assert found.side is Side.AWAY


def test_the_part_that_is_being_played_has_not_ended() -> None:
    assert incidents_of(period("HT", 0, 0, 45, is_live=True)).items == ()


def test_ids_are_unique_within_a_type_only() -> None:
    assert len(incidents_of(goal(5, 1, 0), card(5), card(5)).items) == 2


def test_types_that_are_no_events_are_skipped_but_not_all_of_them() -> None:
    assert len(incidents_of(card(5), {"incidentType": "dance", "id": 1}).items) == 1
    with pytest.raises(LayoutChanged):
        incidents_of({"incidentType": "dance", "id": 1})


@pytest.mark.parametrize("field", ["id", "isHome", "time", "homeScore", "awayScore", "incidentClass"])
def test_a_goal_that_misses_a_field_of_the_contract_is_another_layout(field: str) -> None:
    shown = goal(1, 1, 0)
    del shown[field]

    with pytest.raises(LayoutChanged, match="goal"):
        incidents_of(shown)


@pytest.mark.parametrize("clock", [{"time": 999}, {"time": 131}, {"time": 45, "addedTime": 61}])
def test_a_minute_that_no_match_has_is_impossible(clock: dict[str, int]) -> None:
    with pytest.raises(ImpossibleObservation):
        incidents_of({**card(1), **clock})


def test_added_time_that_means_nothing_is_none() -> None:
    [found] = incidents_of({**card(1), "addedTime": 999}).items

    assert isinstance(found.content, Card)
    assert found.content.added is None


def test_the_reason_of_a_card_and_of_a_miss_and_what_became_of_a_decision_are_kept() -> None:
    clock = {"time": 20, "isHome": True}
    found = incidents_of(
        {**card(1), "reason": "Argument", "rescinded": True},
        {**clock, "incidentType": "varDecision", "id": 2, "incidentClass": "penaltyAwarded", "confirmed": False},
        {**clock, "incidentType": "inGamePenalty", "id": 3, "incidentClass": "missed", "reason": "goalkeeperSave"},
        {**card(4), "reason": 7, "rescinded": "odd"},
    )

    assert [item.content for item in found.items] == [
        Card(minute=20, player="12", card=CardKind.YELLOW, reason="Argument", is_rescinded=True),
        VarDecision(minute=20, decision="penalty awarded", is_confirmed=False),
        MissedPenalty(minute=20, reason="goalkeeperSave"),
        Card(minute=20, player="12", card=CardKind.YELLOW),
    ]
    assert b"reason" not in msgspec.json.encode(found.items[3].content)


def test_a_card_for_another_process_who_does_not_play_names_no_one() -> None:
    shown = card(1)
    del shown["player"]

    [found] = incidents_of(shown).items

    assert isinstance(found.content, Card)
    assert found.content.player is None


# --- line-ups and statistics ----------------------------------------------------------------------------------------


@pytest.mark.req("FLD-3")
def test_line_ups_keep_apart_what_is_absent_null_and_zero() -> None:
    found = lineups_of(msgspec.json.decode(page("lineups_confirmed.json")))

    assert found.home is not None
    assert found.away is not None
    assert (found.is_confirmed, found.home.formation, found.away.formation) == (True, "4-4-2", None)
    keeper, late, unused = (found.home.players[nth] for nth in (0, 11, 12))
    assert (keeper.rating, keeper.minutes, keeper.shirt, keeper.position) == (7, 90, 1, "G")
    assert (late.rating, late.minutes) == (UNSET, 1)
    assert (unused.rating, unused.minutes) == (UNSET, UNSET)
    assert [player.key for player in found.home.players if player.is_captain] == ["14"]
    assert found.home.missing is not UNSET
    assert [(each.kind, each.reason, each.description) for each in found.home.missing] == [
        ("missing", 1, UNSET),
        ("doubtful", 0, "Muscle Injury"),
    ]
    assert found.away.missing is UNSET


def test_when_a_missing_player_is_expected_back_is_kept_if_it_is_a_text() -> None:
    dates: tuple[dict[str, Any], ...] = (
        {"expectedEndDate": "2026-06-20T00:00:00+00:00"},
        {"expectedEndDate": 5},
        {},
    )
    missing = [{"player": player(60 + nth), "type": "missing", **date} for nth, date in enumerate(dates)]

    found = lineups_of({"confirmed": True, "home": squad(11, missingPlayers=missing)}).home

    assert found is not None
    assert found.missing is not UNSET
    assert [each.expected_end for each in found.missing] == ["2026-06-20T00:00:00+00:00", UNSET, UNSET]


def test_line_ups_that_no_one_knows_yet_have_no_sides() -> None:
    assert lineups_of({"confirmed": False}) == Lineups(is_confirmed=False, home=None, away=None)


def test_starters_stand_first_in_their_order() -> None:
    shown = squad(11)
    shown["players"] = shown["players"][11:] + shown["players"][:11]

    found = lineups_of({"confirmed": True, "home": shown}).home

    assert found is not None
    assert [player.key for player in found.players[:11]] == [str(key) for key in range(11, 22)]


def test_statistics_are_read_by_their_numbers_and_once() -> None:
    found = read_body(SOURCE, STATISTICS, page("statistics_in_play.json"))

    assert isinstance(found, Statistics)
    assert found.periods["ALL"] == {
        "ballPossession": Statistic(home=70, away=30),
        "totalShotsOnGoal": Statistic(home=25, away=4),
        "accuratePasses": Statistic(home=170, away=88, home_total=214, away_total=100),
        "Expected goals": Statistic(home=0.7, away=0),
    }
    assert found.periods["1ST"] == {}


# --- what is no page of theirs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", PAGE_OF, ids=lambda ask: ask.resource)
def test_html_in_place_of_data_is_malformed_or_a_challenge(ask: Query) -> None:
    with pytest.raises(MalformedBody):
        read_body(SOURCE, ask, b"<html><body>Welcome</body></html>")
    with pytest.raises(SourceChallenged):
        read_body(SOURCE, ask, b"<html><title>Just a moment...</title></html>")


@pytest.mark.parametrize("ask", PAGE_OF, ids=lambda ask: ask.resource)
def test_an_error_in_place_of_data_is_a_challenge_if_it_says_so(ask: Query) -> None:
    with pytest.raises(SourceChallenged):
        read_body(SOURCE, ask, body({"error": {"code": 403, "reason": "challenge"}}))
    with pytest.raises(LayoutChanged):
        read_body(SOURCE, ask, body({"error": {"code": 403, "reason": "Forbidden"}}))


@given(
    ask=st.sampled_from(list(PAGE_OF)),
    place=st.integers(min_value=0),
    junk=st.binary(max_size=20),
    width=st.integers(min_value=0, max_value=40),
)
def test_any_mutation_is_a_reading_or_a_typed_error(ask: Query, place: int, junk: bytes, width: int) -> None:
    good = page(PAGE_OF[ask])
    start = place % len(good)

    found: object
    try:
        found = read_body(SOURCE, ask, good[:start] + junk + good[start + width :])
    except SourceError as error:
        found = error

    readings = (Listing, FootballBoard, Incidents, Lineups, Statistics)
    assert isinstance(found, readings) or (isinstance(found, SourceError) and found.source == "sofascore")


def test_names_are_in_one_spelling() -> None:
    [found] = incidents_of({**card(1), "player": player(12, " Jo\u0308rg ")}).players.values()

    assert found == "J\u00f6rg"


def test_the_moment_of_the_kick_off_is_utc() -> None:
    assert board_of(event(startTimestamp=1_800_000_000)).start_at == datetime.fromtimestamp(1_800_000_000, UTC)


def test_a_kick_off_that_is_not_known_is_none() -> None:
    assert board_of(event(startTimestamp=0)).start_at is None
