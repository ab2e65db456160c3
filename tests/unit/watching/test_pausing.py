"""Commands of an operator, in virtual time: matches and sources are paused and resumed."""

import asyncio

import pytest

from longstop.model.match import MatchRef, Phase
from longstop.model.polling_status import SyncState
from longstop.telemetry.events.matches import MatchStale, WatchRestarted
from tests.crex_site import SiteMatch
from tests.unit.watching.running import LIST, Running, match, run, script


def two() -> tuple[SiteMatch, SiteMatch, Running]:
    one, other = match("M1", "1"), match("M2", "1")
    return one, other, Running(one, other)


def asked_for(running: Running, key: str) -> int:
    """Return the number of requests for a match since the last reset."""
    return sum(key in f"{request.url} {request.body!r}" for request in running.fetcher.requests)


def test_a_paused_match_is_not_asked_for_and_its_age_grows_while_the_others_go_on() -> None:
    one, other, running = two()

    def pause() -> None:
        running.scheduler.pause(MatchRef("crex", "M1"))
        running.fetcher.requests.clear()
        one.bowl("4")
        other.bowl("6")

    script(running, (4.0, pause), until=60.0)

    assert asked_for(running, "M1") == 0
    assert running.age("M1", 60.0) > 55.0
    assert running.age("M2", 60.0) < 3.0
    assert (running.row("M1").record.phase, running.row("M1").record.is_on_hold) == (Phase.PAUSED, True)
    assert running.row("M2").record.phase is Phase.ACTIVE


def test_a_paused_match_is_neither_stale_nor_restarted() -> None:
    running = Running(match("M1", "1"))

    script(running, (4.0, lambda: running.scheduler.pause(MatchRef("crex", "M1"))), until=1_000.0)

    assert running.sink.named(MatchStale.name) == running.sink.named(WatchRestarted.name) == []


def test_a_resumed_match_restarts_with_everything_that_happened_meanwhile() -> None:
    one, _, running = two()

    def resume() -> None:
        one.bowl("4", "6", "1")
        running.scheduler.resume(MatchRef("crex", "M1"))

    script(running, (4.0, lambda: running.scheduler.pause(MatchRef("crex", "M1"))), (60.0, resume), until=64.0)

    record = running.row("M1").record
    assert (record.phase, record.sync, record.is_on_hold) == (Phase.ACTIVE, SyncState.IN_SYNC, False)
    assert [event.reason for event in running.sink.named(WatchRestarted.name) if isinstance(event, WatchRestarted)] == [
        "asked"
    ]
    assert len(running.store.current(record.match_id)) == 4


def test_a_poll_under_way_ends_with_the_pause() -> None:
    running = Running(match("M1", "1"), delay_seconds=3.0)
    known: list[int] = []

    def pause() -> None:
        running.scheduler.pause(MatchRef("crex", "M1"))
        known.append(len(running.fetcher.requests))

    script(running, (4.0, pause), until=5.0)

    assert known
    assert asked_for(running, "M1") == 1
    assert running.store.updates == []


def test_a_source_that_is_paused_is_asked_nothing_at_all() -> None:
    one, _, running = two()

    def pause() -> None:
        running.scheduler.pause_source()
        running.fetcher.requests.clear()
        one.bowl("4")

    script(running, (4.0, pause), until=400.0)

    assert running.fetcher.requests == []
    assert all(running.row(key).record.phase is Phase.PAUSED for key in ("M1", "M2"))


def test_a_listing_under_way_ends_with_the_pause_of_its_source() -> None:
    _, _, running = two()
    running.fetcher.slow[LIST] = 5.0

    script(running, (2.0, lambda: running.scheduler.pause_source()), until=60.0)

    assert len(running.fetcher.requests) == 0
    assert running.scheduler.records == []


def test_a_source_that_is_resumed_is_read_again_at_once() -> None:
    one, _, running = two()

    def wake() -> None:
        one.bowl("4")
        running.scheduler.resume_source()

    script(running, (4.0, lambda: running.scheduler.pause_source()), (200.0, wake), until=203.0)

    assert all(running.row(key).record.sync is SyncState.IN_SYNC for key in ("M1", "M2"))
    assert running.age("M1", 203.0) <= 3.0
    assert len(running.store.current(running.row("M1").record.match_id)) == 2


def test_a_match_paused_by_itself_stays_so_when_its_source_is_resumed() -> None:
    _, _, running = two()

    def pause() -> None:
        running.scheduler.pause(MatchRef("crex", "M1"))
        running.scheduler.pause_source()

    script(running, (4.0, pause), (20.0, lambda: running.scheduler.resume_source()), until=30.0)

    assert running.row("M1").record.phase is Phase.PAUSED
    assert running.row("M2").record.phase is Phase.ACTIVE


def test_a_match_that_is_let_go_is_not_found_again_however_often_it_is_listed() -> None:
    _, _, running = two()

    def unwatch() -> None:
        assert running.scheduler.unwatch(MatchRef("crex", "M1"))
        running.fetcher.requests.clear()

    script(running, (4.0, unwatch), until=60.0)

    assert asked_for(running, "M1") == 0
    assert [str(row.record.ref) for row in running.hot.rows.values()] == ["crex_M2"]


def test_a_match_that_is_let_go_in_the_middle_of_its_poll_does_not_come_back_into_the_view() -> None:
    running = Running(match("M1", "1"), delay_seconds=1.0)

    script(running, (2.5, lambda: running.scheduler.unwatch(MatchRef("crex", "M1"))), until=30.0)

    assert running.hot.rows == {}


def test_standing_orders_hold_from_the_first_moment() -> None:
    running = Running(match("M1", "1"), match("M2", "1"), match("M3", "1"))

    async def play() -> None:
        task = asyncio.create_task(running.start())
        await asyncio.sleep(0)
        running.scheduler.unwatch(MatchRef("crex", "M1"))
        running.scheduler.pause(MatchRef("crex", "M2"))
        await asyncio.sleep(30)
        await running.stop(task)

    run(play())

    assert asked_for(running, "M1") == asked_for(running, "M2") == 0
    assert asked_for(running, "M3") > 0
    assert running.row("M2").record.is_on_hold


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_match_asked_for_is_watched_listed_or_not(is_listed: bool) -> None:
    found = match("M1", "1")
    found.is_listed = is_listed
    running = Running(found, match("M2", "1"))

    async def play() -> None:
        task = asyncio.create_task(running.start())
        await asyncio.sleep(4)
        running.scheduler.unwatch(MatchRef("crex", "M1"))
        watcher = await running.scheduler.watch("M1")
        assert watcher is not None
        assert watcher is await running.scheduler.watch("M1")
        found.bowl("4")
        await asyncio.sleep(30)
        await running.stop(task)

    run(play())

    assert running.age("M1", 34.0) < 12.0
    assert len(running.store.current(running.row("M1").record.match_id)) == 2


def busy() -> Running:
    """Return two matches with one slot for both."""
    return Running(match("M1", "1"), match("M2", "1"), slots=1)


def occupy(running: Running) -> None:
    """Let the second match occupy the slot for seconds at a time."""
    running.fetcher.slow["getSV3"] = 5.0
    running.site.matches["M2"].bowl("1")


def watched(running: Running) -> list[str]:
    return [row.record.ref.source_id for row in running.hot.rows.values()]


def test_a_match_that_is_let_go_while_its_new_beginning_waits_does_not_come_back() -> None:
    running = busy()
    epochs: list[int] = []

    def unwatch() -> None:
        epochs.append(running.store.rows[1].epoch)
        running.scheduler.unwatch(MatchRef("crex", "M1"))

    script(
        running,
        (4.0, lambda: running.scheduler.pause(MatchRef("crex", "M1"))),
        (4.5, lambda: occupy(running)),
        (6.5, lambda: running.scheduler.resume(MatchRef("crex", "M1"))),
        (8.0, unwatch),
        until=60.0,
    )

    assert watched(running) == ["M2"]
    assert epochs == [running.store.rows[1].epoch]


def test_a_match_that_is_let_go_while_its_poll_waits_does_not_come_back() -> None:
    running = busy()

    script(
        running,
        (4.0, lambda: occupy(running)),
        (6.5, lambda: running.site.matches["M1"].bowl("6")),
        (8.6, lambda: running.scheduler.unwatch(MatchRef("crex", "M1"))),
        until=60.0,
    )

    assert watched(running) == ["M2"]
    assert len(running.store.history[1]) == 1


def test_a_match_that_was_paused_and_let_go_is_polled_when_it_is_watched_again() -> None:
    running = busy()

    async def play() -> None:
        task = asyncio.create_task(running.start())
        await asyncio.sleep(4)
        running.scheduler.pause(MatchRef("crex", "M1"))
        running.scheduler.unwatch(MatchRef("crex", "M1"))
        await running.scheduler.watch("M1")
        await asyncio.sleep(5)
        await running.stop(task)

    run(play())

    record = running.row("M1").record
    assert (record.phase, record.is_on_hold) == (Phase.ACTIVE, False)
