"""The road of football, from pages to what is stored and served."""

import pytest

from longstop.errors import (
    ImpossibleObservation,
    LayoutChanged,
    LayoutSuspected,
    PageNotFound,
    SourceFailed,
    WrongMatch,
)
from longstop.model.event import EventKey
from longstop.model.football import FootballResult, Goal
from longstop.model.football_payload import FootballEventV1
from longstop.model.match import MatchStatus, Phase, SyncState
from longstop.pipeline.effort import Effort
from longstop.pipeline.football.run import PARTS_EVERY_SECONDS
from longstop.pipeline.football.validate import LOOKS_AGAINST
from tests.football_site import (
    LookingAtFootball,
    card,
    decision,
    event,
    goal,
    lineups,
    period,
    player,
    squad,
    statistics,
    substitution,
)


@pytest.fixture
async def looking() -> LookingAtFootball:
    return await LookingAtFootball().start()


async def test_a_match_in_play_is_stored_with_its_events_and_is_in_sync(looking: LookingAtFootball) -> None:
    looking.pages.event = event("2nd half", 1, 1)
    looking.pages.incidents = [
        goal(100, 1, 0),
        card(101),
        period("HT", 1, 0, 45),
        goal(102, 1, 1, is_home=False, time=50, scorer=41),
        substitution(103),
    ]

    outcome = await looking.look()

    assert looking.versions() == [
        "goal:home:1 1 insert",
        "card:home:1 1 insert",
        "period:1 1 insert",
        "goal:away:1 1 insert",
        "substitution:home:1 1 insert",
    ]
    assert (outcome.state.sync, outcome.state.row.phase) == (SyncState.IN_SYNC, Phase.ACTIVE)
    assert looking.payload()["score"] == {"home": 1, "away": 1, "periods": []}


async def test_a_second_look_at_the_same_pages_stores_nothing(looking: LookingAtFootball) -> None:
    looking.pages.event = event("1st half", 1, 0)
    looking.pages.incidents = [goal(100, 1, 0)]
    await looking.look()

    outcome = await looking.look()

    assert outcome.receipt is None


@pytest.mark.req("JOB-6")
async def test_a_goal_that_the_video_referee_takes_back_is_a_void_after_two_looks(looking: LookingAtFootball) -> None:
    looking.pages.event = event("1st half", 1, 0)
    looking.pages.incidents = [goal(100, 1, 0)]
    await looking.look()
    looking.pages.event = event("1st half", 0, 0)
    looking.pages.incidents = [decision(7)]

    await looking.look()
    assert looking.versions() == ["goal:home:1 1 insert", "var:home:1 1 insert"]
    assert looking.payload()["score"]["home"] == 1
    await looking.look()

    assert looking.versions()[-1] == "goal:home:1 2 void"
    assert looking.payload()["score"]["home"] == 0
    assert [each["kind"] for each in looking.payload()["incidents"]] == ["var"]


async def test_a_goal_that_comes_back_is_the_old_one_and_no_number_is_used_twice(looking: LookingAtFootball) -> None:
    shown = [goal(100, 1, 0)]
    for score in (1, 0, 1):
        looking.pages.event, looking.pages.incidents = event("1st half", score, 0), shown[:score]
        await looking.look(times=2)
    looking.pages.event, looking.pages.incidents = event("1st half", 2, 0), [*shown, goal(105, 2, 0, time=30)]
    await looking.look()

    assert looking.versions() == [
        "goal:home:1 1 insert",
        "goal:home:1 2 void",
        "goal:home:1 3 update",
        "goal:home:2 1 insert",
    ]


async def test_the_number_of_a_goal_that_was_taken_back_is_not_given_to_another(looking: LookingAtFootball) -> None:
    for score, incidents in ((1, [goal(100, 1, 0)]), (0, [card(101)]), (1, [card(101), goal(105, 1, 0, time=30)])):
        looking.pages.event, looking.pages.incidents = event("1st half", score, 0), incidents
        await looking.look(times=2)

    assert [each for each in looking.versions() if each.startswith("goal")] == [
        "goal:home:1 1 insert",
        "goal:home:1 2 void",
        "goal:home:2 1 insert",
    ]


async def test_there_and_back_are_three_versions(looking: LookingAtFootball) -> None:
    looking.pages.event = event("1st half", 1, 0)
    for scorer in (11, 12, 11):
        looking.pages.incidents = [goal(100, 1, 0, scorer=scorer)]
        await looking.look()

    assert looking.versions() == ["goal:home:1 1 insert", "goal:home:1 2 update", "goal:home:1 3 update"]


async def test_one_old_copy_of_the_list_takes_nothing_back(looking: LookingAtFootball) -> None:
    looking.pages.incidents = [card(101), substitution(102)]
    await looking.look()
    looking.pages.incidents = [card(101)]
    await looking.look()
    looking.pages.incidents = [card(101), substitution(102)]

    await looking.look(times=2)

    assert looking.versions() == ["card:home:1 1 insert", "substitution:home:1 1 insert"]


async def test_a_list_that_lags_behind_the_board_loses_no_goal(looking: LookingAtFootball) -> None:
    looking.pages.event = event("1st half", 1, 0)
    looking.pages.incidents = [goal(100, 1, 0)]
    await looking.look()
    looking.pages.incidents = []

    await looking.look(times=5)

    assert looking.versions() == ["goal:home:1 1 insert"]


async def test_a_milder_card_is_believed_at_the_second_look_and_a_harder_one_at_once(
    looking: LookingAtFootball,
) -> None:
    looking.pages.incidents = [card(101)]
    await looking.look()
    looking.pages.incidents = [card(101, kind="red")]
    await looking.look()
    assert looking.versions()[-1] == "card:home:1 2 update"
    looking.pages.incidents = [card(101)]

    await looking.look()
    assert len(looking.versions()) == 2
    await looking.look()

    assert looking.versions()[-1] == "card:home:1 3 update"


async def test_what_goes_over_to_the_other_side_gets_another_key(looking: LookingAtFootball) -> None:
    looking.pages.incidents = [card(101)]
    await looking.look()
    looking.pages.incidents = [card(101, is_home=False)]

    await looking.look(times=2)

    assert looking.versions() == ["card:home:1 1 insert", "card:home:1 2 void", "card:away:1 1 insert"]
    assert (await looking.look()).receipt is None


async def test_events_under_other_ids_are_the_same_events(looking: LookingAtFootball) -> None:
    first, others = range(100, 106), range(900, 906)
    looking.pages.incidents = [card(key, who=12 + nth) for nth, key in enumerate(first)]
    await looking.look()
    looking.pages.incidents = [card(key, who=12 + nth) for nth, key in enumerate(others)]

    await looking.look()

    assert len(looking.state.incidents) == 6
    assert {each.source_event_id for each in looking.state.incidents} == {str(key) for key in others}


async def test_a_list_that_is_suddenly_empty_is_not_believed(looking: LookingAtFootball) -> None:
    looking.pages.incidents = [card(100 + nth, who=12 + nth) for nth in range(6)]
    await looking.look()
    looking.pages.incidents = []

    with pytest.raises(LayoutSuspected):
        await looking.look()

    assert len(looking.state.incidents) == 6


@pytest.mark.req("MON-1")
async def test_a_result_counts_when_two_looks_have_seen_it(looking: LookingAtFootball) -> None:
    looking.pages.event = event("2nd half", 1, 0)
    looking.pages.incidents = [goal(100, 1, 0)]
    await looking.look()
    looking.pages.event = event("Ended", 1, 0, winnerCode=1)

    await looking.look()
    assert (looking.state.row.phase, looking.state.row.status) == (Phase.ACTIVE, MatchStatus.LIVE)
    await looking.look()

    assert (looking.state.row.phase, looking.state.row.status) == (Phase.COMPLETED, MatchStatus.COMPLETED)
    assert looking.payload()["result"] == {"outcome": "home", "after": "FT", "text": "home won 1-0 FT"}


async def test_a_result_that_is_taken_back_opens_the_match_again(looking: LookingAtFootball) -> None:
    looking.pages.event = event("Ended", 0, 0, winnerCode=3)
    await looking.look(times=2)
    looking.pages.event = event("2nd half", 0, 0)

    await looking.look(times=2)

    assert (looking.state.row.phase, looking.state.row.status) == (Phase.ACTIVE, MatchStatus.LIVE)
    assert looking.versions() == ["result 1 insert", "result 2 void"]


@pytest.mark.req("FLD-1")
@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("Postponed", MatchStatus.UPCOMING),
        ("Interrupted", MatchStatus.BREAK),
        ("Halftime", MatchStatus.BREAK),
        ("Awaiting extra time", MatchStatus.BREAK),
    ],
)
async def test_what_is_not_over_is_not_completed(looking: LookingAtFootball, name: str, status: MatchStatus) -> None:
    looking.pages.event = event(name, {}, {})

    await looking.look(times=3)

    assert (looking.state.row.phase, looking.state.row.status) == (Phase.ACTIVE, status)


async def test_a_postponed_match_that_is_played_later_goes_on_by_itself(looking: LookingAtFootball) -> None:
    looking.pages.event, looking.pages.incidents = event("Postponed", {}, {}), None
    await looking.look(times=2)
    looking.pages.event = event("1st half", 1, 0, startTimestamp=1_800_000_000)
    looking.pages.incidents = [goal(100, 1, 0)]

    await looking.look()

    assert looking.state.row.status is MatchStatus.LIVE
    assert looking.state.row.start_at is not None
    assert looking.state.row.start_at.timestamp() == 1_800_000_000


@pytest.mark.req("FLD-3")
async def test_before_the_kick_off_there_is_no_score_and_nothing_that_is_missing_is_an_error(
    looking: LookingAtFootball,
) -> None:
    looking.pages.event, looking.pages.incidents = event("Not started", {}, {}), None
    looking.pages.lineups = None
    effort = Effort()

    outcome = await looking.road.run(looking.state, effort=effort)

    looking.state = outcome.state
    assert looking.state.sync is SyncState.IN_SYNC
    assert effort.error_count == 0
    assert not looking.sink.named("resource.failed")
    assert not {"score", "lineups", "statistics", "result"} & looking.payload().keys()
    assert looking.payload()["incidents"] == []


async def test_line_ups_join_the_payload_when_they_are_there(looking: LookingAtFootball) -> None:
    looking.pages.event, looking.pages.lineups = event("Not started", {}, {}), None
    await looking.look()
    looking.pages.lineups = lineups(confirmed=False)
    looking.clock.advance(PARTS_EVERY_SECONDS)

    await looking.look()

    shown = looking.payload()["lineups"]
    assert (shown["confirmed"], shown["home"]["formation"], len(shown["away"]["bench"])) == (False, "4-4-2", 9)
    assert [each["key"] for each in shown["home"]["starters"]] == [str(key) for key in range(11, 22)]


async def test_line_ups_and_statistics_are_asked_for_now_and_then_only(looking: LookingAtFootball) -> None:
    looking.pages.lineups, looking.pages.statistics = lineups(), statistics()

    await looking.look(times=10)
    assert (looking.pages.asked.count("lineups"), looking.pages.asked.count("statistics")) == (2, 1)
    await looking.look(is_whole=True)

    # Only line-ups of which we know nobody are asked for twice.
    assert (looking.pages.asked.count("lineups"), looking.pages.asked.count("statistics")) == (3, 2)


@pytest.mark.req("FLD-7")
async def test_line_ups_without_anybody_do_not_take_the_place_of_those_we_have(looking: LookingAtFootball) -> None:
    looking.pages.lineups = lineups()
    await looking.look()
    before = looking.payload()
    looking.pages.lineups = {"confirmed": False, "home": None, "away": None}
    looking.pages.incidents = [card(101)]
    await looking.restart()

    await looking.look()

    assert looking.payload()["lineups"] == before["lineups"]


@pytest.mark.req("FLD-7")
async def test_what_was_read_before_a_restart_stays_when_it_cannot_be_read_again(looking: LookingAtFootball) -> None:
    looking.pages.lineups, looking.pages.statistics = lineups(), statistics()
    await looking.look()
    before = looking.payload()
    looking.pages.lineups, looking.pages.statistics = SourceFailed("502"), None
    looking.pages.incidents = [card(101)]
    await looking.restart()

    await looking.look()

    assert looking.payload()["lineups"] == before["lineups"]
    assert looking.payload()["statistics"] == before["statistics"]
    assert [each.name for each in looking.sink.named("resource.failed")] == ["resource.failed"]


@pytest.mark.req("JOB-6")
@pytest.mark.parametrize(
    "wrong",
    [
        {"confirmed": True, "home": squad(11), "away": squad(11)},
        {"confirmed": True, "home": {**squad(11), "players": squad(11)["players"][:10]}, "away": squad(41)},
    ],
    ids=["a player twice", "ten begin"],
)
async def test_line_ups_that_cannot_be_are_refused_and_the_look_goes_on(
    looking: LookingAtFootball, wrong: dict[str, object]
) -> None:
    looking.pages.lineups = wrong

    await looking.look()

    assert "lineups" not in looking.payload()
    assert looking.sink.named("resource.failed")


@pytest.mark.req("JOB-6")
async def test_a_possession_of_more_than_all_is_refused(looking: LookingAtFootball) -> None:
    looking.pages.statistics = statistics(52, 50)

    await looking.look()

    assert "statistics" not in looking.payload()


async def test_an_event_of_another_match_is_refused(looking: LookingAtFootball) -> None:
    looking.pages.event = event(id=78)

    with pytest.raises(WrongMatch):
        await looking.look()

    assert not looking.store.updates


async def test_exchanged_sides_are_refused(looking: LookingAtFootball) -> None:
    looking.pages.incidents = [card(101)]
    await looking.look()
    turned = event()
    looking.pages.event = {**turned, "homeTeam": turned["awayTeam"], "awayTeam": turned["homeTeam"]}

    with pytest.raises(WrongMatch):
        await looking.look()


async def test_incidents_of_people_who_do_not_play_here_are_refused(looking: LookingAtFootball) -> None:
    looking.pages.incidents = [card(101)]
    await looking.look()
    looking.pages.incidents = [card(900 + nth, who=5000 + nth) for nth in range(3)]

    for _ in range(3):
        with pytest.raises(WrongMatch):
            await looking.look()

    assert looking.versions() == ["card:home:1 1 insert"]


async def test_a_list_of_which_nothing_is_known_is_believed_when_it_is_shown_again(looking: LookingAtFootball) -> None:
    looking.pages.lineups = None
    looking.pages.incidents = [card(900, who=5000), period("HT", 0, 0, 45)]

    outcome = await looking.look()
    assert (looking.versions(), outcome.state.sync) == ([], SyncState.RECOVERING)
    await looking.look()

    assert looking.versions() == ["card:home:1 1 insert", "period:1 1 insert"]


async def test_a_list_that_grows_between_two_looks_is_shown_again(looking: LookingAtFootball) -> None:
    looking.pages.lineups = None
    looking.pages.incidents = [card(101)]
    await looking.look()
    looking.pages.incidents = [card(101), card(102, who=14)]

    await looking.look()

    assert looking.versions() == ["card:home:1 1 insert", "card:home:2 1 insert"]


async def test_two_lists_that_differ_do_not_vouch_for_each_other(looking: LookingAtFootball) -> None:
    looking.pages.lineups = None

    for nth in range(6):
        looking.pages.incidents = [card(101, who=5000 + nth)]
        await looking.look()

    assert looking.versions() == []


@pytest.mark.parametrize("shown", [lineups(), None], ids=["line-ups", "the board"])
async def test_a_list_that_something_speaks_against_is_believed_only_when_it_stays(
    looking: LookingAtFootball, shown: dict[str, object] | None
) -> None:
    looking.pages.lineups = shown
    looking.pages.event = event("1st half", 0 if shown else 2, 0)
    looking.pages.incidents = [card(900, who=5000)]

    outcome = await looking.look(times=LOOKS_AGAINST - 1)
    assert (looking.versions(), outcome.state.sync) == ([], SyncState.RECOVERING)
    await looking.look()

    assert looking.versions() == ["card:home:1 1 insert"]


async def test_the_same_number_does_not_make_another_match_s_event_ours(looking: LookingAtFootball) -> None:
    looking.pages.lineups = None
    looking.pages.incidents = [card(101)]
    await looking.look(times=2)
    looking.pages.incidents = [card(101, who=5000, time=33), card(102, who=5001)]
    await looking.look(times=LOOKS_AGAINST - 1)
    looking.pages.incidents = [card(101)]

    await looking.look(times=2)

    assert looking.versions() == ["card:home:1 1 insert"]
    assert not looking.state.suspects


async def test_line_ups_are_asked_for_at_once_when_only_they_can_vouch_for_a_list(looking: LookingAtFootball) -> None:
    looking.pages.lineups = SourceFailed("502")
    await looking.look()
    looking.pages.lineups, looking.pages.incidents = lineups(), [card(101)]
    looking.pages.asked.clear()

    await looking.look()

    assert looking.versions() == ["card:home:1 1 insert"]
    assert looking.pages.asked == ["incidents", "77", "lineups", "lineups"]


async def test_line_ups_of_another_match_vouch_for_nobody(looking: LookingAtFootball) -> None:
    looking.pages.lineups_before = [lineups(home=6000, away=7000)]
    looking.pages.incidents = [card(101, who=6001)]

    await looking.look(times=LOOKS_AGAINST - 1)

    assert looking.versions() == []
    assert "6000" not in looking.state.squad_keys
    assert looking.sink.named("resource.failed")


async def test_empty_line_ups_do_not_confirm_those_of_another_match(looking: LookingAtFootball) -> None:
    looking.pages.lineups_before = [lineups(home=6000, away=7000)]
    looking.pages.lineups = {"confirmed": False, "home": None, "away": None}
    looking.pages.incidents = [card(101, who=6001)]

    await looking.look()

    assert looking.versions() == []
    assert "lineups" not in looking.payload()
    assert looking.sink.named("resource.failed")


async def test_line_ups_before_the_first_event_are_not_replaced_by_another_match_s(looking: LookingAtFootball) -> None:
    await looking.look()
    looking.pages.lineups_before = [lineups(home=6000, away=7000)]

    await looking.look(is_whole=True)

    assert looking.payload()["lineups"]["home"]["starters"][0]["key"] == "11"


async def test_line_ups_that_a_list_contradicts_are_asked_for_again_before_the_list_is_doubted(
    looking: LookingAtFootball,
) -> None:
    looking.pages.lineups = lineups(home=6000, away=7000)
    await looking.look()
    looking.pages.lineups, looking.pages.incidents = lineups(), [card(101)]

    await looking.look()

    assert looking.versions() == ["card:home:1 1 insert"]
    assert looking.payload()["lineups"]["home"]["starters"][0]["key"] == "11"


async def test_a_list_with_an_event_that_we_hold_is_believed_at_once(looking: LookingAtFootball) -> None:
    looking.pages.lineups = None
    looking.pages.incidents = [card(101)]
    await looking.look(times=2)
    looking.pages.incidents = [card(101), card(102, who=14)]

    await looking.look()

    assert looking.versions() == ["card:home:1 1 insert", "card:home:2 1 insert"]


@pytest.mark.req("NFR-009")
@pytest.mark.parametrize("shown", [lineups(), None], ids=["line-ups", "no line-ups"])
async def test_one_list_of_the_other_leg_changes_nothing_though_the_same_people_play(
    looking: LookingAtFootball, shown: dict[str, object] | None
) -> None:
    looking.pages.lineups = shown
    looking.pages.incidents = [card(101, who=12)]
    await looking.look(times=2)
    looking.pages.incidents = [goal(900, 1, 0, scorer=12), card(901, who=13, time=70)]
    await looking.look()
    looking.pages.incidents = [card(101, who=12)]

    await looking.look(times=2)

    assert looking.versions() == ["card:home:1 1 insert"]
    assert not looking.state.suspects


async def test_a_first_list_that_is_ahead_of_the_board_is_stored_one_look_late(looking: LookingAtFootball) -> None:
    looking.pages.incidents = [goal(100, 1, 0)]

    outcome = await looking.look()
    assert (looking.versions(), outcome.state.sync) == ([], SyncState.RECOVERING)
    await looking.look()

    assert looking.versions() == ["goal:home:1 1 insert"]


async def test_a_list_that_is_ahead_of_the_board_waits_no_longer_than_the_board_lags(
    looking: LookingAtFootball,
) -> None:
    looking.pages.incidents = [goal(100, 1, 0)]
    await looking.look()
    # Meanwhile the scorer is another one: the list has not just grown.
    looking.pages.event, looking.pages.incidents = event("1st half", 1, 0), [goal(100, 1, 0, scorer=12)]

    await looking.look()

    assert looking.versions() == ["goal:home:1 1 insert"]


async def test_a_goal_that_is_ahead_of_the_board_is_stored_at_once_beside_an_event_that_we_hold(
    looking: LookingAtFootball,
) -> None:
    looking.pages.incidents = [card(101)]
    await looking.look()
    looking.pages.incidents = [card(101), goal(102, 1, 0, time=30)]

    await looking.look()

    assert looking.versions() == ["card:home:1 1 insert", "goal:home:1 1 insert"]


async def test_a_doubted_list_that_is_gone_is_doubted_afresh_when_it_comes_back(looking: LookingAtFootball) -> None:
    looking.pages.lineups = None
    looking.pages.incidents = [card(900, who=5000)]
    await looking.look()
    looking.pages.incidents = None

    outcome = await looking.look(times=20)
    assert (outcome.state.sync, outcome.state.suspects) == (SyncState.IN_SYNC, frozenset())
    looking.pages.incidents = [card(900, who=5000)]
    await looking.look()

    assert looking.versions() == []


async def test_one_list_of_another_match_changes_nothing(looking: LookingAtFootball) -> None:
    looking.pages.incidents = [card(101), period("HT", 0, 0, 45)]
    await looking.look()
    looking.pages.incidents = [card(900, who=5000), period("HT", 3, 3, 45)]
    await looking.look()
    looking.pages.incidents = [card(101), period("HT", 0, 0, 45)]

    await looking.look(times=2)

    assert looking.versions() == ["card:home:1 1 insert", "period:1 1 insert"]
    assert not looking.state.suspects


async def test_after_a_restart_the_stored_line_ups_speak_for_a_list(looking: LookingAtFootball) -> None:
    await looking.look()
    looking.pages.lineups = None
    await looking.restart()
    looking.pages.incidents = [card(101, who=12)]

    await looking.look()

    assert looking.versions() == ["card:home:1 1 insert"]


async def test_line_ups_that_a_list_contradicts_twice_are_read_again(looking: LookingAtFootball) -> None:
    looking.pages.lineups = lineups(home=6000, away=7000)
    await looking.look()
    looking.pages.lineups = lineups()
    looking.pages.incidents = [card(100 + nth, who=12 + nth) for nth in range(4)]

    await looking.look(times=3)

    assert len(looking.versions()) == 4
    assert looking.payload()["lineups"]["home"]["starters"][0]["key"] == "11"


async def test_line_ups_of_people_who_do_not_play_here_are_refused(looking: LookingAtFootball) -> None:
    looking.pages.incidents = [card(101, who=12), card(102, who=13), substitution(103)]
    await looking.look()
    looking.pages.lineups = lineups(home=6000, away=7000)

    await looking.look(is_whole=True)

    assert looking.payload()["lineups"]["home"]["starters"][0]["key"] == "11"
    assert looking.sink.named("resource.failed")


async def test_a_team_that_plays_against_itself_is_refused(looking: LookingAtFootball) -> None:
    looking.pages.event = event(awayTeam={"id": 1, "name": "Fennick FC"})

    with pytest.raises(ImpossibleObservation):
        await looking.look()


async def test_a_goal_that_falls_between_two_requests_opens_no_question(looking: LookingAtFootball) -> None:
    await looking.look()
    looking.pages.event = event("1st half", 1, 0)
    asked = looking.pages.asked
    asked.clear()

    class Late(list[dict[str, object]]):
        """A list in which the goal stands only when it is asked for again."""

        def __getitem__(self, index: object) -> list[dict[str, object]]:  # type: ignore[override]
            return [goal(100, 1, 0)] if asked.count("incidents") > 1 else []

    looking.pages.incidents = Late()

    await looking.look()

    assert looking.versions() == ["goal:home:1 1 insert"]
    assert not looking.state.suspects


async def test_goals_without_a_list_open_a_question_at_the_second_look(looking: LookingAtFootball) -> None:
    looking.pages.event, looking.pages.incidents = event("Started", 2, 0), None

    assert not (await looking.look()).state.findings
    [finding] = (await looking.look()).state.findings

    assert (finding.place, finding.detail) == ("home", "0 goals are listed, the board shows 2")


async def test_a_question_is_closed_when_board_and_list_agree(looking: LookingAtFootball) -> None:
    looking.pages.event, looking.pages.incidents = event("Started", 1, 0), None
    await looking.look(times=2)
    looking.pages.incidents = [goal(100, 1, 0)]

    await looking.look()

    assert looking.state.findings == ()


async def test_names_are_learnt_from_line_ups_and_incidents(looking: LookingAtFootball) -> None:
    looking.pages.incidents = [{**card(101), "player": player(12, "Ngaio Šimek")}]
    looking.pages.lineups = lineups()

    await looking.look()

    assert looking.store.teams[1] == {"1": "Fennick FC", "2": "Port Élan United"}
    assert len(looking.store.players[1]) == 40
    assert looking.state.row.title == "Fennick FC vs Port Élan United"


async def test_a_page_that_cannot_be_read_changes_nothing(looking: LookingAtFootball) -> None:
    looking.pages.incidents = [goal(100, 1, 0)]
    looking.pages.event = event("1st half", 1, 0)
    await looking.look()
    spoilt = goal(101, 2, 0)
    del spoilt["homeScore"]
    looking.pages.incidents = [goal(100, 1, 0), spoilt]

    with pytest.raises(LayoutChanged):
        await looking.look()

    assert looking.versions() == ["goal:home:1 1 insert"]


@pytest.mark.req("EC3")
async def test_a_match_whose_page_is_gone_is_read_once_more_and_completed(looking: LookingAtFootball) -> None:
    looking.pages.event = event("2nd half", 1, 0)
    looking.pages.incidents = [goal(100, 1, 0)]
    await looking.look()
    looking.pages.event = PageNotFound("404")
    looking.pages.incidents = [goal(100, 1, 0), card(101)]

    done = await looking.road.finish(looking.state, Effort())

    assert done.row.phase is Phase.COMPLETED
    assert looking.versions()[-1] == "card:home:1 1 insert"
    assert [finding.place for finding in done.findings] == ["result"]


async def test_a_restart_goes_on_from_what_is_stored(looking: LookingAtFootball) -> None:
    looking.pages.event = event("1st half", 1, 0)
    looking.pages.incidents = [goal(100, 1, 0)]
    await looking.look()
    await looking.restart()

    outcome = await looking.look()

    assert outcome.receipt is None
    assert outcome.state.sync is SyncState.IN_SYNC


async def test_the_payload_is_of_its_schema_and_in_the_order_of_play(looking: LookingAtFootball) -> None:
    looking.pages.event = event("AP", {"current": 5, "display": 1, "penalties": 4, "period1": 1, "period2": 0}, {
        "current": 4, "display": 1, "penalties": 3, "period1": 0, "period2": 1,
    }, winnerCode=1)  # fmt: skip
    kick = {"incidentType": "penaltyShootout", "id": 300, "isHome": True, "incidentClass": "missed", "sequence": 1}
    looking.pages.incidents = [
        {**period("PEN", 4, 3, 999), "period": "penalties"},
        {**kick, "homeScore": 0, "awayScore": 0, "player": player(11)},
        period("FT", 1, 1, 90),
        goal(102, 1, 1, is_home=False, time=90, scorer=41) | {"addedTime": 3},
        period("HT", 1, 0, 45),
        goal(100, 1, 0, time=45) | {"addedTime": 2},
        card(104) | {"time": -5},
    ]
    looking.pages.lineups, looking.pages.statistics = lineups(), statistics()

    await looking.look(times=2)

    FootballEventV1.model_validate(looking.payload())
    assert [each["key"] for each in looking.payload()["incidents"]] == [
        "goal:home:1", "period:3", "goal:away:1", "period:2", "card:home:1", "kick:home:1", "period:1",
    ]  # fmt: skip
    assert looking.payload()["score"]["penalties"] == {"home": 4, "away": 3}
    result = looking.state.result
    assert isinstance(result, FootballResult)
    assert (result.after, result.home, result.home_penalties) == ("AP", 1, 4)
    scored = looking.state.events[EventKey.parse("goal:home:1")].content
    assert isinstance(scored, Goal)
    assert (scored.minute, scored.added) == (45, 2)
