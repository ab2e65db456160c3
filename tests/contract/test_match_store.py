"""What every store must do, whatever it is made of."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from longstop.api.match_documents import event_entry
from longstop.errors import EpochLost, IllegalTransition, StorageError
from longstop.model.data_finding import Finding, FindingKind, StoredFinding
from longstop.model.event import EventKey, Op, StoredEvent
from longstop.model.match import MatchRef, MatchStatus, Phase
from longstop.model.snapshot import Snapshot
from longstop.model.source_queries_and_answers import Keys
from longstop.sports.cricket.model import (
    CricketKind,
    Delivery,
    Dismissal,
    InningsSummary,
    Overs,
    OverSummary,
    Result,
    ResultKind,
    Runs,
    Score,
    Wicket,
)
from longstop.sports.football.model import (
    Card,
    CardKind,
    FootballKind,
    FootballResult,
    Goal,
    GoalKind,
    Incident,
    Kick,
    MissedPenalty,
    Outcome,
    PeriodEnd,
    Substitution,
    VarDecision,
)
from longstop.storage.base import MatchFilter, MatchReader, MatchStore
from tests.contract.stores import (
    MATCHES,
    NOW,
    REF,
    MatchBackend,
    delivery,
    delivery_key,
    draft,
    event,
    later,
    owned_match,
    update,
)

#: How another source calls the same match.
OTHER_REF = MatchRef("espn", "77")

GAP = Finding(kind=FindingKind.GAP, place="1:4", detail="two balls are not shown")
MISMATCH = Finding(kind=FindingKind.MISMATCH, place="1", detail="the events give 120, the board 121")

CONTENTS: dict[str, Struct] = {
    "delivery": Delivery(label=Overs(3, 2), runs=Runs(batter=4), boundary=4, batter="p1", bowler="p2"),
    "delivery of nothing": Delivery(label=Overs(0, 0), runs=Runs()),
    "delivery with wickets": Delivery(
        label=Overs(19, 6),
        runs=Runs(batter=1, wides=2, noballs=3, byes=4, legbyes=5, penalty=6),
        wickets=(
            Wicket(kind=Dismissal.RUN_OUT, player_out="Ødegård Šarić", player_key="p9"),
            Wicket(kind=Dismissal.RETIRED, player_out=""),
        ),
    ),
    "over": OverSummary(runs=0, score=Score(runs=0, wickets=0), bowler=None),
    "innings of a known team": InningsSummary(team="T1", runs=180, wickets=10, overs=Overs(19, 5)),
    "innings of an unknown team": InningsSummary(team=None, runs=0, wickets=0, overs=Overs(0, 0)),
    "result": Result(outcome=ResultKind.NO_RESULT, text='no "result" – rain'),
    "goal": Goal(minute=45, added=0, scorer="p1", assist=None, how=GoalKind.OWN_GOAL, home=0, away=1),
    "card without a minute": Card(minute=None, card=CardKind.SECOND_YELLOW),
    "substitution": Substitution(minute=46, player_in="p2", player_out="p1", is_injury=True),
    "decision": VarDecision(minute=9, decision="goal not awarded", player="p1"),
    "missed penalty": MissedPenalty(minute=60, player="p9"),
    "period": PeriodEnd(period="PEN", home=4, away=3),
    "kick": Kick(sequence=1, is_scored=False, home=0, away=0),
    "result of football": FootballResult(outcome=Outcome.WALKOVER, after="walkover"),
}
#: Under which key each of them stands.
KEYS: dict[type[Struct], EventKey] = {
    Delivery: EventKey(CricketKind.DELIVERY, (1, 3, 2)),
    OverSummary: EventKey(CricketKind.OVER, (1, 3)),
    InningsSummary: EventKey(CricketKind.INNINGS, (2,)),
    Result: EventKey("result"),
    Goal: EventKey(FootballKind.GOAL, (1,), "away"),
    Card: EventKey(FootballKind.CARD, (12,), "home"),
    Substitution: EventKey(FootballKind.SUBSTITUTION, (1,), "home"),
    VarDecision: EventKey(FootballKind.VAR, (1,), "home"),
    MissedPenalty: EventKey(FootballKind.MISSED_PENALTY, (1,), "home"),
    PeriodEnd: EventKey(FootballKind.PERIOD, (5,)),
    Kick: EventKey(FootballKind.KICK, (1,), "home"),
    FootballResult: EventKey("result"),
}


@pytest.fixture(params=list(MATCHES))
def files(request: pytest.FixtureRequest, tmp_path: Path) -> MatchBackend:
    return MATCHES[request.param](tmp_path)


@pytest.fixture
async def store(files: MatchBackend) -> AsyncIterator[MatchStore]:
    async with aclosing(await files.open_store()) as store:
        yield store


@pytest.fixture
async def reader(files: MatchBackend) -> AsyncIterator[MatchReader]:
    reader = files.open_reader()
    yield reader
    await reader.aclose()


async def all_of(reader: MatchReader, match_id: int) -> tuple[list[StoredEvent], list[Snapshot], list[StoredFinding]]:
    """Return everything that is stored of a match: its event versions, snapshots and findings."""
    events = await reader.events_after(match_id, 0, 1_000)
    return events, await reader.snapshots(match_id), await reader.findings(match_id)


async def test_a_new_match_is_discovered_and_unowned(store: MatchStore, reader: MatchReader) -> None:
    match = await store.register(REF, "Red v Blue", later(3600), NOW, sport="cricket")

    assert (match.ref, match.title, match.start_at, match.created_at) == (REF, "Red v Blue", later(3600), NOW)
    assert (match.phase, match.owner, match.epoch, match.seq) == (Phase.DISCOVERED, None, 0, 0)
    assert (match.updated_at, match.completed_at) == (None, None)
    assert await reader.match(match.match_id) == await reader.find(REF) == match


@pytest.mark.req("CAP-7")
async def test_registering_twice_gives_the_same_match_unchanged(store: MatchStore) -> None:
    first = await store.register(REF, "Red v Blue", NOW, NOW, sport="cricket")

    second = await store.register(REF, "another title", None, later(60), sport="cricket")

    assert second == first


async def test_two_sources_may_use_the_same_id_for_different_matches(store: MatchStore, reader: MatchReader) -> None:
    one = await store.register(MatchRef("crex", "7"), "Red v Blue", None, NOW, sport="cricket")
    other = await store.register(MatchRef("espn", "7"), "Green v Gold", None, NOW, sport="cricket")

    assert one.match_id != other.match_id
    assert await reader.find(MatchRef("espn", "7")) == other


async def test_each_claim_raises_the_epoch_and_sets_the_owner(store: MatchStore) -> None:
    match = await store.register(REF, "Red v Blue", None, NOW, sport="cricket")

    first = await store.claim(match.match_id, "node-a")
    second = await store.claim(match.match_id, "node-b")

    assert (first.owner, first.epoch) == ("node-a", 1)
    assert (second.owner, second.epoch) == ("node-b", 2)


async def test_claiming_loading_and_saving_an_unknown_match_say_so(store: MatchStore) -> None:
    with pytest.raises(StorageError, match="no match 99"):
        await store.claim(99, "node-a")
    with pytest.raises(StorageError, match="no match 99"):
        await store.load(99)
    with pytest.raises(StorageError, match="no match 99"):
        await store.save_update(update(99))


@pytest.mark.req("JOB-5")
async def test_a_stale_epoch_is_refused_and_nothing_is_stored(store: MatchStore, reader: MatchReader) -> None:
    match_id = await owned_match(store)
    taken = await store.claim(match_id, "node-b")
    late = update(match_id, event(), epoch=1, snapshot=draft(score=1), findings=(GAP,), players={"p1": "Ann"})

    with pytest.raises(EpochLost, match="owned by node-b"):
        await store.save_update(late)

    assert await reader.match(match_id) == taken
    assert await reader.events_after(match_id, 0, 10) == []
    assert await reader.snapshots(match_id) == []
    assert await reader.findings(match_id) == []
    assert (await store.load(match_id)).players == {}


async def test_sequence_numbers_are_contiguous_in_each_match(store: MatchStore, reader: MatchReader) -> None:
    one, other = await owned_match(store), await owned_match(store, MatchRef("crex", "22XX"))

    for nth in (1, 3, 5):
        both = [event(delivery_key(0, nth)), event(delivery_key(0, nth + 1))]
        await asyncio.gather(*(store.save_update(update(match_id, *both)) for match_id in (one, other)))

    for match_id in (one, other):
        assert [stored.seq for stored in await reader.events_after(match_id, 0, 100)] == [1, 2, 3, 4, 5, 6]
        found = await reader.match(match_id)
        assert found is not None
        assert found.seq == 6


async def test_a_value_that_comes_back_is_a_third_version(store: MatchStore, reader: MatchReader) -> None:
    match_id = await owned_match(store)
    a, b = delivery(1), delivery(2)

    for rev, content in enumerate((a, b, a), start=1):
        op = Op.INSERT if rev == 1 else Op.UPDATE
        await store.save_update(update(match_id, event(rev=rev, op=op, content=content)))

    versions = [stored.event for stored in await reader.events_after(match_id, 0, 10)]
    assert [(version.rev, version.content) for version in versions] == [(1, a), (2, b), (3, a)]
    assert [stored.event.rev for stored in await reader.current_events(match_id)] == [3]


async def test_a_voided_event_is_kept_with_its_content(store: MatchStore, reader: MatchReader) -> None:
    match_id = await owned_match(store)
    await store.save_update(update(match_id, event(content=delivery(6))))

    await store.save_update(update(match_id, event(rev=2, op=Op.VOID, content=delivery(6))))

    [current] = await reader.current_events(match_id)
    assert (current.event.op, current.event.content, current.event.position) == (Op.VOID, delivery(6), None)
    assert (await store.load(match_id)).events == (current,)


@pytest.mark.parametrize("rev", [1, 2, 4])
async def test_a_revision_that_does_not_follow_is_refused(store: MatchStore, reader: MatchReader, rev: int) -> None:
    match_id = await owned_match(store)
    await store.save_update(update(match_id, event()))
    await store.save_update(update(match_id, event(rev=2, op=Op.UPDATE, content=delivery(1))))
    before = await reader.match(match_id)

    with pytest.raises(StorageError, match=r"delivery:1:0:1.*(does not follow|versions are immutable)"):
        await store.save_update(
            update(match_id, event(delivery_key(0, 9)), event(rev=rev, op=Op.UPDATE, content=delivery(3)))
        )

    assert await reader.match(match_id) == before
    assert len(await reader.events_after(match_id, 0, 10)) == 2


async def test_a_first_version_must_be_revision_one(store: MatchStore) -> None:
    match_id = await owned_match(store)

    with pytest.raises(StorageError, match="revision 2 does not follow"):
        await store.save_update(update(match_id, event(rev=2, op=Op.UPDATE)))


@pytest.mark.parametrize("key", ["ball:1:0:1", "goal:home:1", "delivery:1:0", "delivery:1:0:1:7", "result:1"])
async def test_an_event_that_its_sport_does_not_have_is_refused(
    store: MatchStore, reader: MatchReader, key: str
) -> None:
    match_id = await owned_match(store)

    with pytest.raises(StorageError, match="cricket"):
        await store.save_update(update(match_id, event(), event(EventKey.parse(key))))

    assert await reader.events_after(match_id, 0, 10) == []


async def test_a_void_is_not_taken_for_the_update_with_the_same_content(store: MatchStore) -> None:
    match_id = await owned_match(store)
    key = EventKey(CricketKind.OVER, (1, 4))
    over = OverSummary(runs=6, score=Score(runs=30, wickets=1))
    await store.save_update(update(match_id, event(key, content=over, position=None)))

    with pytest.raises(StorageError, match="versions are immutable"):
        await store.save_update(update(match_id, event(key, op=Op.VOID, content=over)))


@pytest.mark.req("CAP-7", "JOB-5")
async def test_the_same_update_again_changes_nothing_and_gives_the_same_receipt(
    store: MatchStore, reader: MatchReader
) -> None:
    match_id = await owned_match(store)
    whole = update(
        match_id,
        event(),
        event(delivery_key(0, 2)),
        snapshot=draft(score=1),
        findings=(GAP,),
        players={"p1": "Ann"},
        teams={"T1": "Red"},
    )
    first = await store.save_update(whole)
    seen = (
        await reader.events_after(match_id, 0, 10),
        await reader.snapshots(match_id),
        await reader.findings(match_id),
    )

    second = await store.save_update(whole)

    assert second == first
    assert (
        await reader.events_after(match_id, 0, 10),
        await reader.snapshots(match_id),
        await reader.findings(match_id),
    ) == seen


@pytest.mark.req("CAP-7")
async def test_an_update_sent_again_in_another_split_fills_only_what_is_missing(
    store: MatchStore, reader: MatchReader
) -> None:
    match_id = await owned_match(store)
    balls = [event(delivery_key(0, nth), position=nth) for nth in (1, 2, 3)]
    await store.save_update(update(match_id, *balls[:2]))

    receipt = await store.save_update(update(match_id, *balls))

    assert [stored.seq for stored in receipt.events] == [1, 2, 3]
    assert [stored.event for stored in await reader.events_after(match_id, 0, 10)] == balls


@pytest.mark.req("MON-4")
async def test_five_snapshots_are_kept_and_their_sequence_only_grows(store: MatchStore, reader: MatchReader) -> None:
    match_id = await owned_match(store)

    for score in range(8):
        await store.save_update(update(match_id, snapshot=draft(score=score), captured_at=later(score)))

    kept = await reader.snapshots(match_id)
    assert [snapshot.sequence for snapshot in kept] == [8, 7, 6, 5, 4]
    assert [snapshot.payload for snapshot in kept][:2] == [b'{"score":7}', b'{"score":6}']
    assert await reader.snapshot_bytes(match_id) == sum(len(snapshot.payload) for snapshot in kept)
    assert await reader.snapshot_bytes(match_id + 1) == 0
    assert (await store.load(match_id)).snapshot == kept[0]


@pytest.mark.req("MON-4")
async def test_a_snapshot_comes_back_whole(store: MatchStore, reader: MatchReader) -> None:
    match_id = await owned_match(store)
    made = draft(score=1)

    receipt = await store.save_update(update(match_id, snapshot=made, captured_at=later(1)))

    [kept] = await reader.snapshots(match_id)
    assert receipt.snapshot == kept
    assert (kept.checksum, kept.payload, kept.provenance) == (made.checksum, made.payload, made.provenance)
    assert (kept.created_at, kept.scraper_id) == (later(1), "node-a")
    assert (kept.update_latency_ms, kept.data_source) == (7, "scraper")


async def test_a_payload_that_comes_back_is_a_new_snapshot(store: MatchStore, reader: MatchReader) -> None:
    match_id = await owned_match(store)

    for score in (1, 2, 1):
        await store.save_update(update(match_id, snapshot=draft(score=score)))

    assert [snapshot.payload for snapshot in await reader.snapshots(match_id)] == [
        b'{"score":1}',
        b'{"score":2}',
        b'{"score":1}',
    ]


async def test_findings_are_opened_closed_and_opened_again(store: MatchStore, reader: MatchReader) -> None:
    match_id = await owned_match(store)

    for second, named in enumerate([(GAP, MISMATCH), (GAP,), (GAP, MISMATCH)]):
        await store.save_update(update(match_id, findings=named, captured_at=later(second)))

    found = [(each.finding, each.opened_at, each.closed_at) for each in await reader.findings(match_id)]
    assert found == [(GAP, NOW, None), (MISMATCH, later(2), None), (MISMATCH, NOW, later(1))]
    assert (await store.load(match_id)).open_findings == (GAP, MISMATCH)
    assert [each.finding for each in await reader.findings(match_id, 1)] == [GAP]
    assert (await reader.count_findings(match_id), await reader.count_open_findings(match_id)) == (3, 2)


async def test_an_open_finding_takes_its_new_detail_without_being_opened_twice(
    store: MatchStore, reader: MatchReader
) -> None:
    match_id = await owned_match(store)
    await store.save_update(update(match_id, findings=(GAP,)))
    worse = Finding(kind=GAP.kind, place=GAP.place, detail="three balls are not shown")

    await store.save_update(update(match_id, findings=(worse,), captured_at=later(1)))

    [found] = await reader.findings(match_id)
    assert (found.finding, found.opened_at) == (worse, NOW)


async def test_names_are_merged_and_players_and_teams_do_not_mix(store: MatchStore) -> None:
    match_id = await owned_match(store)

    await store.save_update(update(match_id, players={"k1": "Ann", "k2": "B"}, teams={"k1": "Red"}))
    await store.save_update(update(match_id, players={"k2": "Bea", "k3": "Zoë"}))

    base = await store.load(match_id)
    assert base.players == {"k1": "Ann", "k2": "Bea", "k3": "Zoë"}
    assert base.teams == {"k1": "Red"}


@pytest.mark.req("FLD-2", "FLD-3")
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
async def test_every_content_comes_back_exactly_as_it_was(
    store: MatchStore, reader: MatchReader, content: Struct
) -> None:
    match_id = await owned_match(
        store, sport="football" if isinstance(content, Incident | FootballResult) else "cricket"
    )
    position = 20 if isinstance(content, Delivery) else None
    saved = event(KEYS[type(content)], content=content, position=position)

    receipt = await store.save_update(update(match_id, saved))

    [stored] = (await store.load(match_id)).events
    assert stored.event == saved
    assert (stored.seq, stored.epoch, stored.captured_at) == (1, 1, NOW)
    assert receipt.events == (stored,)
    assert await reader.current_events(match_id) == await reader.events_after(match_id, 0, 1) == [stored]


async def test_current_events_are_paged_by_the_sequence_number_of_their_latest_version(
    store: MatchStore, reader: MatchReader
) -> None:
    match_id = await owned_match(store)
    first, second, third = (delivery_key(0, nth) for nth in (1, 2, 3))
    await store.save_update(update(match_id, event(first), event(second), event(third)))
    await store.save_update(update(match_id, event(second, rev=2, op=Op.VOID)))

    pages = [await reader.current_events(match_id, seq, limit) for seq, limit in ((0, 2), (3, 2), (4, 2))]

    assert [[(each.event.key, each.seq) for each in page] for page in pages] == [
        [(first, 1), (third, 3)],
        [(second, 4)],
        [],
    ]


async def test_events_are_paged_by_their_sequence_number(store: MatchStore, reader: MatchReader) -> None:
    match_id = await owned_match(store)
    await store.save_update(update(match_id, *(event(delivery_key(0, nth)) for nth in range(1, 8))))

    pages = [[stored.seq for stored in await reader.events_after(match_id, seq, 3)] for seq in (0, 3, 6, 7)]

    assert pages == [[1, 2, 3], [4, 5, 6], [7], []]


async def test_matches_are_filtered_and_paged(store: MatchStore, reader: MatchReader) -> None:
    ids = [await owned_match(store, MatchRef("crex", f"M{number}")) for number in range(4)]
    other = await owned_match(store, MatchRef("espn", "M1"))
    await store.save_update(update(ids[1]))
    await store.save_update(update(ids[2], status=MatchStatus.BREAK))

    async def listed(wanted: MatchFilter) -> list[int]:
        return [match.match_id for match in await reader.matches(wanted)]

    assert await listed(MatchFilter()) == [*ids, other]
    assert await listed(MatchFilter(limit=2)) == ids[:2]
    assert await listed(MatchFilter(after_id=ids[1], limit=2)) == ids[2:]
    assert await listed(MatchFilter(status=MatchStatus.LIVE)) == [ids[1]]
    assert await listed(MatchFilter(phase=Phase.ACTIVE)) == [ids[1], ids[2]]
    assert await listed(MatchFilter(source="espn")) == [other]
    assert await listed(MatchFilter(source="crex", status=MatchStatus.UPCOMING)) == [ids[0], ids[3]]


async def test_the_sport_of_a_match_is_kept_and_filtered_by(store: MatchStore, reader: MatchReader) -> None:
    cricket = await store.register(REF, "Red v Blue", NOW, NOW, sport="cricket")
    football = await store.register(MatchRef("sofascore", "77"), "Red v Blue", NOW, NOW, sport="football")

    assert (cricket.sport, football.sport) == ("cricket", "football")
    assert await reader.matches(MatchFilter(sport="football")) == [football]
    assert await reader.matches(MatchFilter(sport="cricket")) == [cricket]
    await store.claim(football.match_id, "node-a")
    receipt = await store.save_update(update(football.match_id))
    assert receipt.match.sport == "football"


async def test_keys_of_two_sides_do_not_mix(store: MatchStore, reader: MatchReader) -> None:
    match_id = await owned_match(store, sport="football")
    keys = [EventKey(FootballKind.GOAL, (nth,), side) for side in ("away", "home") for nth in (1, 2)]

    goal = CONTENTS["goal"]
    await store.save_update(update(match_id, *(event(key, content=goal, position=None) for key in reversed(keys))))

    assert [stored.event.key for stored in await reader.current_events(match_id)] == keys[::-1]


async def test_unfinished_matches_are_all_but_the_archived(store: MatchStore) -> None:
    over, on = await owned_match(store), await owned_match(store, MatchRef("crex", "22XX"))

    for phase in (Phase.COMPLETED, Phase.ARCHIVED):
        await store.save_update(update(over, phase=phase, status=MatchStatus.COMPLETED))

    assert await store.unfinished() == {on: (MatchRef("crex", "22XX"),)}


@pytest.mark.req("MON-1")
async def test_completion_is_stamped_kept_and_taken_back(store: MatchStore) -> None:
    match_id = await owned_match(store)
    stamps = []

    for second, phase in enumerate([Phase.ACTIVE, Phase.COMPLETED, Phase.COMPLETED, Phase.ACTIVE, Phase.COMPLETED]):
        receipt = await store.save_update(
            update(match_id, phase=phase, title=f"title {second}", captured_at=later(second))
        )
        stamps.append(receipt.match.completed_at)

    assert stamps == [None, later(1), later(1), None, later(4)]


@pytest.mark.req("MON-1")
async def test_an_archived_match_keeps_the_moment_it_was_completed(store: MatchStore) -> None:
    match_id = await owned_match(store)
    await store.save_update(update(match_id, phase=Phase.COMPLETED))

    receipt = await store.save_update(update(match_id, phase=Phase.ARCHIVED, captured_at=later(86_400)))

    assert (receipt.match.phase, receipt.match.completed_at) == (Phase.ARCHIVED, NOW)


@pytest.mark.req("MON-1", "JOB-5")
async def test_an_illegal_move_stores_nothing_of_its_update(store: MatchStore, reader: MatchReader) -> None:
    match_id = await owned_match(store)
    await store.save_update(update(match_id))

    with pytest.raises(IllegalTransition):
        await store.save_update(update(match_id, event(), phase=Phase.DISCOVERED))

    assert await reader.events_after(match_id, 0, 10) == []


async def test_the_match_row_follows_what_the_update_says(store: MatchStore, reader: MatchReader) -> None:
    match_id = await owned_match(store)

    receipt = await store.save_update(
        update(match_id, event(), title="Red v Blue, final", start_at=None, captured_at=later(9))
    )

    match = receipt.match
    assert (match.title, match.start_at, match.status, match.phase) == (
        "Red v Blue, final",
        None,
        MatchStatus.LIVE,
        Phase.ACTIVE,
    )
    assert (match.seq, match.updated_at) == (1, later(9))
    assert await reader.match(match_id) == match


async def test_a_change_of_our_own_is_not_a_poll(store: MatchStore) -> None:
    match_id = await owned_match(store)
    await store.save_update(update(match_id, event()))

    receipt = await store.save_update(update(match_id, phase=Phase.PAUSED, captured_at=later(900), source=""))

    assert (receipt.match.phase, receipt.match.updated_at) == (Phase.PAUSED, NOW)


@pytest.mark.req("JOB-7")
async def test_a_failing_update_spoils_none_that_are_stored_with_it(store: MatchStore, reader: MatchReader) -> None:
    ids = [await owned_match(store, MatchRef("crex", f"M{number}")) for number in range(5)]
    updates = [update(match_id, event(), epoch=7 if match_id == ids[2] else 1) for match_id in ids]

    outcomes = await asyncio.gather(*map(store.save_update, updates), return_exceptions=True)

    assert [isinstance(outcome, EpochLost) for outcome in outcomes] == [False, False, True, False, False]
    assert [len(await reader.events_after(match_id, 0, 10)) for match_id in ids] == [1, 1, 0, 1, 1]


# --- several feeds of one match --------------------------------------------------------------------------------------


async def test_a_linked_ref_is_a_feed_of_the_match_and_leads_to_it(store: MatchStore, reader: MatchReader) -> None:
    match = await store.register(REF, "Red v Blue", None, NOW, sport="cricket")
    assert await store.unfinished() == {match.match_id: (REF,)}

    for _ in range(2):  # linking again changes nothing
        await store.link(OTHER_REF, match.match_id)

    assert await store.unfinished() == {match.match_id: (REF, OTHER_REF)}
    assert (await store.load(match.match_id)).feeds == (REF, OTHER_REF)
    assert await reader.find(REF) == await reader.find(OTHER_REF) == match
    assert await store.register(OTHER_REF, "another title", NOW, later(9), sport="cricket") == match
    assert await reader.matches(MatchFilter()) == [match]


async def test_a_ref_of_one_match_is_refused_as_a_feed_of_another(store: MatchStore, reader: MatchReader) -> None:
    one = await store.register(REF, "Red v Blue", None, NOW, sport="cricket")
    other = await store.register(OTHER_REF, "Green v Gold", None, NOW, sport="cricket")

    with pytest.raises(StorageError, match=f"{OTHER_REF} already belongs to match {other.match_id}"):
        await store.link(OTHER_REF, one.match_id)

    assert (await store.load(one.match_id)).feeds == (REF,)
    assert await reader.find(OTHER_REF) == other


async def test_a_ref_cannot_be_linked_to_a_match_that_is_not_there(store: MatchStore, reader: MatchReader) -> None:
    with pytest.raises(StorageError, match="there is no match 7"):
        await store.link(REF, 7)

    assert await reader.find(REF) is None


async def test_what_a_feed_teaches_is_stored_once_and_loaded_by_its_source(store: MatchStore) -> None:
    match_id = await owned_match(store)
    keys = Keys(players={"501": "p1"}, teams={"T9": "T1"})
    taught = update(match_id, event(), source="espn", ids={delivery_key(0, 1): "e-1"}, keys=keys)

    first = await store.save_update(taught)
    again = await store.save_update(taught)

    assert again == first
    base = await store.load(match_id)
    assert base.ids == {"espn": {delivery_key(0, 1): "e-1"}}
    assert base.keys == {"espn": keys}
    await store.save_update(update(match_id, source="third", keys=Keys(players={"x": "p1"})))
    assert (await store.load(match_id)).keys == {"espn": keys, "third": Keys(players={"x": "p1"})}


async def test_a_source_may_renumber_an_event_but_its_keys_stand_for_one_person_for_ever(store: MatchStore) -> None:
    match_id, key = await owned_match(store), delivery_key(0, 1)
    await store.save_update(
        update(match_id, event(), source="espn", ids={key: "e-1"}, keys=Keys(players={"501": "p1"}))
    )

    await store.save_update(update(match_id, source="espn", ids={key: "e-2"}, keys=Keys(players={"501": "p2"})))

    base = await store.load(match_id)
    assert (base.ids, base.keys) == ({"espn": {key: "e-2"}}, {"espn": Keys(players={"501": "p1"})})


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"epoch": 7}, EpochLost),
        ({"phase": Phase.DISCOVERED}, IllegalTransition),
        # An id of an event that is not stored breaks the update once its own event is written.
        ({"ids": {delivery_key(9, 9): "e-9"}}, StorageError),
    ],
)
async def test_a_failing_update_teaches_nothing(
    store: MatchStore, changes: dict[str, Any], error: type[Exception]
) -> None:
    match_id = await owned_match(store)
    await store.save_update(update(match_id, event()))
    before = await store.load(match_id)
    taught = {"source": "espn", "ids": {delivery_key(0, 1): "e-1"}, "keys": Keys(players={"501": "p1"})}

    with pytest.raises(error):
        await store.save_update(update(match_id, event(delivery_key(0, 2)), **{**taught, **changes}))

    assert await store.load(match_id) == before


async def test_each_version_keeps_the_source_it_came_from(store: MatchStore, reader: MatchReader) -> None:
    match_id = await owned_match(store)
    await store.link(OTHER_REF, match_id)
    own = event()
    theirs = replace(event(rev=2, op=Op.UPDATE, content=delivery(4)), source="espn", source_event_id="e-1")
    await store.save_update(update(match_id, own))
    await store.save_update(update(match_id, theirs, source="espn"))

    versions = await reader.events_after(match_id, 0, 10)

    assert [each.event for each in versions] == [own, theirs]
    assert [each.event for each in (await store.load(match_id)).events] == [theirs]
    match = await reader.match(match_id)
    assert match is not None
    shown = [event_entry(each, match) for each in versions]
    assert [(each["source"], each["source_event_id"]) for each in shown] == [("crex", "1001"), ("espn", "e-1")]


# --- opening, reading, closing ---------------------------------------------------------------------------------------


async def test_a_reader_of_a_store_that_is_not_there_yet_knows_nothing_until_it_is(files: MatchBackend) -> None:
    reader = files.open_reader()

    assert await reader.find(REF) is None
    assert await reader.match(1) is None
    assert await reader.matches(MatchFilter()) == []
    assert await reader.events_after(1, 0, 10) == await reader.current_events(1) == []
    assert await reader.snapshots(1) == []
    assert await reader.findings(1) == []
    async with aclosing(await files.open_store()) as store:
        match = await store.register(REF, "Red v Blue", None, NOW, sport="cricket")
        assert await reader.find(REF) == match
    await reader.aclose()


@pytest.mark.req("NFR-009")
async def test_a_restart_changes_nothing(files: MatchBackend) -> None:
    async with aclosing(await files.open_store()) as store:
        match_id = await owned_match(store)
        await store.save_update(
            update(match_id, event(), snapshot=draft(score=1), findings=(GAP,), players={"p1": "Ann"})
        )
        before = await store.load(match_id)

    async with aclosing(await files.open_store()) as store:
        after = await store.load(match_id)
        receipt = await store.save_update(update(match_id, event(delivery_key(0, 2)), snapshot=draft(score=2)))

    assert after == before
    assert [stored.seq for stored in receipt.events] == [2]
    assert receipt.snapshot is not None
    assert receipt.snapshot.sequence == 2


async def test_a_closed_store_refuses_and_can_be_closed_again(files: MatchBackend) -> None:
    store = await files.open_store()
    await store.aclose()

    with pytest.raises(StorageError, match="closed"):
        await store.unfinished()

    await store.aclose()
