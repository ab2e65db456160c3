"""Watching one feed: the effect of each outcome of a poll."""

from datetime import timedelta

import msgspec
import pytest

from longstop.clock import Moment
from longstop.errors import (
    BrowserBusy,
    BudgetSpent,
    CircuitOpen,
    FetchError,
    FetchTimeout,
    LayoutPaused,
    ResourcesExhausted,
    StorageError,
)
from longstop.fetching.base import FetchRequest
from longstop.model.match import MatchStatus, Phase
from longstop.model.polling_status import SyncState
from longstop.model.source_queries_and_answers import Listing, ListingEntry, Query
from longstop.sources.base import not_offered
from longstop.sources.crex.source import CrexSource
from longstop.sports.cricket.model import NAMES, SCORECARD, CricketKind
from longstop.storage.base import MatchBase, MatchUpdate, Receipt
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import PollFailed
from longstop.telemetry.events.processes import PollPostponed
from longstop.watching.feed_polling import FeedWatch
from tests.builders import CREX_CONFIG, NOW
from tests.crex_site import OUT_OF_ORDER
from tests.live import watch
from tests.memory import MemoryHot
from tests.unit.sports.cricket.polling import Polling


class Watching(Polling):
    """A match with its watcher."""

    def __init__(self) -> None:
        super().__init__()
        self.hot = MemoryHot()
        self.watcher: FeedWatch

    async def begin(self, *values: str) -> None:
        self.match.bowl(*values)
        state = await self.start()
        bus = Bus([self.sink])
        self.watcher = await watch(state.row.match_id, self.pipeline, self.store, self.hot, bus, self.clock)

    async def entry(self) -> ListingEntry:
        listing: Listing = await self.client.listing()
        return listing.boards[0]


async def test_a_good_poll_shows_the_snapshot_and_its_age() -> None:
    watching = Watching()
    await watching.begin("1")

    await watching.watcher.poll()

    row = watching.hot.rows[1]
    assert (row.record.last_poll_at, row.record.total_polls, row.sequence) == (NOW, 1, 1)
    assert row.payload == watching.store.snapshots[1].payload
    assert not watching.watcher.is_polling


async def test_the_age_counts_from_the_question_and_not_from_the_answer() -> None:
    watching = Watching()
    await watching.begin("1")
    watching.site.before_answer = lambda _resource: watching.clock.advance(1)

    await watching.watcher.poll()

    assert watching.watcher.record.last_poll_at == NOW


@pytest.mark.req("FLD-5")
async def test_an_unchanged_entry_only_makes_the_match_younger() -> None:
    watching = Watching()
    await watching.begin("1")
    await watching.watcher.poll()
    asked = list(watching.site.asked)
    assert not watching.watcher.see_entry(await watching.entry())

    watching.watcher.accept_entry(Moment(NOW + timedelta(seconds=5), 5.0))

    assert watching.hot.rows[1].record.last_poll_at == NOW + timedelta(seconds=5)
    assert (watching.site.asked, len(watching.store.updates)) == ([*asked, "getLiveMatches"], 1)


async def test_a_match_needs_a_poll_until_it_was_seen_once() -> None:
    watching = Watching()
    await watching.begin("1")

    assert watching.watcher.see_entry(await watching.entry())


async def test_a_changed_entry_needs_a_poll() -> None:
    watching = Watching()
    await watching.begin("1")
    await watching.watcher.poll()
    watching.match.bowl("4")

    assert watching.watcher.see_entry(await watching.entry())


async def test_a_step_back_needs_a_second_poll_even_if_the_entry_stays() -> None:
    watching = Watching()
    await watching.begin("1", "4")
    await watching.watcher.poll()
    watching.match.balls[0].value = "0"
    await watching.watcher.poll()
    assert watching.watcher.see_entry(await watching.entry())

    await watching.watcher.poll()

    assert not watching.watcher.see_entry(await watching.entry())
    assert watching.stored_balls() == watching.true_balls()


async def test_a_failed_poll_counts_and_changes_nothing_else() -> None:
    watching = Watching()
    await watching.begin("1")
    await watching.watcher.poll()
    before = watching.watcher.state
    watching.clock.advance(10)
    watching.site.faults["getBallFeeds"] = OUT_OF_ORDER

    await watching.watcher.poll()
    await watching.watcher.poll()

    record = watching.hot.rows[1].record
    assert (record.consecutive_failures, record.total_failures, record.total_polls) == (2, 2, 1)
    assert (record.last_poll_at, watching.watcher.state) == (NOW, before)
    assert record.last_error is not None
    assert record.last_error.startswith("SourceFailed: crex POST")
    assert len(watching.sink.named("poll.failed")) == 2


async def test_a_good_poll_ends_a_row_of_failures_but_not_their_sum() -> None:
    watching = Watching()
    await watching.begin("1")
    watching.site.faults["getSV3"] = b"<html>"
    await watching.watcher.poll()
    watching.site.faults.clear()

    await watching.watcher.poll()

    record = watching.watcher.record
    assert (record.consecutive_failures, record.total_failures, record.last_error) == (0, 1, None)


async def test_a_store_that_fails_is_a_failed_poll_and_the_next_one_loses_nothing() -> None:
    watching = Watching()
    await watching.begin("1")
    watching.store.next_failure = StorageError("the disk is full")

    await watching.watcher.poll()
    assert watching.watcher.record.consecutive_failures == 1
    await watching.watcher.poll()

    assert watching.stored_balls() == watching.true_balls()


async def test_an_exhausted_resource_is_no_failure_and_the_next_poll_continues_from_the_store() -> None:
    watching = Watching()
    await watching.begin("1")
    watching.store.next_failure = ResourcesExhausted("file descriptors")

    await watching.watcher.poll()
    record = watching.watcher.record
    await watching.watcher.poll()

    assert (record.consecutive_failures, record.total_failures, record.is_held) == (0, 0, True)
    assert (record.lacking, watching.watcher.record.lacking) == ("file descriptors", None)
    postponed = PollPostponed(resource="file descriptors", subject=str(record.ref))
    assert [event for event in watching.sink.events if isinstance(event, PollPostponed | PollFailed)] == [postponed]
    assert watching.stored_balls() == watching.true_balls()


@pytest.mark.req("NFR-009")
async def test_a_poll_that_gets_no_thread_is_put_off_and_is_no_bug() -> None:
    watching = Watching()
    await watching.begin("1")

    def starve(_resource: str) -> None:
        raise RuntimeError("can't start new thread")

    watching.site.before_answer = starve
    await watching.watcher.poll()

    record = watching.watcher.record
    assert (record.lacking, record.total_failures) == ("processes", 0)
    assert watching.sink.named("task.failed") == []


async def test_a_match_whose_site_is_excluded_is_not_out_of_resources() -> None:
    watching = Watching()
    await watching.begin("1")
    errors = iter([ResourcesExhausted("memory"), CircuitOpen("the circuit is open")])

    def refuse(_resource: str) -> None:
        raise next(errors)

    watching.site.before_answer = refuse
    await watching.watcher.poll()
    await watching.watcher.poll()

    record = watching.watcher.record
    assert (record.is_held, record.lacking) == (True, None)


@pytest.mark.parametrize(
    ("error", "is_shut_out"),
    [
        (CircuitOpen("the circuit is open"), True),
        (BrowserBusy("3 pages are being loaded already"), False),
        (LayoutPaused("unreadable"), False),
        (BudgetSpent("the month's bytes are spent"), False),
        (ResourcesExhausted("memory"), False),
    ],
)
async def test_only_a_site_that_is_excluded_has_shut_its_matches_out(error: FetchError, is_shut_out: bool) -> None:
    watching = Watching()
    await watching.begin("1")

    def refuse(_resource: str) -> None:
        raise error

    watching.site.before_answer = refuse
    await watching.watcher.poll()

    record = watching.watcher.record
    assert (record.is_held, record.is_shut_out) == (True, is_shut_out)


async def test_only_a_failed_canary_counts_as_excluded() -> None:
    watching = Watching()
    await watching.begin("1")
    seen: list[tuple[bool, bool]] = []

    def fail(_resource: str) -> None:
        error = FetchTimeout("30 s")
        error.is_canary = not seen
        raise error

    watching.site.before_answer = fail
    for _ in range(2):
        await watching.watcher.poll()
        seen.append((watching.watcher.record.is_held, watching.watcher.record.is_shut_out))

    assert seen == [(True, True), (False, False)]


@pytest.mark.parametrize("is_read_since", [True, False])
async def test_a_match_whose_listing_is_refused_is_excluded_and_an_older_exhaustion_is_over(
    is_read_since: bool,
) -> None:
    watching = Watching()
    await watching.begin("1")
    watching.store.next_failure = ResourcesExhausted("file descriptors")
    await watching.watcher.poll()
    if is_read_since:
        await watching.watcher.poll()

    watching.watcher.see_refusal()

    record = watching.hot.rows[1].record
    assert (record.is_held, record.is_shut_out, record.lacking) == (True, True, None)


async def test_a_bug_is_shown_with_its_trace_and_does_not_come_out() -> None:
    watching = Watching()
    await watching.begin("1")

    def stumble(_resource: str) -> None:
        raise KeyError("a bug")

    watching.site.before_answer = stumble
    await watching.watcher.poll()

    [failure] = watching.sink.named("task.failed")
    assert "KeyError" in msgspec.structs.asdict(failure)["stack_trace"]
    # The errors table takes the first as the error, with its match, and the second as its trace.
    names = [event.name for event in watching.sink.events]
    assert names.index("poll.failed") < names.index("task.failed")
    assert not watching.watcher.is_polling


async def test_a_watcher_whose_match_was_taken_says_so() -> None:
    watching = Watching()
    await watching.begin("1")
    await watching.store.claim(1, "node-b")

    await watching.watcher.poll()

    assert watching.watcher.is_lost
    assert watching.store.history == {}


async def test_what_a_poll_changed_is_reported() -> None:
    watching = Watching()
    await watching.begin("1")
    await watching.watcher.poll()
    watching.match.extra_runs = 1
    await watching.watcher.poll()
    await watching.watcher.poll()
    watching.match.extra_runs = 0
    await watching.watcher.poll()

    names = [event.name for event in watching.sink.events if event.name not in ("update.stored", "poll.succeeded")]
    assert names == ["match.phase_changed", "match.in_sync", "finding.opened", "finding.closed"]


@pytest.mark.req("MON-1")
async def test_a_finished_match_can_be_archived() -> None:
    watching = Watching()
    await watching.begin("1")
    watching.match.headline = "No result"
    await watching.watcher.poll()
    await watching.watcher.poll()

    await watching.watcher.archive()

    row = watching.store.rows[1]
    assert (row.phase, row.status) == (Phase.ARCHIVED, MatchStatus.COMPLETED)
    assert watching.hot.rows == {}


async def test_a_match_that_was_taken_cannot_be_archived_and_is_lost() -> None:
    watching = Watching()
    await watching.begin("1")
    watching.match.headline = "No result"
    await watching.watcher.poll()
    await watching.watcher.poll()
    await watching.store.claim(1, "node-b")

    await watching.watcher.archive()

    assert watching.watcher.is_lost
    assert watching.store.rows[1].phase is Phase.COMPLETED


async def test_a_lost_match_stays_lost_when_a_later_change_fails_for_another_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(match_id: int) -> MatchBase:
        raise StorageError("the disk does not answer")

    watching = Watching()
    await watching.begin("1")
    await watching.watcher.poll()
    await watching.store.claim(1, "node-b")
    await watching.watcher.store_pause()

    monkeypatch.setattr(watching.store, "load", fail)
    await watching.watcher.store_pause()

    assert watching.watcher.is_lost


@pytest.mark.req("NFR-009")
async def test_after_a_commit_of_unknown_outcome_the_next_poll_goes_on_from_what_is_stored() -> None:
    """The commit failed, but the rows are durable: the state in memory is then outdated."""
    watching = Watching()
    await watching.begin("1", "2")
    await watching.watcher.poll()
    save = watching.store.save_update

    async def save_and_fail(update: MatchUpdate) -> Receipt:
        watching.store.save_update = save  # type: ignore[method-assign]
        await save(update)
        raise StorageError("the disk is full")

    watching.store.save_update = save_and_fail  # type: ignore[method-assign]
    watching.match.bowl("4")
    await watching.watcher.poll()
    watching.match.bowl("6")
    await watching.watcher.poll()

    assert watching.watcher.record.consecutive_failures == 0
    assert len(watching.stored(CricketKind.DELIVERY)) == 4


class LeanSource(CrexSource):
    """A site without scorecards and names."""

    def request(self, query: Query) -> FetchRequest:
        if query.resource in (SCORECARD, NAMES):
            raise not_offered(self.name, query.resource)
        return super().request(query)


async def test_a_poll_goes_on_without_the_resources_that_a_source_does_not_offer() -> None:
    watching = Watching()
    watching.client.use_source(LeanSource(CREX_CONFIG))
    await watching.begin("1", "4")

    await watching.watcher.poll()

    record = watching.hot.rows[1].record
    assert (record.total_polls, record.total_failures, record.sync) == (1, 0, SyncState.IN_SYNC)
    assert not watching.sink.named(PollFailed.name)
