"""The pipeline of football, from pages to what is stored and served."""

from contextlib import suppress
from typing import cast

import msgspec
import pytest

from longstop.errors import (
    ImpossibleObservation,
    LayoutChanged,
    ObservationError,
    PageNotFound,
    SuspectAnswer,
    WrongMatch,
)
from longstop.matches.live_match_and_feeds import LiveMatches
from longstop.matches.source_client_and_poll_attempt import PollAttempt
from longstop.model.event import EventKey
from longstop.model.match import MatchStatus, Phase
from longstop.model.polling_status import SyncState
from longstop.sports.football.model import FootballResult, FootballState, Goal
from longstop.sports.football.payload import FootballEventV1
from tests.football_site import LookingAtFootball, card, event, goal, lineups, period, player, statistics, substitution
from tests.live import finished, poll


async def test_a_match_in_play_is_stored_with_its_events_and_is_in_sync(polling: LookingAtFootball) -> None:
    polling.pages.event = event("2nd half", 1, 1)
    polling.pages.incidents = [
        goal(100, 1, 0),
        card(101),
        period("HT", 1, 0, 45),
        goal(102, 1, 1, is_home=False, time=50, scorer=41),
        substitution(103),
    ]

    outcome = await polling.poll()

    assert polling.versions() == [
        "goal:home:1 1 insert",
        "card:home:1 1 insert",
        "period:1 1 insert",
        "goal:away:1 1 insert",
        "substitution:home:1 1 insert",
    ]
    assert (outcome.state.sync, outcome.state.row.phase) == (SyncState.IN_SYNC, Phase.ACTIVE)
    assert polling.payload()["score"] == {"home": 1, "away": 1, "periods": []}


async def test_a_second_poll_at_the_same_pages_stores_nothing(polling: LookingAtFootball) -> None:
    polling.pages.event = event("1st half", 1, 0)
    polling.pages.incidents = [goal(100, 1, 0)]
    await polling.poll()

    outcome = await polling.poll()

    assert outcome.receipt is None


@pytest.mark.req("MON-1")
async def test_a_result_counts_when_two_polls_have_seen_it(polling: LookingAtFootball) -> None:
    polling.pages.event = event("2nd half", 1, 0)
    polling.pages.incidents = [goal(100, 1, 0)]
    await polling.poll()
    polling.pages.event = event("Ended", 1, 0, winnerCode=1)

    await polling.poll()
    assert (polling.state.row.phase, polling.state.row.status) == (Phase.ACTIVE, MatchStatus.LIVE)
    await polling.poll()

    assert (polling.state.row.phase, polling.state.row.status) == (Phase.COMPLETED, MatchStatus.COMPLETED)
    assert polling.payload()["result"] == {"outcome": "home", "after": "FT", "text": "home won 1-0 FT"}


async def test_a_result_that_is_taken_back_opens_the_match_again(polling: LookingAtFootball) -> None:
    polling.pages.event = event("Ended", 0, 0, winnerCode=3)
    await polling.poll(times=2)
    polling.pages.event = event("2nd half", 0, 0)

    await polling.poll(times=2)

    assert (polling.state.row.phase, polling.state.row.status) == (Phase.ACTIVE, MatchStatus.LIVE)
    assert polling.versions() == ["result 1 insert", "result 2 void"]


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
async def test_what_is_not_over_is_not_completed(polling: LookingAtFootball, name: str, status: MatchStatus) -> None:
    polling.pages.event = event(name, {}, {})

    await polling.poll(times=3)

    assert (polling.state.row.phase, polling.state.row.status) == (Phase.ACTIVE, status)


async def test_a_postponed_match_that_is_played_later_goes_on_by_itself(polling: LookingAtFootball) -> None:
    polling.pages.event, polling.pages.incidents = event("Postponed", {}, {}), None
    await polling.poll(times=2)
    polling.pages.event = event("1st half", 1, 0, startTimestamp=1_800_000_000)
    polling.pages.incidents = [goal(100, 1, 0)]

    await polling.poll()

    assert polling.state.row.status is MatchStatus.LIVE
    assert polling.state.row.start_at is not None
    assert polling.state.row.start_at.timestamp() == 1_800_000_000


@pytest.mark.req("FLD-3")
async def test_before_the_kick_off_there_is_no_score_and_nothing_that_is_missing_is_an_error(
    polling: LookingAtFootball,
) -> None:
    polling.pages.event, polling.pages.incidents = event("Not started", {}, {}), None
    polling.pages.lineups = None
    attempt = PollAttempt()

    outcome = await poll(polling.pipeline, polling.state, attempt=attempt)

    polling.state = cast(FootballState, outcome.state)
    assert polling.state.sync is SyncState.IN_SYNC
    assert attempt.error_count == 0
    assert not polling.sink.named("resource.failed")
    assert not {"score", "lineups", "statistics", "result"} & polling.payload().keys()
    assert polling.payload()["incidents"] == []


async def test_an_event_of_another_match_is_refused(polling: LookingAtFootball) -> None:
    polling.pages.event = event(id=78)

    with pytest.raises(WrongMatch):
        await polling.poll()

    assert not polling.store.updates


async def test_exchanged_sides_are_refused(polling: LookingAtFootball) -> None:
    polling.pages.incidents = [card(101)]
    await polling.poll()
    turned = event()
    polling.pages.event = {**turned, "homeTeam": turned["awayTeam"], "awayTeam": turned["homeTeam"]}

    with pytest.raises(WrongMatch):
        await polling.poll()


async def test_a_team_that_plays_against_itself_is_refused(polling: LookingAtFootball) -> None:
    polling.pages.event = event(awayTeam={"id": 1, "name": "Fennick FC"})

    with pytest.raises(ImpossibleObservation):
        await polling.poll()


async def test_names_are_learnt_from_line_ups_and_incidents(polling: LookingAtFootball) -> None:
    polling.pages.incidents = [{**card(101), "player": player(12, "Ngaio Šimek")}]
    polling.pages.lineups = lineups()

    await polling.poll()

    assert polling.store.teams[1] == {"1": "Fennick FC", "2": "Port Élan United"}
    assert len(polling.store.players[1]) == 40
    assert polling.state.row.title == "Fennick FC vs Port Élan United"


async def test_a_page_that_cannot_be_read_changes_nothing(polling: LookingAtFootball) -> None:
    polling.pages.incidents = [goal(100, 1, 0)]
    polling.pages.event = event("1st half", 1, 0)
    await polling.poll()
    spoilt = goal(101, 2, 0)
    del spoilt["homeScore"]
    polling.pages.incidents = [goal(100, 1, 0), spoilt]

    with pytest.raises(LayoutChanged):
        await polling.poll()

    assert polling.versions() == ["goal:home:1 1 insert"]


@pytest.mark.req("EC3")
async def test_a_match_whose_page_is_gone_is_read_once_more_and_completed(polling: LookingAtFootball) -> None:
    polling.pages.event = event("2nd half", 1, 0)
    polling.pages.incidents = [goal(100, 1, 0)]
    await polling.poll()
    polling.pages.event = PageNotFound("404")
    polling.pages.incidents = [goal(100, 1, 0), card(101)]

    done = await finished(polling.pipeline, polling.state)

    assert done.row.phase is Phase.COMPLETED
    assert polling.versions()[-1] == "card:home:1 1 insert"
    assert [finding.place for finding in done.findings] == ["result"]


async def test_a_restart_goes_on_from_what_is_stored(polling: LookingAtFootball) -> None:
    polling.pages.event = event("1st half", 1, 0)
    polling.pages.incidents = [goal(100, 1, 0)]
    await polling.poll()
    await polling.restart()

    outcome = await polling.poll()

    assert outcome.receipt is None
    assert outcome.state.sync is SyncState.IN_SYNC


async def test_the_payload_is_of_its_schema_and_in_the_order_of_play(polling: LookingAtFootball) -> None:
    polling.pages.event = event("AP", {"current": 5, "display": 1, "penalties": 4, "period1": 1, "period2": 0}, {
        "current": 4, "display": 1, "penalties": 3, "period1": 0, "period2": 1,
    }, winnerCode=1)  # fmt: skip
    kick = {"incidentType": "penaltyShootout", "id": 300, "isHome": True, "incidentClass": "missed", "sequence": 1}
    polling.pages.incidents = [
        {**period("PEN", 4, 3, 999), "period": "penalties"},
        {**kick, "homeScore": 0, "awayScore": 0, "player": player(11)},
        period("FT", 1, 1, 90),
        goal(102, 1, 1, is_home=False, time=90, scorer=41) | {"addedTime": 3},
        period("HT", 1, 0, 45),
        goal(100, 1, 0, time=45) | {"addedTime": 2},
        card(104) | {"time": -5},
    ]
    polling.pages.lineups, polling.pages.statistics = lineups(), statistics()

    await polling.poll(times=2)

    msgspec.convert(polling.payload(), FootballEventV1)
    assert [each["key"] for each in polling.payload()["incidents"]] == [
        "goal:home:1", "period:3", "goal:away:1", "period:2", "card:home:1", "kick:home:1", "period:1",
    ]  # fmt: skip
    assert polling.payload()["score"]["penalties"] == {"home": 4, "away": 3}
    result = polling.state.result
    assert isinstance(result, FootballResult)
    assert (result.after, result.home, result.home_penalties) == ("AP", 1, 4)
    scored = polling.state.events[EventKey.parse("goal:home:1")].content
    assert isinstance(scored, Goal)
    assert (scored.minute, scored.added) == (45, 2)


@pytest.mark.req("JOB-6")
async def test_a_suspect_answer_is_not_stored_and_the_source_is_read_in_another_way(polling: LookingAtFootball) -> None:
    suspected: list[str] = []
    polling.client.on_suspect = lambda: suspected.append("suspect")
    polling.pages.event = event("1st half", 1, 0)
    polling.pages.incidents = [goal(101, 1, 0)]
    await polling.poll()
    stored = polling.versions()
    polling.pages.event = event("1st half", {"current": 2, "display": 3}, 0)

    with pytest.raises(SuspectAnswer):
        await polling.poll()

    assert suspected
    assert polling.versions() == stored


@pytest.mark.req("JOB-6")
async def test_an_altered_first_answer_is_suspect_though_line_ups_are_read_twice_after_it(
    polling: LookingAtFootball,
) -> None:
    polling.pages.event = event("1st half", {"current": 1, "display": 3}, 0)
    polling.pages.incidents = [goal(101, 1, 0)]
    polling.pages.lineups = lineups()

    with pytest.raises(SuspectAnswer):
        await polling.poll()

    assert polling.versions() == []


@pytest.mark.req("JOB-6")
async def test_a_match_that_is_rebuilt_keeps_the_events_that_are_still_shown(polling: LookingAtFootball) -> None:
    cards = [card(100 + nth, who=11 + nth, time=10 + nth) for nth in range(8)]
    polling.pages.incidents, polling.pages.lineups = cards, None
    live = await LiveMatches(polling.store, "node-b").take(1)
    feed = await live.join(live.row.ref, polling.pipeline)

    async def poll_for(seconds: int) -> None:
        for _ in range(seconds // 5):
            polling.clock.advance(5)
            listed = (await polling.client.listing()).boards[0]
            with suppress(ObservationError):
                await live.poll(feed, is_full=not feed.state.board, attempt=PollAttempt(), listed=listed)

    await poll_for(60)
    polling.pages.incidents = cards[:3]
    await poll_for(30)

    versions = polling.versions()
    assert [version for version in versions if "void" in version] == [f"card:home:{nth} 2 void" for nth in range(4, 9)]
    assert not [version for version in versions if "update" in version]
    assert len(cast(FootballState, feed.state).incidents) == 3
