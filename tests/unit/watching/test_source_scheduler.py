"""One source's loop, in virtual time, on a small site."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from longstop.errors import PageNotFound, SourceRefused, StorageError
from longstop.model.match import MatchStatus, Phase
from longstop.model.polling_status import SyncState
from longstop.sports.cricket.model import CricketKind
from longstop.telemetry.events.matches import MatchGone
from tests.crex_site import OUT_OF_ORDER, SiteMatch
from tests.unit.watching.running import LIST, Running, match, run, script

DAY = 24 * 3600.0


def test_a_listed_match_is_found_read_and_served() -> None:
    running = Running(match("M1", "1", "4"))

    run(running.run(1))

    assert (running.row("M1").record.phase, running.row("M1").sequence) == (Phase.ACTIVE, 1)
    assert len(running.sink.named("match.discovered")) == len(running.sink.named("match.claimed")) == 1


def test_an_unchanged_list_keeps_matches_young_with_one_request_for_all() -> None:
    running = Running(*(match(f"M{number}", "1") for number in range(1, 6)))

    def forget() -> None:
        running.site.asked.clear()

    script(running, (4.0, forget), until=31.0)

    assert set(running.site.asked) == {LIST}
    assert running.site.count(LIST) == 11
    assert len(running.store.updates) == 5
    assert all(running.age(f"M{number}", 31.0) < 2.6 for number in range(1, 6))


def test_only_the_match_whose_entry_changed_is_polled() -> None:
    one, two = match("M1", "1"), match("M2", "1")
    running = Running(one, two)

    def bowl() -> None:
        running.fetcher.requests.clear()
        two.bowl("6")

    script(running, (4.0, bowl), until=8.0)

    looked = {request.url for request in running.fetcher.requests if "getSV3" in request.url}
    assert looked == {"https://api.test/api/v3/getSV3?key=M2"}
    assert len(running.store.updates) == 3


def test_a_match_is_polled_once_at_a_time_however_slow_the_site_is() -> None:
    running = Running(match("M1", "1"), delay_seconds=6.0)

    run(running.run(60))

    assert running.fetcher.most_in_flight == 1


def test_no_more_polls_are_in_flight_than_there_are_slots() -> None:
    running = Running(*(match(f"M{number}", "1") for number in range(12)), delay_seconds=1.0, slots=3)

    run(running.run(60))

    assert running.fetcher.most_in_flight == 3
    assert len(running.hot.rows) == 12


def test_the_polls_that_wait_for_a_slot_can_be_counted() -> None:
    running = Running(*(match(f"M{number}", "1") for number in range(5)), delay_seconds=1.0, slots=2)
    waited: list[int] = []

    def count() -> None:
        assert len(running.scheduler.records) == 5
        waited.append(len(running.dispatcher.waiting))

    script(running, (2.0, count), (60.0, count), until=61.0)

    assert waited == [3, 0]


def test_the_open_findings_of_all_matches_are_reported_together() -> None:
    one, two = match("M1", "1"), match("M2", "1")
    one.extra_runs = two.extra_runs = 1
    running = Running(one, two)

    run(running.run(40))

    assert [finding.kind for finding in running.scheduler.findings] == ["mismatch", "mismatch"]


@pytest.mark.req("FLD-5")
def test_a_match_missing_from_the_list_is_asked_at_every_tick_though_its_poll_had_to_wait() -> None:
    matches = [match(key, "1") for key in ("M1", "M2", "M3")]
    running = Running(*matches, delay_seconds=0.1, slots=1)

    def hide() -> None:
        for each in matches:
            each.is_listed = False
        running.site.asked.clear()

    script(running, (4.0, hide), until=29.0)

    assert running.site.count("getSV3") >= 27


@pytest.mark.req("FLD-5")
def test_a_match_missing_from_the_list_is_polled_itself_and_not_finished() -> None:
    one = match("M1", "1")
    running = Running(one)

    def hide() -> None:
        one.is_listed = False
        running.site.asked.clear()

    script(running, (4.0, hide), (10.0, lambda: one.bowl("4")), until=30.0)

    assert running.site.count("getSV3") >= 9
    assert len(running.store.history[1]) == 2
    assert (running.row("M1").record.phase, running.row("M1").record.status) == (Phase.ACTIVE, MatchStatus.LIVE)


def test_a_missing_match_that_is_gone_altogether_fails_and_is_not_finished() -> None:
    one = match("M1", "1")
    running = Running(one)

    def hide() -> None:
        one.is_listed = False
        running.site.faults |= {"getSV3": OUT_OF_ORDER, "getBallFeeds": OUT_OF_ORDER}

    script(running, (4.0, hide), until=30.0)

    record = running.row("M1").record
    assert record.phase is Phase.ACTIVE
    assert record.consecutive_failures >= 6
    assert record.consecutive_failures == record.total_failures == len(running.sink.named("poll.failed"))


def test_a_bug_in_one_match_does_not_stop_the_others() -> None:
    bad, good = match("M1", "1"), match("M2", "1")

    def stumble() -> dict[str, Any]:
        raise KeyError("a bug")

    bad.state = stumble  # type: ignore[method-assign]
    running = Running(bad, good)

    script(running, (4.0, lambda: good.bowl("4")), until=10.0)

    assert len(running.sink.named("task.failed")) >= 3
    assert len(running.store.history[2]) == 2


def test_a_bug_in_the_loop_itself_is_shown_and_the_loop_goes_on() -> None:
    one = match("M1", "1")
    running = Running(one)
    turns = iter(range(100))

    def stumble(resource: str) -> None:
        if resource == LIST and next(turns) == 1:
            raise KeyError("a bug")

    running.site.before_answer = stumble
    script(running, (4.0, lambda: one.bowl("4")), until=10.0)

    assert len(running.sink.named("task.failed")) == 1
    assert len(running.store.history[1]) == 2


@pytest.mark.req("MON-1")
def test_a_match_is_archived_after_a_day_and_then_ignored_though_it_is_still_listed() -> None:
    one = match("M1", "1")
    one.headline = "Reds won by 3 runs"
    running = Running(one)

    script(running, until=DAY + 300)
    assert running.store.rows[1].phase is Phase.ARCHIVED
    assert running.hot.rows == {}
    running.site.asked.clear()
    run(running.run(200))

    assert set(running.site.asked) == {LIST}
    assert running.store.rows[1].phase is Phase.ARCHIVED


def test_a_match_that_was_archived_is_kept_in_mind_as_long_as_it_is_listed_and_a_day_longer() -> None:
    one, two = match("M1", "1"), match("M2", "1")
    one.headline = two.headline = "Reds won by 3 runs"
    running = Running(one, two)
    kept: list[list[bool]] = []

    def note() -> None:
        kept.append([running.scheduler.is_excluded(key) for key in ("M1", "M2")])

    def unlist() -> None:
        note()
        two.is_listed = False

    script(running, (DAY + 300, unlist), (2 * DAY, note), until=2 * DAY + 900)
    note()

    assert kept == [[True, True], [True, True], [True, False]]


def test_a_match_is_not_archived_before_its_day_is_over() -> None:
    one = match("M1", "1")
    one.headline = "Reds won by 3 runs"
    running = Running(one)

    run(running.run(DAY - 300))

    assert running.row("M1").record.phase is Phase.COMPLETED


@pytest.mark.req("MON-2")
def test_live_matches_go_first() -> None:
    done, live = match("M1", "1"), match("M2", "1")
    done.headline = "Reds won by 3 runs"
    running = Running(done, live, slots=1)

    def change_both() -> None:
        running.fetcher.requests.clear()
        done.headline = "Reds won by 4 runs"
        live.bowl("1")

    # The list is asked every 2.5 s for the live match; both changes fall between two of its answers.
    script(running, (11.0, change_both), until=14.0)

    looked = [request.url[-2:] for request in running.fetcher.requests if "getSV3" in request.url]
    assert looked[0] == "M2"
    assert "M1" in looked


def test_a_match_that_another_node_took_is_let_go() -> None:
    one = match("M1", "1")
    running = Running(one)

    async def play() -> None:
        task = asyncio.create_task(running.start())
        await asyncio.sleep(4)
        await running.store.claim(1, "node-b")
        one.is_listed = False
        one.bowl("4")
        await asyncio.sleep(6)
        running.site.asked.clear()
        await asyncio.sleep(100)
        await running.stop(task)

    run(play())

    assert set(running.site.asked) == {LIST}
    assert len(running.store.history[1]) == 1


def test_a_restart_goes_on_with_what_is_stored_even_if_the_list_is_silent() -> None:
    one = match("M1", *["1"] * 20)
    running = Running(one)
    run(running.run(5))
    one.bowl(*["2"] * 9)
    one.is_listed = False

    run(running.run(10))

    balls = [stored.event for stored in running.store.history[1] if stored.event.key.kind == CricketKind.DELIVERY]
    assert len(balls) == 29
    assert {event.rev for event in balls} == {1}
    assert running.store.rows[1].epoch == 2


def test_a_store_that_fails_once_costs_one_poll() -> None:
    one = match("M1", "1")
    running = Running(one)

    def fail() -> None:
        running.store.next_failure = StorageError("the disk is full")
        one.bowl("4")

    script(running, (4.0, fail), until=12.0)

    assert len(running.store.history[1]) == 2
    record = running.row("M1").record
    assert (record.total_failures, record.consecutive_failures) == (1, 0)


@pytest.mark.req("NFR-009")
def test_a_ball_that_the_feed_shows_late_is_fetched_though_nothing_else_changes() -> None:
    """The board has the last ball before the break, the feed only twenty seconds later; no restart helps us out."""
    one = match("M1", "1", "2", "3", "4")
    running = Running(one)

    def take_a_break() -> None:
        one.bowl("6")
        one.headline = "Innings Break"
        one.feed_lag = 1

    def catch_up() -> None:
        one.feed_lag = 0

    script(running, (4.0, take_a_break), (24.0, catch_up), until=120.0)

    balls = [
        stored.event for stored in running.store.current(1).values() if str(stored.event.key).startswith("delivery")
    ]
    assert len(balls) == 5
    assert running.store.findings[1] == ()


def test_names_that_come_after_the_end_are_still_learnt() -> None:
    one = match("M1", "1")
    one.headline = "Reds won by 3 runs"
    running = Running(one)
    names, running.site.names = running.site.names, {}

    script(running, (30.0, lambda: running.site.names.update(names)), until=900.0)

    assert running.store.rows[1].title.startswith("Reds vs Blues")


def vanishing(one: SiteMatch) -> tuple[Running, Callable[[], None]]:
    running = Running(one)

    def vanish() -> None:
        running.site.faults.update({name: PageNotFound("404") for name in ("getSV3", "getBallFeeds")})
        running.site.asked.clear()

    return running, vanish


@pytest.mark.req("EC3")
def test_a_match_that_is_not_found_is_asked_for_once_a_minute_and_over_at_the_third_time() -> None:
    one = match("M1", "1")
    running, vanish = vanishing(one)
    phases: list[Phase] = []

    def note() -> None:
        phases.append(running.row("M1").record.phase)

    def hide() -> None:
        one.is_listed = False
        vanish()

    script(running, (4.0, hide), (120.0, note), (135.0, note), until=304.0)

    direct = [name for name in running.site.asked if name != LIST]
    assert 3 <= len(direct) <= 6
    assert phases == [Phase.ACTIVE, Phase.COMPLETED]
    assert running.sink.named("match.gone") == [MatchGone(match_id=1, ref="crex_M1", confirmations=3)]
    assert [finding.place for finding in running.store.findings[1]] == ["result"]


@pytest.mark.req("EC3")
def test_a_match_that_is_not_found_while_the_list_shows_it_is_never_over() -> None:
    one = match("M1", "1")
    running, vanish = vanishing(one)

    script(running, (4.0, vanish), (5.0, lambda: one.bowl("4")), until=600.0)

    assert running.row("M1").record.phase is Phase.ACTIVE
    assert running.row("M1").record.total_failures >= 5


@pytest.mark.req("EC3")
def test_a_match_that_was_taken_for_over_is_watched_again_when_it_comes_back() -> None:
    one = match("M1", "1")
    running, vanish = vanishing(one)

    def hide() -> None:
        one.is_listed = False
        vanish()

    def come_back() -> None:
        one.is_listed = True
        running.site.faults.clear()
        one.bowl("4")

    script(running, (4.0, hide), (200.0, come_back), until=400.0)

    assert running.row("M1").record.phase is Phase.ACTIVE
    assert running.store.findings[1] == ()
    assert len(running.store.history[1]) == 2


def test_from_the_moment_of_adoption_a_match_shows_as_recovering() -> None:
    running = Running(match("M1", "1"))
    run(running.run(5))
    assert running.row("M1").record.sync is SyncState.IN_SYNC

    running.site.faults[LIST] = SourceRefused("403")
    run(running.run(5))

    assert running.row("M1").record.sync is SyncState.RECOVERING


def test_a_match_that_another_node_has_taken_is_not_taken_back() -> None:
    one = match("M1", "1")
    running = Running(one)

    async def lose() -> None:
        await running.store.claim(1, "node-b")

    def steal() -> None:
        asyncio.get_running_loop().create_task(lose())
        one.bowl("4")

    script(running, (4.0, steal), until=60.0)

    assert (running.store.rows[1].owner, running.store.rows[1].epoch) == ("node-b", 2)


def pages_asked(running: Running, *matches: str) -> int:
    asked = [request for request in running.fetcher.requests if "getSV3" in request.url]
    return sum(request.url.endswith(f"={key}") for request in asked for key in matches)


def test_a_sign_of_change_has_its_match_polled_at_once_and_no_other() -> None:
    one, two = match("M1", "1"), match("M2", "1")
    running = Running(one, two)

    def signal() -> None:
        running.fetcher.requests.clear()
        two.bowl("6")
        running.scheduler.on_page_signal(running.scheduler.client.page_of("M2"))

    script(running, (4.0, signal), until=4.5)

    assert (pages_asked(running, "M1"), pages_asked(running, "M2")) == (0, 1)
    assert len(running.store.updates) == 3


def test_however_often_a_page_speaks_its_match_is_polled_once_a_second() -> None:
    running = Running(match("M1", "1"))

    def chatter() -> None:
        running.scheduler.on_page_signal(running.scheduler.client.page_of("M1"))

    script(running, *((4.0 + tenth / 10, chatter) for tenth in range(30)), until=7.0)

    assert 3 <= pages_asked(running, "M1") <= 6
