"""Watches that fail and recover, in virtual time, on a small site."""

import asyncio

import msgspec
import pytest

from longstop.errors import PageNotFound, SourceFailed, SourceRefused, SourceUnreachable, StorageError
from longstop.model.match import MatchRef, Phase
from longstop.model.polling_status import SyncState
from longstop.sports.cricket.model import CricketKind
from longstop.telemetry.events.matches import ErrorRateHigh, MatchStale, WatchRestarted
from longstop.telemetry.events.sources import CircuitOpened, LayoutBroken, LayoutRecovered
from longstop.testing import START, run_virtual
from longstop.watching.poll_intervals_and_frozen_pages import WatchRules
from tests.unit.watching.running import LIST, Running, match, script

STATE, FEED = "getSV3", "getBallFeeds"


def restarts(running: Running) -> list[tuple[str, str]]:
    return [(each.ref, each.reason) for each in running.sink.events if isinstance(each, WatchRestarted)]


def balls(running: Running) -> int:
    """Return how many deliveries were stored, each version counted."""
    return sum(stored.event.key.kind == CricketKind.DELIVERY for stored in running.store.history[1])


def direct(running: Running) -> list[str]:
    """Return the requests for matches themselves."""
    return [name for name in running.site.asked if name != LIST]


@pytest.mark.req("US2.2", "MON-1")
def test_a_match_that_is_refused_five_times_is_paused_for_five_minutes_and_restarts() -> None:
    one = match("M1", "1")
    running = Running(one)
    phases: list[Phase] = []

    def refuse() -> None:
        running.site.faults[FEED] = SourceRefused("403")
        one.bowl("4")

    def note() -> None:
        phases.append(running.row("M1").record.phase)
        running.site.asked.clear()

    def rested() -> None:
        phases.append(running.row("M1").record.phase)
        assert direct(running) == []
        running.site.faults.clear()

    script(running, (4.0, refuse), (60.0, note), (300.0, rested), until=370.0)

    opened = [each for each in running.sink.events if isinstance(each, CircuitOpened)]
    assert [(each.scope, each.seconds) for each in opened] == [("match", 300.0)]
    assert phases == [Phase.PAUSED, Phase.PAUSED]
    assert restarts(running) == [("crex_M1", "cool_down")]
    assert running.row("M1").record.phase is Phase.ACTIVE
    assert len(running.store.history[1]) == 2


@pytest.mark.req("US2.2")
def test_a_match_that_is_refused_after_its_pause_is_paused_again_at_once() -> None:
    one = match("M1", "1")
    running = Running(one)

    def refuse() -> None:
        running.site.faults[FEED] = SourceRefused("403")
        one.bowl("4")

    script(running, (4.0, refuse), until=900.0)

    opened = [each for each in running.sink.events if isinstance(each, CircuitOpened)]
    assert len(opened) == 3
    assert running.row("M1").record.total_failures == 5 + 2


@pytest.mark.req("US2.2")
def test_a_restarted_scraper_keeps_the_pause_of_a_match_and_continues_it_when_the_pause_is_over() -> None:
    one = match("M1", "1")
    running = Running(one)

    async def restart_at(seconds: float, until: float) -> list[str]:
        """Let a scraper run until then, and another one until a later moment; return what the later one asks for."""
        await running.run(seconds)
        running.site.asked.clear()
        task = asyncio.create_task(running.start())
        await asyncio.sleep(until - seconds)
        asked = direct(running)
        running.site.faults.clear()
        await asyncio.sleep(370.0 - until)
        await running.stop(task)
        return asked

    async def play() -> list[str]:
        running.site.faults[FEED] = SourceRefused("403")
        return await restart_at(60.0, 240.0)

    assert run_virtual(play()) == []
    opened = [each for each in running.sink.events if isinstance(each, CircuitOpened)]
    assert [each.seconds > 290 for each in opened] == [True, False]
    assert "kept over a restart" in opened[-1].reason
    assert restarts(running) == [("crex_M1", "cool_down")]
    assert running.row("M1").record.phase is Phase.ACTIVE


def test_a_match_that_is_watched_again_does_not_start_with_the_pause_of_its_former_watch() -> None:
    one = match("M1", "1")
    running = Running(one)
    running.site.faults[FEED] = SourceRefused("403")

    def unwatch() -> None:
        assert running.row("M1").record.phase is Phase.PAUSED
        running.scheduler.unwatch(MatchRef("crex", "M1"))

    script(running, (60.0, unwatch), until=61.0)

    assert not running.pauses.former("crex")


@pytest.mark.req("FR-001")
def test_a_match_in_play_that_is_not_read_for_five_minutes_is_reported_though_it_was_restarted_before() -> None:
    running = Running(match("M1", "1"))

    def fail() -> None:
        running.site.faults = dict.fromkeys((LIST, STATE, FEED), SourceUnreachable("no way"))

    script(running, (4.0, fail), (320.0, lambda: running.site.faults.clear()), until=375.0)

    stale = [each for each in running.sink.events if isinstance(each, MatchStale)]
    assert [each.ref for each in stale] == ["crex_M1"]
    assert 300 < stale[0].age_seconds < 325
    assert [reason for _, reason in restarts(running)] == ["errors"]
    assert running.store.rows[1].epoch == 2
    assert running.row("M1").record.sync is SyncState.IN_SYNC
    assert running.age("M1", 375.0) < 25


@pytest.mark.req("FR-001")
def test_a_match_in_play_whose_answers_hang_restarts_after_five_minutes() -> None:
    one = match("M1", "1")
    running = Running(one)

    def hang() -> None:
        running.fetcher.slow = {FEED: 100.0}
        running.site.faults[FEED] = SourceUnreachable("no way")
        one.bowl("4")

    def recover() -> None:
        running.fetcher.slow.clear()
        running.site.faults.clear()

    script(running, (4.0, hang), (330.0, recover), until=450.0)

    assert restarts(running)[0] == ("crex_M1", "stale")
    assert len(running.store.history[1]) == 2


@pytest.mark.req("FR-001")
def test_more_than_ten_failures_in_a_row_restart_a_watch() -> None:
    one, two = match("M1", "1"), match("M2", "1")
    running = Running(one, two)

    def fail() -> None:
        one.is_listed = False
        running.site.feed_faults["M1"] = SourceFailed("503")

    script(running, (4.0, fail), until=260.0)

    assert ("crex_M1", "errors") in restarts(running)
    assert not [ref for ref, _ in restarts(running) if ref == "crex_M2"]
    assert running.age("M2", 260.0) < 30


@pytest.mark.req("FR-010", "EC7", "US1.3")
def test_an_old_watch_waits_for_a_quiet_moment_and_goes_on_at_the_exact_ball() -> None:
    one = match("M1", "1")
    running = Running(one)
    running.rules = WatchRules(lifetime_seconds=100.0)
    moments: list[int] = []

    def bowl() -> None:
        one.bowl("1")
        moments.append(len(restarts(running)))

    # A ball every 20 s is no quiet moment; the pause after 100 s is one.
    acts = [(float(at), bowl) for at in (5, 25, 45, 65, 85, 102, 140)]
    script(running, *acts, until=160.0)

    assert moments == [0, 0, 0, 0, 0, 0, 1]
    assert restarts(running) == [("crex_M1", "lifetime")]
    assert balls(running) == 1 + len(acts)


@pytest.mark.req("FR-010")
def test_a_watch_without_a_quiet_moment_restarts_at_most_a_tenth_late() -> None:
    one = match("M1", "1")
    running = Running(one)
    running.rules = WatchRules(lifetime_seconds=100.0)

    script(running, *[(float(at), lambda: one.bowl("1")) for at in range(5, 125, 10)], until=126.0)

    assert restarts(running) == [("crex_M1", "lifetime")]
    assert balls(running) == 13


@pytest.mark.req("FLD-9")
def test_after_a_silence_the_polls_begin_spread_over_two_seconds() -> None:
    matches = [match(f"M{number}", "1") for number in range(20)]
    running = Running(*matches, slots=20)
    asked: list[int] = []

    def fail() -> None:
        running.site.faults[LIST] = SourceUnreachable("no way")

    def recover() -> None:
        running.site.faults.clear()
        for each in matches:
            each.bowl("4")
        running.site.asked.clear()

    def count() -> None:
        asked.append(sum(name == STATE for name in running.site.asked))
        running.site.asked.clear()

    # With five failures or fewer the listing is asked every 2.5 s; the first good one is at 12.5 s.
    quarters = [(12.51 + 0.25 * number, count) for number in range(1, 9)]
    script(running, (6.0, fail), (11.0, recover), *quarters, until=16.0)

    assert sum(asked) == 20
    assert max(asked) <= 3


@pytest.mark.req("US3.4")
def test_more_than_ten_errors_a_minute_are_reported_once_with_their_types() -> None:
    running = Running(match("M1", "1"))
    running.rules = msgspec.structs.replace(running.rules, max_errors=3)

    def fail() -> None:
        running.site.faults[FEED] = SourceFailed("503")
        running.site.matches["M1"].bowl("4")

    script(running, (4.0, fail), until=40.0)

    reported = [each for each in running.sink.events if isinstance(each, ErrorRateHigh)]
    assert [(each.ref, each.errors, each.types) for each in reported] == [("crex_M1", 4, {"SourceFailed": 4})]


# --- what was found by attacking it ---------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", [Phase.ACTIVE, Phase.COMPLETED])
def test_five_refusals_end_nothing_whatever_the_phase(phase: Phase) -> None:
    one = match("M1", "1")
    running = Running(one)

    def refuse() -> None:
        running.site.faults[FEED] = SourceRefused("403")
        running.store.rows[1] = msgspec.structs.replace(running.store.rows[1], phase=phase)
        running.scheduler._watches["M1"].feed.state = msgspec.structs.replace(
            running.scheduler._watches["M1"].state, row=running.store.rows[1]
        )
        one.bowl("4")

    script(running, (4.0, refuse), (100.0, running.site.faults.clear), until=500.0)

    assert not running.sink.named("task.failed")
    assert running.row("M1").record.phase is Phase.ACTIVE
    assert len(running.store.history[1]) == 2


def test_a_list_that_freezes_in_a_break_does_not_hide_that_play_goes_on() -> None:
    one = match("M1", "1")
    one.headline = "Drinks Break"
    running = Running(one)

    def freeze() -> None:
        running.site.frozen_list = running.site.list_now()
        one.headline = "B"
        one.bowl("4", "6")

    script(running, (60.0, freeze), until=420.0)

    assert len(running.store.history[1]) == 3


def test_a_match_whose_polls_get_halfway_is_stale_all_the_same() -> None:
    one = match("M1", "1")
    running = Running(one, is_guarded=True)

    def fail() -> None:
        running.site.faults[STATE] = SourceFailed("500")
        one.bowl("4")

    script(running, (4.0, fail), until=900.0)

    stale = [each for each in running.sink.events if isinstance(each, MatchStale)]
    assert [each.ref for each in stale][:1] == ["crex_M1"]
    assert len(restarts(running)) <= 4


@pytest.mark.req("US5.1")
def test_errors_slow_a_match_down_for_as_long_as_they_last() -> None:
    one = match("M1", "1")
    running = Running(one)
    asked: list[int] = []

    def fail() -> None:
        running.site.faults[FEED] = SourceFailed("503")
        one.bowl("4")

    def count() -> None:
        asked.append(len(direct(running)))
        running.site.asked.clear()

    script(running, (4.0, fail), (300.0, count), (400.0, count), until=401.0)

    assert asked[1] <= 6


@pytest.mark.req("EC3")
def test_a_site_that_knows_no_page_at_all_ends_no_match() -> None:
    running = Running(match("M1", "1"))
    script(running, until=10.0)
    running.site.faults = dict.fromkeys((LIST, STATE, FEED), PageNotFound("404"))

    script(running, until=600.0)

    assert running.row("M1").record.phase is Phase.ACTIVE
    assert not running.sink.named("match.gone")


@pytest.mark.req("EC3", "NFR-009")
def test_what_is_left_of_a_match_is_read_even_if_its_scoreboard_was_never_seen() -> None:
    one = match("M1", "1")
    running = Running(one)
    script(running, until=10.0)
    one.bowl("4", "6")
    one.is_listed = False
    running.site.faults = {STATE: PageNotFound("404")}

    script(running, until=400.0)

    assert running.row("M1").record.phase is Phase.COMPLETED
    assert balls(running) == 3
    assert running.row("M1").sequence == 1


def test_a_hanging_listing_delays_no_match() -> None:
    matches = [match(f"M{number}", "1") for number in range(3)]
    running = Running(*matches, is_guarded=True)

    def hang() -> None:
        running.fetcher.slow = {LIST: 3600.0}

    script(running, (4.0, hang), (600.0, lambda: matches[0].bowl("4")), until=640.0)

    assert len(running.store.history[1]) == 2
    assert max(running.age(each.key, 640.0) for each in matches) < 30


def test_an_age_counts_from_the_question_of_a_listing_that_was_long_in_coming() -> None:
    running = Running(match("M1", "1"))
    listed: list[float] = []

    def slow_down() -> None:
        running.fetcher.slow = {LIST: 25.0}

    def note() -> None:
        assert running.scheduler.listings.read_at is not None
        listed.append((running.scheduler.listings.read_at - START).total_seconds())

    # Asked at 5 s and answered at 30 s, three turns later.
    script(running, (4.0, slow_down), (29.0, note), (36.0, note), until=37.0)

    assert listed == [2.5, 5.0]


def test_a_site_that_needs_nine_seconds_is_read_when_it_is_given_them() -> None:
    running = Running(match("M1", "1"), match("M2", "1"), is_guarded=True)

    def slow_down() -> None:
        running.fetcher.slow = dict.fromkeys((LIST, STATE, FEED), 9.0)

    script(running, (4.0, slow_down), until=900.0)

    assert running.age("M1", 900.0) < 60


@pytest.mark.parametrize("seconds", [60.0, 330.0, 900.0])
def test_after_an_outage_everybody_is_fresh_soon_and_nothing_is_read_whole(seconds: float) -> None:
    matches = [match(f"M{number}", *["1"] * 60) for number in range(20)]
    running = Running(*matches, slots=20, is_guarded=True)
    requests: list[int] = []

    def fail() -> None:
        running.site.faults = dict.fromkeys((LIST, STATE, FEED), SourceUnreachable("no way"))

    def recover() -> None:
        running.site.faults.clear()
        for each in matches:
            each.bowl("4")
        running.site.asked.clear()

    end = 10.0 + seconds
    script(
        running,
        (10.0, fail),
        (end, recover),
        (end + 10.0, lambda: requests.append(len(running.site.asked))),
        until=end + 60,
    )

    assert max(running.age(each.key, end + 60) for each in matches) < 10
    assert requests[0] <= 20 * 3 + 10
    assert restarts(running) == []


def test_a_store_that_fails_counts_among_the_errors_of_a_match() -> None:
    one = match("M1", "1")
    running = Running(one)

    async def fail(update: object) -> None:
        raise StorageError("the disk is full")

    def break_store() -> None:
        running.store.save_update = fail  # type: ignore[assignment,method-assign]
        one.bowl("4")

    script(running, (4.0, break_store), until=60.0)

    reported = [each for each in running.sink.events if isinstance(each, ErrorRateHigh)]
    assert [each.types for each in reported] == [{"StorageError": 11}]


def test_a_recycle_ends_a_hanging_poll_and_restarts_its_watch() -> None:
    one, two = match("M1", "1"), match("M2", "1")
    running = Running(one, two, slots=4)
    tasks: list[asyncio.Task[bool]] = []

    def hang() -> None:
        running.fetcher.slow = dict.fromkeys((STATE, FEED), 3600.0)
        for each in (one, two):
            each.bowl("4")

    def recycle() -> None:
        running.fetcher.slow = {}
        chosen = [running.row("M1").record.match_id]
        tasks.append(asyncio.create_task(running.scheduler.recycle(chosen)))

    script(running, (4.0, hang), (60.0, recycle), until=70.0)

    assert tasks[0].result()
    assert restarts(running) == [("crex_M1", "recycled")]
    assert running.age("M1", 70.0) < 5
    assert running.age("M2", 70.0) > 60


def test_a_recycle_without_watches_restarts_nothing() -> None:
    running = Running(match("M1", "1"))
    tasks: list[asyncio.Task[bool]] = []

    script(running, (4.0, lambda: tasks.append(asyncio.create_task(running.scheduler.recycle([999])))), until=10.0)

    assert tasks[0].result() is False
    assert restarts(running) == []


# --- an operator recycles -------------------------------------------------------------------------------------------


@pytest.mark.req("EC1")
@pytest.mark.parametrize("page", [STATE, LIST])
@pytest.mark.parametrize("is_asked", [True, False])
def test_a_recycle_tries_a_site_whose_layout_was_broken_at_once(page: str, is_asked: bool) -> None:
    running = Running(*(match(f"M{number}", "1") for number in range(3)), is_guarded=True)
    answers: list[asyncio.Task[bool]] = []

    def recycle() -> None:
        running.site.faults.clear()
        running.site.asked.clear()
        if is_asked:
            answers.append(asyncio.create_task(running.scheduler.retry_now()))

    script(
        running,
        (4.0, lambda: running.site.faults.update({page: b"<p>"})),
        (5.0, lambda: [each.bowl("1") for each in running.site.matches.values()]),
        (200.0, recycle),
        until=204.0,
    )

    assert running.sink.named(LayoutBroken.name)
    assert [answer.result() for answer in answers] == [True] * is_asked
    assert (running.site.count(page) > 0) is is_asked
    assert bool(running.sink.named(LayoutRecovered.name)) is is_asked
    if is_asked:
        assert all(running.age(f"M{number}", 204.0) < 4.0 for number in range(3))


def test_a_recycle_of_a_site_that_works_reports_no_open_circuit() -> None:
    running = Running(match("M1", "1"), is_guarded=True)
    answers: list[asyncio.Task[bool]] = []

    script(running, (4.0, lambda: answers.append(asyncio.create_task(running.scheduler.retry_now()))), until=8.0)

    assert [answer.result() for answer in answers] == [False]
    assert restarts(running) == [("crex_M1", "recycled")]
