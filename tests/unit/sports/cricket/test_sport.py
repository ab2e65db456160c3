"""The road, walked with a small site and a store in memory: what one look stores, and what it must not."""

from typing import Any, cast

import msgspec
import pytest

from longstop.errors import EpochLost, LayoutSuspected, ParseError, SourceFailed, StorageError
from longstop.model.event import Event, EventKey, Op
from longstop.model.match import MatchStatus, Phase, SyncState
from longstop.sports.cricket.model import CricketKind, CricketState, Delivery, InningsSummary, Overs, Result, ResultKind
from longstop.storage.base import FindingKind
from tests.builders import body
from tests.crex_site import OUT_OF_ORDER
from tests.unit.sports.cricket.polling import Looking

INNINGS_1 = EventKey(CricketKind.INNINGS, (1,))
RESULT = EventKey("result")


async def watching(*values: str) -> Looking:
    looking = Looking()
    looking.match.bowl(*values)
    await looking.start()
    await looking.look()
    return looking


def versions(looking: Looking, key: EventKey) -> list[Event]:
    return [stored.event for stored in looking.store.history[1] if stored.event.key == key]


def open_findings(looking: Looking) -> list[tuple[FindingKind, str]]:
    return [(finding.kind, finding.place) for finding in looking.store.findings[1]]


def payload(looking: Looking) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(looking.store.snapshots[1].payload)
    return found


# --- storing ---


@pytest.mark.req("MON-1")
async def test_the_first_good_look_makes_a_match_active_and_in_sync() -> None:
    looking = await watching(*["1"] * 13)

    assert looking.stored_balls() == looking.true_balls()
    assert (looking.state.row.phase, looking.state.sync) == (Phase.ACTIVE, SyncState.IN_SYNC)


async def test_a_look_without_change_stores_nothing() -> None:
    looking = await watching("1", "4")

    looking.match.odds += 1
    looking.match.headline = "^2"
    outcome = await looking.look(3)

    assert outcome.receipt is None
    assert len(looking.store.updates) == 1


async def test_events_snapshot_and_names_of_one_look_are_one_update() -> None:
    looking = await watching("1", "4")

    [update] = looking.store.updates
    assert len(update.events) == 2
    assert update.snapshot is not None
    assert update.players == {"A1": "Ann Alpha", "A2": "Amy Alpha", "B1": "Bea Beta"}
    assert update.teams == {"T1": "Reds", "T2": "Blues"}


async def test_sequence_numbers_grow_with_the_play() -> None:
    looking = await watching(*["1"] * 13)

    kinds = [str(stored.event.key) for stored in looking.store.history[1]]
    assert kinds[5:8] == ["delivery:1:0:6", "over:1:0", "delivery:1:1:1"]


async def test_a_commit_that_fails_changes_nothing_and_the_next_look_derives_it_again() -> None:
    looking = await watching("1")
    before = looking.state
    looking.match.bowl("4", "wd")
    looking.store.next_failure = StorageError("the disk is full")

    with pytest.raises(StorageError):
        await looking.look()
    assert looking.state is before
    await looking.look()

    assert looking.stored_balls() == looking.true_balls()
    looking.check_invariants()


async def test_an_owner_that_lost_its_epoch_writes_nothing() -> None:
    looking = await watching("1")
    await looking.store.claim(1, "node-b")
    looking.match.bowl("4")

    with pytest.raises(EpochLost):
        await looking.look()

    assert len(looking.stored_balls()) == 1


@pytest.mark.parametrize("resource", ["getBallFeeds", "getSV3"])
@pytest.mark.parametrize("answer", [b"", b"<html>", b"[{", b'{"a": 1}', b"[" * 100_000])
async def test_a_spoilt_page_stores_nothing_loses_nothing_and_the_next_look_goes_on(
    resource: str, answer: bytes
) -> None:
    looking = await watching("1")
    looking.match.bowl("4")
    looking.site.faults[resource] = answer

    with pytest.raises(ParseError) as caught:
        await looking.look()
    assert (caught.value.source, len(looking.store.updates)) == ("crex", 1)
    looking.site.faults.clear()
    await looking.look()

    assert looking.stored_balls() == looking.true_balls()


async def test_a_restart_goes_on_from_what_is_stored_without_gap_or_duplicate() -> None:
    looking = await watching(*["1"] * 20)
    looking.match.bowl(*["2"] * 15)

    await looking.restart()
    after_restart = looking.state.sync
    await looking.look()

    assert looking.stored_balls() == looking.true_balls()
    assert {stored.event.rev for stored in looking.store.history[1]} == {1}
    assert (after_restart, looking.state.sync) == (SyncState.RECOVERING, SyncState.IN_SYNC)


# --- steps back ---


async def test_a_step_back_counts_only_when_two_looks_agree() -> None:
    looking = await watching("1", "4", "1")
    looking.match.balls[1].value = "0"

    await looking.look()
    assert [runs.total for _, _, runs, _ in looking.stored_balls() if hasattr(runs, "total")] == [1, 4, 1]
    await looking.look()

    assert looking.stored_balls() == looking.true_balls()


async def test_an_old_copy_served_once_is_no_correction() -> None:
    looking = await watching(*["1"] * 8)
    newer = looking.match.bowl("4")[0]
    await looking.look()
    looking.match.remove(newer)
    await looking.look()
    looking.match.balls.append(newer)

    await looking.look(2)

    assert [event.op for event in versions(looking, EventKey(CricketKind.DELIVERY, (1, 1, 3)))] == [Op.INSERT]


async def test_a_ball_that_the_feed_alone_lost_is_kept() -> None:
    looking = await watching(*["1"] * 8)
    looking.match.feed_lag = 2

    await looking.look(4)

    assert len(looking.stored_balls()) == 8


async def test_an_empty_feed_loses_nothing() -> None:
    looking = await watching(*["1"] * 7)
    before = dict(looking.state.events)
    looking.site.faults["getBallFeeds"] = b"[]"

    await looking.look(4)

    assert dict(looking.state.events) == before


async def test_more_balls_gone_than_an_over_holds_are_not_believed() -> None:
    looking = await watching(*["1"] * 40)
    del looking.match.balls[:20]
    looking.match.headline = "Innings Break"

    for _ in range(3):
        with pytest.raises(LayoutSuspected, match="gone") as caught:
            await looking.look()

    assert (caught.value.source, len(looking.stored_balls())) == ("crex", 40)


async def test_a_dot_ball_taken_away_in_an_old_over_is_void_after_the_innings() -> None:
    looking = await watching(*["0"] * 40)
    looking.match.remove(looking.match.balls[3])
    looking.match.headline = "Innings Break"

    await looking.look(2)

    [*_, last] = versions(looking, EventKey(CricketKind.DELIVERY, (1, 0, 4)))
    assert (last.op, last.rev, last.position) == (Op.VOID, 2, None)
    assert looking.stored_balls() == looking.true_balls()


# --- ends ---


@pytest.mark.req("FLD-1")
@pytest.mark.parametrize("text", ["Stumps", "Lunch", "Tea", "Drinks", "Rain", "Innings Break", "Toss won by Reds"])
async def test_a_break_completes_nothing_and_play_is_picked_up_again(text: str) -> None:
    looking = await watching("1")
    looking.match.headline = text
    await looking.look(3)
    assert (looking.state.row.phase, looking.state.row.status) == (Phase.ACTIVE, MatchStatus.BREAK)

    looking.match.headline = "B"
    looking.match.bowl("4")
    await looking.look()

    assert looking.state.row.status is MatchStatus.LIVE
    assert looking.stored_balls() == looking.true_balls()


@pytest.mark.req("MON-1")
async def test_a_result_needs_two_looks() -> None:
    looking = await watching("1", "4")
    looking.match.headline = "Reds won by 8 wickets"

    await looking.look()
    assert (looking.state.row.phase, looking.state.row.status) == (Phase.ACTIVE, MatchStatus.LIVE)
    assert "result" not in payload(looking)
    await looking.look()

    assert (looking.state.row.phase, looking.state.row.status) == (Phase.COMPLETED, MatchStatus.COMPLETED)
    [event] = versions(looking, RESULT)
    assert event.content == Result(outcome=ResultKind.WON, text="Reds won by 8 wickets")
    assert payload(looking)["result"] == {"outcome": "won", "text": "Reds won by 8 wickets"}


@pytest.mark.req("MON-1")
async def test_a_result_that_is_taken_back_makes_the_match_active_again() -> None:
    looking = await watching("1", "4")
    looking.match.headline = "Match tied"
    await looking.look(2)
    looking.match.headline = "B"

    phases = [(await looking.look()).state.row.phase for _ in range(2)]

    assert phases == [Phase.COMPLETED, Phase.ACTIVE]
    assert [event.op for event in versions(looking, RESULT)] == [Op.INSERT, Op.VOID]
    assert "result" not in payload(looking)


async def test_another_result_replaces_the_first_after_two_looks() -> None:
    looking = await watching("1", "4")
    looking.match.headline = "Reds won by 8 runs"
    await looking.look(2)
    looking.match.headline = "Reds won by 9 runs"

    await looking.look()
    assert len(versions(looking, RESULT)) == 1
    await looking.look()

    assert versions(looking, RESULT)[-1].content == Result(outcome=ResultKind.WON, text="Reds won by 9 runs")
    assert looking.state.row.phase is Phase.COMPLETED


async def test_an_innings_ends_once_and_stays_ended_until_the_next_ball() -> None:
    looking = await watching("1", "4")
    looking.match.headline = "Innings Break"
    await looking.look(2)
    looking.match.headline = "B"
    await looking.look(3)
    looking.match.bowl("1", innings=2)
    looking.match.feed_lag = 1
    await looking.look(3)
    looking.match.feed_lag = 0

    await looking.look(2)

    [event] = versions(looking, INNINGS_1)
    assert event.content == InningsSummary(team="T1", runs=5, wickets=0, overs=Overs(0, 2))


async def test_an_innings_that_goes_on_after_all_is_taken_back() -> None:
    looking = await watching("1", "4")
    looking.match.headline = "Innings Break"
    await looking.look(2)
    looking.match.headline = "B"
    looking.match.bowl("2")

    await looking.look(2)

    assert [event.op for event in versions(looking, INNINGS_1)] == [Op.INSERT, Op.VOID]


async def test_a_second_innings_is_told_apart_from_the_first() -> None:
    looking = await watching(*["1"] * 6)
    looking.match.headline = "Innings Break"
    await looking.look(2)
    looking.match.headline = "B"
    looking.match.bowl("4", innings=2)

    await looking.look()

    assert looking.stored_balls() == looking.true_balls()
    [first, second] = payload(looking)["innings"]
    assert (first["team"], first["runs"], first["is_closed"]) == ("T1", 6, True)
    assert (second["team"], second["runs"], second["is_closed"]) == ("T2", 4, False)


async def test_a_card_with_swapped_sides_at_the_end_of_an_innings_changes_nothing() -> None:
    looking = await watching("1", "4")
    looking.match.headline = "Innings Break"
    looking.site.faults["getSC4"] = body([{**item, "c": "T2"} for item in looking.match.scorecard()])
    await looking.look(2)
    await looking.restart()
    await looking.look(2)
    looking.site.faults.clear()
    looking.match.headline = "B"
    looking.match.bowl("4", innings=2)

    await looking.look(2)

    [event] = versions(looking, INNINGS_1)
    assert event.content == InningsSummary(team="T1", runs=5, wickets=0, overs=Overs(0, 2))
    assert [innings["team"] for innings in payload(looking)["innings"]] == ["T1", "T2"]
    assert not looking.state.suspects


async def test_a_super_over_is_a_new_pair_and_leaves_the_old_one_alone() -> None:
    looking = await watching(*["1"] * 6)
    looking.match.bowl(*["1"] * 6, innings=2)
    looking.match.headline = "Super Over"
    await looking.look(2)
    looking.match.headline = "B"
    looking.match.bowl("6", "4", innings=3)
    looking.match.feed_lag = 2
    await looking.look()
    looking.match.feed_lag = 0

    await looking.look(2)

    assert looking.stored_balls() == looking.true_balls()
    assert [event.op for event in versions(looking, INNINGS_1)] == [Op.INSERT]
    assert open_findings(looking) == []


# --- what is good to have ---


async def test_a_scorecard_that_fails_is_no_stop() -> None:
    looking = Looking()
    looking.match.bowl("1")
    looking.site.faults["getSC4"] = OUT_OF_ORDER
    await looking.start()

    await looking.look()

    assert len(looking.stored_balls()) == 1
    [failure] = looking.sink.named("resource.failed")
    assert msgspec.structs.asdict(failure)["resource"] == "scorecard"


@pytest.mark.parametrize(
    "card", [b'[{"c": "T1", "d": "1/12(1"}]', b'[{"c": "T8", "d": "1/0(1"}, {"c": "T9", "d": "1/0(1"}]']
)
async def test_a_scorecard_that_cannot_be_true_is_not_used(card: bytes) -> None:
    looking = Looking()
    looking.match.bowl("1")
    looking.site.faults["getSC4"] = card
    await looking.start()

    await looking.look()

    assert looking.state.scorecard is None
    assert len(looking.sink.named("resource.failed")) == 1


async def test_names_that_come_late_are_asked_for_until_they_come() -> None:
    looking = Looking()
    looking.match.bowl("1")
    looking.site.faults["getHomeMapData"] = SourceFailed("the site answered 500")
    await looking.start()
    await looking.look()
    assert looking.state.players == {}
    looking.site.faults.clear()
    del looking.site.names["A2"]

    looking.match.bowl("1")
    await looking.look()
    assert payload(looking)["players"] == {"A1": "Ann Alpha", "B1": "Bea Beta"}
    looking.site.names["A2"] = "Amy Alpha"
    looking.match.bowl("1")
    await looking.look()

    assert looking.store.players[1] == {"A1": "Ann Alpha", "A2": "Amy Alpha", "B1": "Bea Beta"}
    asked = looking.site.count("getHomeMapData")
    looking.match.bowl("1")
    await looking.look()
    assert looking.site.count("getHomeMapData") == asked


async def test_a_missing_name_is_known_and_a_full_poll_of_the_same_pages_asks_for_it_again() -> None:
    looking = Looking()
    looking.match.bowl("1")
    del looking.site.names["B1"]
    await looking.start()
    await looking.look(3)
    assert looking.state.has_unnamed
    looking.site.names["B1"] = "Bea Beta"

    looking.state = cast(CricketState, (await looking.road.poll(looking.state, is_full=True)).state)

    assert looking.store.players[1]["B1"] == "Bea Beta"
    assert not looking.state.has_unnamed


# --- findings ---


async def test_a_mismatch_is_on_record_after_two_looks_and_closed_when_it_is_gone() -> None:
    looking = await watching(*["1"] * 8)
    looking.match.extra_runs = 2

    await looking.look()
    assert not open_findings(looking)
    await looking.look()
    assert open_findings(looking) == [(FindingKind.MISMATCH, "1")]
    assert len(looking.stored_balls()) == 8
    looking.match.extra_runs = 0
    await looking.look()

    assert open_findings(looking) == []


async def test_a_gap_is_on_record_after_two_looks_and_closed_when_it_is_filled() -> None:
    looking = Looking()
    balls = looking.match.bowl(*["1"] * 8)
    hidden = {balls[2].id}
    whole_feed = looking.match.feed
    looking.match.feed = lambda before: [item for item in whole_feed(before) if item["id"] not in hidden]  # type: ignore[method-assign]
    await looking.start()

    await looking.look(2)
    [gap] = [finding for finding in looking.store.findings[1] if finding.kind is FindingKind.GAP]
    assert (gap.place, gap.detail) == ("1:0", "missing: ball 3")
    hidden.clear()
    await looking.look(2)

    assert open_findings(looking) == []
    assert looking.stored_balls() == looking.true_balls()


async def test_a_match_with_a_mismatch_comes_into_sync_once_it_is_on_record() -> None:
    looking = Looking()
    looking.match.bowl("1")
    looking.match.extra_runs = 1
    await looking.start()

    syncs = [(await looking.look()).state.sync for _ in range(2)]

    assert syncs == [SyncState.RECOVERING, SyncState.IN_SYNC]


async def test_an_archived_match_keeps_what_is_known_of_it() -> None:
    looking = await watching("1")
    looking.match.headline = "No result"
    await looking.look(2)
    events = dict(looking.state.events)

    state = await looking.road.archive(looking.state)

    assert (state.row.phase, dict(state.events)) == (Phase.ARCHIVED, events)
    assert isinstance(looking.stored(CricketKind.DELIVERY)[0].content, Delivery)


@pytest.mark.req("JOB-6")
async def test_an_older_scoreboard_is_not_served_until_a_second_look_agrees() -> None:
    looking = await watching("1", "4", "6")
    served = payload(looking)["score"]
    looking.match.j = "1/0(0.1"

    await looking.look()
    assert payload(looking)["score"] == served
    looking.match.j = None
    await looking.look()

    assert payload(looking)["score"] == served


async def test_a_scoreboard_that_goes_back_for_good_is_served_after_two_looks() -> None:
    looking = await watching("1", "4", "6")
    looking.match.j = "9/0(0.3"

    await looking.look(2)

    assert payload(looking)["score"]["team_a"]["runs"] == 9
