"""The pipeline with a small site and a store in memory: what one poll stores, and what it must not store."""

from typing import Any, cast

import msgspec
import pytest

from longstop.errors import EpochLost, LayoutSuspected, ParseError, SourceFailed, StorageError
from longstop.model.data_finding import FindingKind
from longstop.model.event import Event, EventKey, Op
from longstop.model.match import MatchStatus, Phase
from longstop.model.polling_status import SyncState
from longstop.sports.cricket.model import (
    CricketKind,
    CricketState,
    Delivery,
    InningsSummary,
    Overs,
    Result,
    ResultKind,
    Runs,
)
from longstop.sports.cricket.sport import Cricket
from tests.builders import body
from tests.crex_site import OUT_OF_ORDER
from tests.live import poll
from tests.unit.sports.cricket.polling import Polling

INNINGS_1 = EventKey(CricketKind.INNINGS, (1,))
RESULT = EventKey("result")


async def watching(*values: str) -> Polling:
    polling = Polling()
    polling.match.bowl(*values)
    await polling.start()
    await polling.poll()
    return polling


def versions(polling: Polling, key: EventKey) -> list[Event]:
    return [stored.event for stored in polling.store.history[1] if stored.event.key == key]


def open_findings(polling: Polling) -> list[tuple[FindingKind, str]]:
    return [(finding.kind, finding.place) for finding in polling.store.findings[1]]


def payload(polling: Polling) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(polling.store.snapshots[1].payload)
    return found


# --- storing ---


@pytest.mark.req("MON-1")
async def test_the_first_good_poll_makes_a_match_active_and_in_sync() -> None:
    polling = await watching(*["1"] * 13)

    assert polling.stored_balls() == polling.true_balls()
    assert (polling.state.row.phase, polling.state.sync) == (Phase.ACTIVE, SyncState.IN_SYNC)


async def test_a_poll_without_change_stores_nothing() -> None:
    polling = await watching("1", "4")

    polling.match.odds += 1
    polling.match.headline = "^2"
    outcome = await polling.poll(3)

    assert outcome.receipt is None
    assert len(polling.store.updates) == 1


async def test_events_snapshot_and_names_of_one_poll_are_one_update() -> None:
    polling = await watching("1", "4")

    [update] = polling.store.updates
    assert len(update.events) == 2
    assert update.snapshot is not None
    assert update.players == {"A1": "Ann Alpha", "A2": "Amy Alpha", "B1": "Bea Beta"}
    assert update.teams == {"T1": "Reds", "T2": "Blues"}


async def test_sequence_numbers_grow_with_the_play() -> None:
    polling = await watching(*["1"] * 13)

    kinds = [str(stored.event.key) for stored in polling.store.history[1]]
    assert kinds[5:8] == ["delivery:1:0:6", "over:1:0", "delivery:1:1:1"]


async def test_a_commit_that_fails_changes_nothing_and_the_next_poll_derives_it_again() -> None:
    polling = await watching("1")
    before = polling.state
    polling.match.bowl("4", "wd")
    polling.store.next_failure = StorageError("the disk is full")

    with pytest.raises(StorageError):
        await polling.poll()
    assert polling.state is before
    await polling.poll()

    assert polling.stored_balls() == polling.true_balls()
    polling.check_invariants()


async def test_an_owner_that_lost_its_epoch_writes_nothing() -> None:
    polling = await watching("1")
    await polling.store.claim(1, "node-b")
    polling.match.bowl("4")

    with pytest.raises(EpochLost):
        await polling.poll()

    assert len(polling.stored_balls()) == 1


@pytest.mark.parametrize("resource", ["getBallFeeds", "getSV3"])
@pytest.mark.parametrize("answer", [b"", b"<html>", b"[{", b'{"a": 1}', b"[" * 100_000])
async def test_a_spoilt_page_stores_nothing_loses_nothing_and_the_next_poll_goes_on(
    resource: str, answer: bytes
) -> None:
    polling = await watching("1")
    polling.match.bowl("4")
    polling.site.faults[resource] = answer

    with pytest.raises(ParseError) as caught:
        await polling.poll()
    assert (caught.value.source, len(polling.store.updates)) == ("crex", 1)
    polling.site.faults.clear()
    await polling.poll()

    assert polling.stored_balls() == polling.true_balls()


async def test_a_restart_goes_on_from_what_is_stored_without_gap_or_duplicate() -> None:
    polling = await watching(*["1"] * 20)
    polling.match.bowl(*["2"] * 15)

    await polling.restart()
    after_restart = polling.state.sync
    await polling.poll()

    assert polling.stored_balls() == polling.true_balls()
    assert {stored.event.rev for stored in polling.store.history[1]} == {1}
    assert (after_restart, polling.state.sync) == (SyncState.RECOVERING, SyncState.IN_SYNC)


# --- steps back ---


async def test_a_step_back_counts_only_when_two_polls_agree() -> None:
    polling = await watching("1", "4", "1")
    polling.match.balls[1].value = "0"

    await polling.poll()
    assert [runs.total for _, _, runs, _ in polling.stored_balls() if hasattr(runs, "total")] == [1, 4, 1]
    await polling.poll()

    assert polling.stored_balls() == polling.true_balls()


async def test_an_old_copy_served_once_is_no_correction() -> None:
    polling = await watching(*["1"] * 8)
    newer = polling.match.bowl("4")[0]
    await polling.poll()
    polling.match.remove(newer)
    await polling.poll()
    polling.match.balls.append(newer)

    await polling.poll(2)

    assert [event.op for event in versions(polling, EventKey(CricketKind.DELIVERY, (1, 1, 3)))] == [Op.INSERT]


async def test_a_ball_that_the_feed_alone_lost_is_kept() -> None:
    polling = await watching(*["1"] * 8)
    polling.match.feed_lag = 2

    await polling.poll(4)

    assert len(polling.stored_balls()) == 8


async def test_an_empty_feed_loses_nothing() -> None:
    polling = await watching(*["1"] * 7)
    before = dict(polling.state.events)
    polling.site.faults["getBallFeeds"] = b"[]"

    await polling.poll(4)

    assert dict(polling.state.events) == before


async def test_more_balls_gone_than_an_over_holds_are_not_believed() -> None:
    polling = await watching(*["1"] * 40)
    del polling.match.balls[:20]
    polling.match.headline = "Innings Break"

    for _ in range(3):
        with pytest.raises(LayoutSuspected, match="vanished") as caught:
            await polling.poll()

    assert (caught.value.source, len(polling.stored_balls())) == ("crex", 40)


async def test_a_dot_ball_taken_away_in_an_old_over_is_void_after_the_innings() -> None:
    polling = await watching(*["0"] * 40)
    polling.match.remove(polling.match.balls[3])
    polling.match.headline = "Innings Break"

    await polling.poll(2)

    [*_, last] = versions(polling, EventKey(CricketKind.DELIVERY, (1, 0, 4)))
    assert (last.op, last.rev, last.position) == (Op.VOID, 2, None)
    assert polling.stored_balls() == polling.true_balls()


# --- ends ---


@pytest.mark.req("FLD-1")
@pytest.mark.parametrize("text", ["Stumps", "Lunch", "Tea", "Drinks", "Rain", "Innings Break", "Toss won by Reds"])
async def test_a_break_completes_nothing_and_play_is_picked_up_again(text: str) -> None:
    polling = await watching("1")
    polling.match.headline = text
    await polling.poll(3)
    assert (polling.state.row.phase, polling.state.row.status) == (Phase.ACTIVE, MatchStatus.BREAK)

    polling.match.headline = "B"
    polling.match.bowl("4")
    await polling.poll()

    assert polling.state.row.status is MatchStatus.LIVE
    assert polling.stored_balls() == polling.true_balls()


@pytest.mark.req("MON-1")
async def test_a_result_needs_two_polls() -> None:
    polling = await watching("1", "4")
    polling.match.headline = "Reds won by 8 wickets"

    await polling.poll()
    assert (polling.state.row.phase, polling.state.row.status) == (Phase.ACTIVE, MatchStatus.LIVE)
    assert "result" not in payload(polling)
    await polling.poll()

    assert (polling.state.row.phase, polling.state.row.status) == (Phase.COMPLETED, MatchStatus.COMPLETED)
    [event] = versions(polling, RESULT)
    assert event.content == Result(outcome=ResultKind.WON, text="Reds won by 8 wickets")
    assert payload(polling)["result"] == {"outcome": "won", "text": "Reds won by 8 wickets"}


@pytest.mark.req("MON-1")
async def test_a_result_that_is_taken_back_makes_the_match_active_again() -> None:
    polling = await watching("1", "4")
    polling.match.headline = "Match tied"
    await polling.poll(2)
    polling.match.headline = "B"

    phases = [(await polling.poll()).state.row.phase for _ in range(2)]

    assert phases == [Phase.COMPLETED, Phase.ACTIVE]
    assert [event.op for event in versions(polling, RESULT)] == [Op.INSERT, Op.VOID]
    assert "result" not in payload(polling)


async def test_another_result_replaces_the_first_after_two_polls() -> None:
    polling = await watching("1", "4")
    polling.match.headline = "Reds won by 8 runs"
    await polling.poll(2)
    polling.match.headline = "Reds won by 9 runs"

    await polling.poll()
    assert len(versions(polling, RESULT)) == 1
    await polling.poll()

    assert versions(polling, RESULT)[-1].content == Result(outcome=ResultKind.WON, text="Reds won by 9 runs")
    assert polling.state.row.phase is Phase.COMPLETED


async def test_an_innings_ends_once_and_stays_ended_until_the_next_ball() -> None:
    polling = await watching("1", "4")
    polling.match.headline = "Innings Break"
    await polling.poll(2)
    polling.match.headline = "B"
    await polling.poll(3)
    polling.match.bowl("1", innings=2)
    polling.match.feed_lag = 1
    await polling.poll(3)
    polling.match.feed_lag = 0

    await polling.poll(2)

    [event] = versions(polling, INNINGS_1)
    assert event.content == InningsSummary(team="T1", runs=5, wickets=0, overs=Overs(0, 2))


async def test_an_innings_that_goes_on_after_all_is_taken_back() -> None:
    polling = await watching("1", "4")
    polling.match.headline = "Innings Break"
    await polling.poll(2)
    polling.match.headline = "B"
    polling.match.bowl("2")

    await polling.poll(2)

    assert [event.op for event in versions(polling, INNINGS_1)] == [Op.INSERT, Op.VOID]


async def test_a_second_innings_is_reported_apart_from_the_first() -> None:
    polling = await watching(*["1"] * 6)
    polling.match.headline = "Innings Break"
    await polling.poll(2)
    polling.match.headline = "B"
    polling.match.bowl("4", innings=2)

    await polling.poll()

    assert polling.stored_balls() == polling.true_balls()
    [first, second] = payload(polling)["innings"]
    assert (first["team"], first["runs"], first["is_closed"]) == ("T1", 6, True)
    assert (second["team"], second["runs"], second["is_closed"]) == ("T2", 4, False)


async def test_a_card_with_swapped_sides_at_the_end_of_an_innings_changes_nothing() -> None:
    polling = await watching("1", "4")
    polling.match.headline = "Innings Break"
    polling.site.faults["getSC4"] = body([{**item, "c": "T2"} for item in polling.match.scorecard()])
    await polling.poll(2)
    await polling.restart()
    await polling.poll(2)
    polling.site.faults.clear()
    polling.match.headline = "B"
    polling.match.bowl("4", innings=2)

    await polling.poll(2)

    [event] = versions(polling, INNINGS_1)
    assert event.content == InningsSummary(team="T1", runs=5, wickets=0, overs=Overs(0, 2))
    assert [innings["team"] for innings in payload(polling)["innings"]] == ["T1", "T2"]
    assert not polling.state.suspects


async def test_a_super_over_is_a_new_pair_and_leaves_the_old_one_alone() -> None:
    polling = await watching(*["1"] * 6)
    polling.match.bowl(*["1"] * 6, innings=2)
    polling.match.headline = "Super Over"
    await polling.poll(2)
    polling.match.headline = "B"
    polling.match.bowl("6", "4", innings=3)
    polling.match.feed_lag = 2
    await polling.poll()
    polling.match.feed_lag = 0

    await polling.poll(2)

    assert polling.stored_balls() == polling.true_balls()
    assert [event.op for event in versions(polling, INNINGS_1)] == [Op.INSERT]
    assert open_findings(polling) == []


# --- what is good to have ---


async def test_a_scorecard_that_fails_is_no_stop() -> None:
    polling = Polling()
    polling.match.bowl("1")
    polling.site.faults["getSC4"] = OUT_OF_ORDER
    await polling.start()

    await polling.poll()

    assert len(polling.stored_balls()) == 1
    [failure] = polling.sink.named("resource.failed")
    assert msgspec.structs.asdict(failure)["resource"] == "scorecard"


@pytest.mark.parametrize(
    "card", [b'[{"c": "T1", "d": "1/12(1"}]', b'[{"c": "T8", "d": "1/0(1"}, {"c": "T9", "d": "1/0(1"}]']
)
async def test_a_scorecard_that_cannot_be_true_is_not_used(card: bytes) -> None:
    polling = Polling()
    polling.match.bowl("1")
    polling.site.faults["getSC4"] = card
    await polling.start()

    await polling.poll()

    assert polling.state.scorecard is None
    assert len(polling.sink.named("resource.failed")) == 1


async def test_names_that_come_late_are_asked_for_until_they_come() -> None:
    polling = Polling()
    polling.match.bowl("1")
    polling.site.faults["getHomeMapData"] = SourceFailed("the site answered 500")
    await polling.start()
    await polling.poll()
    assert polling.state.players == {}
    polling.site.faults.clear()
    del polling.site.names["A2"]

    polling.match.bowl("1")
    await polling.poll()
    assert payload(polling)["players"] == {"A1": "Ann Alpha", "B1": "Bea Beta"}
    polling.site.names["A2"] = "Amy Alpha"
    polling.match.bowl("1")
    await polling.poll()

    assert polling.store.players[1] == {"A1": "Ann Alpha", "A2": "Amy Alpha", "B1": "Bea Beta"}
    asked = polling.site.count("getHomeMapData")
    polling.match.bowl("1")
    await polling.poll()
    assert polling.site.count("getHomeMapData") == asked


async def test_a_missing_name_is_known_and_a_full_poll_of_the_same_pages_asks_for_it_again() -> None:
    polling = Polling()
    polling.match.bowl("1")
    del polling.site.names["B1"]
    await polling.start()
    await polling.poll(3)
    assert polling.state.has_unnamed
    polling.site.names["B1"] = "Bea Beta"

    polling.state = cast(CricketState, (await poll(polling.pipeline, polling.state, is_full=True)).state)

    assert polling.store.players[1]["B1"] == "Bea Beta"
    assert not polling.state.has_unnamed


# --- findings ---


async def test_a_mismatch_is_on_record_after_two_polls_and_closed_when_it_is_gone() -> None:
    polling = await watching(*["1"] * 8)
    polling.match.extra_runs = 2

    await polling.poll()
    assert not open_findings(polling)
    await polling.poll()
    assert open_findings(polling) == [(FindingKind.MISMATCH, "1")]
    assert len(polling.stored_balls()) == 8
    polling.match.extra_runs = 0
    await polling.poll()

    assert open_findings(polling) == []


async def test_a_gap_is_on_record_after_two_polls_and_closed_when_it_is_filled() -> None:
    polling = Polling()
    balls = polling.match.bowl(*["1"] * 8)
    hidden = {balls[2].id}
    whole_feed = polling.match.feed
    polling.match.feed = lambda before: [item for item in whole_feed(before) if item["id"] not in hidden]  # type: ignore[method-assign]
    await polling.start()

    await polling.poll(2)
    [gap] = [finding for finding in polling.store.findings[1] if finding.kind is FindingKind.GAP]
    assert (gap.place, gap.detail) == ("1:0", "missing: ball 3")
    hidden.clear()
    await polling.poll(2)

    assert open_findings(polling) == []
    assert polling.stored_balls() == polling.true_balls()


async def test_a_match_with_a_mismatch_comes_into_sync_once_it_is_on_record() -> None:
    polling = Polling()
    polling.match.bowl("1")
    polling.match.extra_runs = 1
    await polling.start()

    syncs = [(await polling.poll()).state.sync for _ in range(2)]

    assert syncs == [SyncState.RECOVERING, SyncState.IN_SYNC]


async def test_an_archived_match_keeps_what_is_known_of_it() -> None:
    polling = await watching("1")
    polling.match.headline = "No result"
    await polling.poll(2)
    events = dict(polling.state.events)

    state = await polling.pipeline.archive(polling.state)

    assert (state.row.phase, dict(state.events)) == (Phase.ARCHIVED, events)
    assert isinstance(polling.stored(CricketKind.DELIVERY)[0].content, Delivery)


@pytest.mark.req("JOB-6")
async def test_an_older_scoreboard_is_not_served_until_a_second_poll_agrees() -> None:
    polling = await watching("1", "4", "6")
    served = payload(polling)["score"]
    polling.match.j = "1/0(0.1"

    await polling.poll()
    assert payload(polling)["score"] == served
    polling.match.j = None
    await polling.poll()

    assert payload(polling)["score"] == served


async def test_a_scoreboard_that_goes_back_for_good_is_served_after_two_polls() -> None:
    polling = await watching("1", "4", "6")
    polling.match.j = "9/0(0.3"

    await polling.poll(2)

    assert payload(polling)["score"]["team_a"]["runs"] == 9


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        (Runs(), "1.4: 0"),
        (Runs(batter=4), "1.4: 4"),
        (Runs(wides=1), "1.4: 1 wide"),
        (Runs(wides=5), "1.4: 5 wides"),
        (Runs(batter=6, noballs=1), "1.4: 6 + 1 no-ball"),
        (Runs(legbyes=2), "1.4: 2 leg byes"),
        (Runs(byes=1, penalty=5), "1.4: 1 bye + 5 penalty runs"),
    ],
)
def test_a_delivery_names_its_extras(runs: Runs, text: str) -> None:
    """A wide has the label of the ball that follows it: without its name it looks like a duplicate."""
    content = Delivery(label=Overs(1, 4), runs=runs)
    event = Event(
        key=EventKey(CricketKind.DELIVERY, (1, 1, 4)), rev=1, op=Op.INSERT, content=content, source_event_id="9"
    )

    assert Cricket().describe(event) == text
