"""What one source, match or listing does, does not harm the others: slots, new matches, breakers."""

import asyncio
from contextlib import suppress
from typing import TypeVar

import msgspec
import pytest

from longstop.errors import CircuitOpen, LayoutChanged, LayoutPaused, LimitExceeded, SourceRefused
from longstop.matches.limits import Limits
from longstop.model.match import MatchRef, Phase
from longstop.model.source_queries_and_answers import LIST, LIVE
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import MatchDiscovered, PollFailed, PollSucceeded
from longstop.telemetry.events.sources import CircuitClosed, CircuitOpened, ListingFailed, MatchesRefused
from longstop.testing import START, VirtualClock, run_virtual
from longstop.watching.poll_dispatcher import Dispatcher, ResourceType, ScrapeQueue, ScrapeRequest
from tests.crex_site import SiteMatch
from tests.memory import MemorySink
from tests.unit.watching.running import Running, match, run, script
from tests.unit.watching.test_source_and_layout_breakers import Standing

Event = TypeVar("Event")


def of(sink: MemorySink, kind: type[Event]) -> list[Event]:
    return [event for event in sink.events if isinstance(event, kind)]


def request(source: str, name: str = "M1", priority: int = 0) -> ScrapeRequest:
    return ScrapeRequest(
        priority=priority,
        ref=MatchRef(source, name),
        resource=ResourceType.SCORECARD,
        scheduled_at=0.0,
        request_id=f"{source}-{name}",
    )


# --- slots ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cap", "sources", "most"), [(4, 1, 4), (4, 2, 3), (32, 2, 24), (32, 3, 22), (8, 4, 5), (2, 2, 1), (1, 3, 1)]
)
def test_a_source_holds_no_more_slots_than_leave_every_other_its_share(cap: int, sources: int, most: int) -> None:
    queue = ScrapeQueue(cap, sources)
    for nth in range(cap + 1):
        queue.put(request("slow", f"M{nth}"))

    taken = [queue.take(0.0) for _ in range(cap + 1)]

    assert len([each for each in taken if each]) == most


def test_a_slot_of_a_source_that_ends_is_free_for_it_again() -> None:
    queue = ScrapeQueue(2, 2)
    for nth in range(3):
        queue.put(request("slow", f"M{nth}"))

    first, second = queue.take(0.0), queue.take(0.0)
    assert first is not None
    queue.done(first)

    assert (second, queue.take(0.0) is not None) == (None, True)


def test_among_equally_urgent_requests_the_source_with_the_fewest_running_ones_comes_first() -> None:
    queue = ScrapeQueue(8, 2)
    for nth in range(5):
        queue.put(request("many", f"M{nth}"))
    queue.put(request("few", "M1"))

    taken = [queue.take(0.0) for _ in range(3)]

    assert [each.domain for each in taken if each] == ["many", "few", "many"]


def test_an_urgent_request_comes_before_a_fair_one() -> None:
    queue = ScrapeQueue(8, 2)
    for nth in range(2):
        queue.put(request("many", f"M{nth}"))
    queue.put(request("few", "M1", priority=2))

    assert [each.domain for each in (queue.take(0.0), queue.take(0.0)) if each] == ["many", "many"]


@pytest.mark.parametrize("cap", [2, 4, 32])
def test_polls_of_a_slow_source_never_delay_those_of_another(cap: int) -> None:
    began: list[float] = []

    async def play() -> None:
        dispatcher = Dispatcher(clock=VirtualClock(), bus=Bus(), cap=cap, sources=2)
        loop = asyncio.get_running_loop()

        async def slow() -> None:
            await asyncio.sleep(7)

        async def quick() -> None:
            began.append(loop.time())

        running = asyncio.create_task(dispatcher.run())
        for nth in range(2 * cap):
            dispatcher.submit(request("slow", f"M{nth}"), slow)
        await asyncio.sleep(1)
        dispatcher.submit(request("quick"), quick)
        await asyncio.sleep(1)
        running.cancel()
        await asyncio.wait([running])

    run_virtual(play())

    assert began == [1.0]


# --- new matches ----------------------------------------------------------------------------------------------------


def test_many_new_matches_come_in_batches_and_those_in_play_first() -> None:
    upcoming = [match(f"M{nth}") for nth in range(150)]
    for each in upcoming:
        each.headline = ""
    running = Running(*upcoming, *(match(f"L{nth}", "1") for nth in range(5)))

    script(running, (1.0, lambda: None), until=1.5)

    refs = [event.ref for event in of(running.sink, MatchDiscovered)]
    assert len(refs) == 100
    assert set(refs[:5]) == {f"crex_L{nth}" for nth in range(5)}


def test_all_new_matches_are_watched_in_the_end_though_nothing_is_in_play() -> None:
    running = Running(*(match(f"M{nth}") for nth in range(250)))
    for each in running.site.matches.values():
        each.headline = ""

    run(running.run(20))

    assert len(of(running.sink, MatchDiscovered)) == 250


def test_a_known_match_is_polled_before_new_ones() -> None:
    known = match("K", "1")
    running = Running(known, delay_seconds=0.5, slots=2)

    def crowd() -> None:
        running.site.matches |= {f"M{nth}": match(f"M{nth}", "1") for nth in range(300)}

    acts = [(float(second), lambda: known.bowl("1")) for second in range(6, 30)]

    ages: list[float] = []
    looks = [(second + 0.5, lambda at=second + 0.5: ages.append(running.age("K", at))) for second in range(8, 29)]
    script(running, *sorted([(5.0, crowd), *acts, *looks], key=lambda act: act[0]), until=30.0)

    assert max(ages) < 10.0


def test_more_matches_than_a_source_may_have_are_not_watched_and_that_is_reported_once() -> None:
    running = Running(*(match(f"M{nth}", "1") for nth in range(30)))
    running.limits = Limits(matches=20)

    run(running.run(20))

    assert len(of(running.sink, MatchDiscovered)) == 20
    [event] = of(running.sink, MatchesRefused)
    assert (event.watched, event.refused, event.limit) == (0, 10, 20)


def archived(running: Running, count: int) -> list[SiteMatch]:
    """Store this many archived matches; return them as the site still shows them."""

    async def store() -> None:
        for nth in range(count):
            row = await running.store.register(MatchRef("crex", f"OLD{nth}"), "over", None, START, sport="cricket")
            running.store.rows[row.match_id] = msgspec.structs.replace(row, phase=Phase.ARCHIVED)

    run(store())
    return [match(f"OLD{nth}", "1") for nth in range(count)]


def test_archived_matches_keep_no_match_in_play_from_being_watched() -> None:
    running = Running()
    running.limits = Limits(matches=11)
    playing = {f"L{nth}": match(f"L{nth}", "1") for nth in range(11)}
    running.site.matches = {each.key: each for each in archived(running, 40)}

    script(running, (300.0, lambda: running.site.matches.update(playing)), until=600.0)

    assert {event.ref for event in of(running.sink, MatchDiscovered)} == {f"crex_{key}" for key in playing}


def test_no_more_archived_matches_are_kept_in_mind_than_a_listing_may_have() -> None:
    running = Running()
    running.limits = Limits(matches=11, entries=20)
    old = archived(running, 60)

    def show(first: int) -> None:
        running.site.matches = {each.key: each for each in old[first : first + 20]}

    show(0)
    script(running, (300.0, lambda: show(20)), (600.0, lambda: show(40)), until=900.0)

    excluded = [each.key for each in old if running.scheduler.is_excluded(each.key)]
    assert excluded == [each.key for each in old[40:]]


def test_a_listing_with_too_many_entries_is_reported_and_known_matches_are_polled_without_it() -> None:
    running = Running(match("M1", "1"))
    running.limits = Limits(entries=20)

    def crowd() -> None:
        running.site.matches |= {f"X{nth}": match(f"X{nth}", "1") for nth in range(30)}

    script(running, (5.0, crowd), until=60.0)

    assert {event.error_type for event in of(running.sink, ListingFailed)} == {"LimitExceeded"}
    assert running.age("M1", 60.0) < 11.0
    assert len(of(running.sink, MatchDiscovered)) == 1


def test_an_entry_with_an_endless_text_is_left_out_and_the_others_are_read() -> None:
    bad = match("BAD", "1")
    bad.headline = "rain " * 1_000
    running = Running(match("M1", "1"), bad)

    run(running.run(10))

    assert [event.ref for event in of(running.sink, MatchDiscovered)] == ["crex_M1"]
    assert not of(running.sink, ListingFailed)


# --- breakers -------------------------------------------------------------------------------------------------------


def test_a_match_that_exceeds_a_limit_is_paused_by_its_own_breaker_and_no_other() -> None:
    running = Running(match("M1", "1"), match("BAD", "1"), is_guarded=True)

    def swell() -> None:
        running.site.matches["BAD"].headline = "rain " * 200
        running.site.frozen_list = {**running.site.list_now(), "BAD": match("BAD", "1", "2").entry()}

    script(running, (5.0, swell), until=120.0)

    opened = of(running.sink, CircuitOpened)
    assert [(event.scope, event.subject) for event in opened] == [("match", "crex_BAD")]
    assert {event.error_type for event in of(running.sink, PollFailed)} == {"LimitExceeded"}
    assert running.age("M1", 120.0) < 5.0


def ask(standing: Standing, match: str, error: Exception | None = None, resource: str = LIVE) -> None:
    standing.admission.admit(resource, match)(error, b"<p>", "")


def test_unreadable_pages_of_one_match_close_no_layout_while_another_is_readable() -> None:
    standing = Standing()
    ask(standing, "good")
    for _ in range(50):
        standing.clock.advance(5)
        ask(standing, "bad", LayoutChanged("no score"))

    assert standing.names() == []
    ask(standing, "good")


def test_a_second_match_with_one_unreadable_page_does_not_close_it_either() -> None:
    standing = Standing()
    ask(standing, "good")
    for _ in range(20):
        ask(standing, "bad", LayoutChanged("no score"))
    ask(standing, "flaky", LayoutChanged("cut off"))

    assert standing.names() == []


def test_unreadable_pages_of_several_matches_close_it() -> None:
    standing = Standing()
    ask(standing, "good")
    for nth in range(11):
        ask(standing, f"M{nth % 2}", LayoutChanged("no score"))

    assert "layout.broken" in standing.names()
    with pytest.raises(LayoutPaused):
        ask(standing, "good")


def test_the_only_match_of_a_site_closes_it_when_nothing_else_was_readable_for_ten_minutes() -> None:
    standing = Standing()
    ask(standing, "good")
    standing.clock.advance(601)
    for _ in range(11):
        ask(standing, "last", LayoutChanged("no score"))

    assert standing.names() == ["layout.broken"]


@pytest.mark.parametrize("error", [SourceRefused("403"), LayoutChanged("no score")])
def test_failures_of_one_match_never_open_the_circuit_of_its_source(error: Exception) -> None:
    standing = Standing()
    for _ in range(200):
        standing.clock.advance(2.5)
        ask(standing, "", resource=LIST)
        with suppress(LayoutPaused):
            ask(standing, "bad", error)

    assert not of(standing.sink, CircuitOpened)


def test_failures_of_several_matches_open_it() -> None:
    standing = Standing()
    for nth in range(60):
        standing.clock.advance(2.5)
        with suppress(CircuitOpen):
            ask(standing, "", resource=LIST)
            ask(standing, f"M{nth % 2}", SourceRefused("403"))

    assert [event.scope for event in of(standing.sink, CircuitOpened)] == ["source"]


def test_refused_listings_open_it_alone() -> None:
    standing = Standing()
    for _ in range(30):
        standing.clock.advance(2.5)
        ask(standing, "", SourceRefused("403"), LIST)

    assert [event.scope for event in of(standing.sink, CircuitOpened)] == ["source"]


def opened() -> Standing:
    """Return what admits queries to a site that refused several matches, once it may be probed."""
    standing = Standing()
    for nth in range(31):
        ask(standing, f"M{nth % 2}", SourceRefused("403"))
    standing.clock.advance(901)
    return standing


def test_the_failed_probe_of_a_single_match_opens_the_circuit_again_while_nothing_else_was_readable() -> None:
    standing = opened()

    ask(standing, "M1", SourceRefused("403"))

    assert len(of(standing.sink, CircuitOpened)) == 2
    with pytest.raises(CircuitOpen):
        ask(standing, "", resource=LIST)


def test_a_match_that_is_refused_again_and_again_keeps_no_circuit_open_while_other_pages_are_readable() -> None:
    standing = opened()

    for _ in range(3):
        ask(standing, "", resource=LIST)
        ask(standing, "M1", SourceRefused("403"))

    assert (len(of(standing.sink, CircuitOpened)), len(of(standing.sink, CircuitClosed))) == (1, 1)


def test_probes_of_several_matches_that_fail_open_the_circuit_again_although_a_page_was_readable() -> None:
    standing = opened()

    ask(standing, "", resource=LIST)
    ask(standing, "M1", SourceRefused("403"))
    ask(standing, "M2", SourceRefused("403"))

    assert len(of(standing.sink, CircuitOpened)) == 2


def test_pages_beyond_a_limit_count_for_no_source_and_no_layout() -> None:
    standing = Standing()
    for nth in range(100):
        ask(standing, f"M{nth}", LimitExceeded("too much"))

    assert standing.names() == []


def test_the_bytes_and_the_work_of_every_poll_are_reported() -> None:
    running = Running(match("M1", "1"))

    def fail() -> None:
        running.site.matches["M1"].headline = "rain " * 200
        running.site.frozen_list = {"M1": match("M1", "1", "2").entry()}

    script(running, (5.0, fail), until=10.0)

    good, failed = of(running.sink, PollSucceeded)[0], of(running.sink, PollFailed)[0]
    assert good.bytes > 300
    assert failed.bytes > 1_000
    assert good.busy_seconds == 0.0  # in virtual time
