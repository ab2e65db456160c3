"""Operator commands: a real file between the sender and a scheduler on a small site."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from longstop.clock import SystemClock
from longstop.errors import PageNotFound, StorageError, StoreDamaged
from longstop.model.command_and_standing_order import (
    Command,
    CommandKind,
    CommandState,
    Refusal,
    StandingKind,
    StandingOrder,
)
from longstop.model.match import Phase
from longstop.storage.sqlite.operations_tables import SqliteCommands
from longstop.supervision.memory_for_new_matches import MemoryCheck
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import CommandAnswered, PollPostponed, RecordsFailed, TaskFailed
from longstop.watching.commands import CommandLoop
from longstop.watching.poll_intervals_and_frozen_pages import Cadence, WatchRules
from tests.chaos.stored_directory import copy_database, remove_database
from tests.crex_site import OUT_OF_ORDER
from tests.memory import MemorySink
from tests.unit.watching.running import Running, match

PAGE = "https://crex.com/cricket-live-score/a-vs-b-match-updates-{}"


class Desk:
    """Everything between a command and its answer."""

    def __init__(self, path: Path) -> None:
        unlisted = match("M9", "1")
        unlisted.is_listed = False
        self.running = Running(match("M1", "1"), match("M2", "1"), unlisted)
        self.running.rules = WatchRules(cadence=Cadence(live=0.1, busy=0.1, discovery=0.1))
        self.path = path
        self.commands = SqliteCommands(path, SystemClock())
        self.available_bytes = 1 << 40
        self.sink = MemorySink()
        self.recycled: list[str] = []
        #: What all recycles but the first meet.
        self.error: Exception = StorageError("the second one fails")
        self.orders: CommandLoop

    async def start(self) -> None:
        watching = asyncio.create_task(self.running.start())
        await eventually(lambda: len(self.running.hot.rows) == 2)
        schedulers = {"crex": self.running.scheduler}
        self.orders = CommandLoop(
            self.commands,
            schedulers,
            recycle_browsers=self.recycle,
            memory_check=MemoryCheck(500 << 20, lambda: self.available_bytes),
            bus=Bus([self.sink]),
            clock=SystemClock(),
        )
        await self.orders.begin()
        try:
            await self.orders.run()
        finally:
            await self.running.stop(watching)

    def recycle(self, why: str, source: str) -> None:
        if self.recycled:
            raise self.error
        self.recycled.append(why)

    async def ask(self, kind: CommandKind, argument: str = "") -> Command:
        """Ask, and return the answer."""
        asked = await self.commands.place(kind, argument, "tester")
        async with asyncio.timeout(20):
            while not (answered := await self.seen(asked.id)).is_answered:  # noqa: ASYNC110 -- the file sets no event
                await asyncio.sleep(0.02)
        return answered

    async def seen(self, command_id: int) -> Command:
        found = await self.commands.find(command_id)
        assert found is not None
        return found


async def eventually(condition: object) -> None:
    assert callable(condition)
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - it happens in threads and other tasks
            await asyncio.sleep(0.02)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path / "ops.db")
    task = asyncio.create_task(made.start())
    await eventually(lambda: hasattr(made, "orders"))
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await made.commands.aclose()


async def test_a_match_is_watched_by_the_address_of_its_page(desk: Desk) -> None:
    answer = await desk.ask(CommandKind.WATCH, PAGE.format("M9"))
    again = await desk.ask(CommandKind.WATCH, PAGE.format("M9"))

    assert (answer.state, answer.answer) == (CommandState.DONE, "Watching crex_M9 as match 3.")
    assert (again.state, again.answer) == (CommandState.DONE, "crex_M9 is already watched, as match 3.")
    await eventually(lambda: desk.running.row("M9").record.phase is Phase.ACTIVE)


async def test_a_source_that_exits_fails_the_command_and_not_the_scraper(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk.running.scheduler.client.source, "match_of", sys.exit)

    answer = await desk.ask(CommandKind.WATCH, PAGE.format("M9"))

    assert (answer.state, answer.answer) == (CommandState.FAILED, "Internal error; see task.failed in the log.")
    assert len(desk.sink.named(TaskFailed.name)) == 1


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("https://example.org/x", "This URL of example.org is not a supported match URL"),
        ("https://crex.com/live-matches", "This URL of crex.com is not a supported match URL"),
        ("M1", "This is not a supported match URL"),
    ],
)
async def test_an_address_that_leads_to_no_match_is_refused(desk: Desk, url: str, sentence: str) -> None:
    answer = await desk.ask(CommandKind.WATCH, url)

    assert (answer.state, answer.refusal) == (CommandState.REFUSED, Refusal.NOT_KNOWN)
    assert sentence in (answer.answer or "")
    assert len(desk.running.store.rows) == 2


async def test_a_match_that_its_site_does_not_have_is_refused(desk: Desk) -> None:
    desk.running.site.faults["getSV3"] = PageNotFound("404")

    answer = await desk.ask(CommandKind.WATCH, PAGE.format("M404"))

    assert (answer.state, answer.refusal) == (CommandState.REFUSED, Refusal.NOT_KNOWN)
    assert answer.answer == "crex has no match M404."
    assert len(desk.running.store.rows) == 2


async def test_a_match_is_watched_also_while_its_site_is_out_of_order(desk: Desk) -> None:
    desk.running.site.faults["getSV3"] = OUT_OF_ORDER

    answer = await desk.ask(CommandKind.WATCH, PAGE.format("M9"))
    desk.running.site.faults.clear()

    assert "Watching crex_M9 as match 3. The first poll failed (SourceFailed)" in (answer.answer or "")
    await eventually(lambda: desk.running.row("M9").record.phase is Phase.ACTIVE)


async def test_a_refusal_names_the_sites_that_are_known(desk: Desk) -> None:
    answer = await desk.ask(CommandKind.WATCH, "https://example.org/x")

    assert "Supported sites: crex (crex.com, www.crex.com)." in (answer.answer or "")


@pytest.mark.req("EC6")
async def test_without_memory_no_watch_begins(desk: Desk) -> None:
    desk.available_bytes = 100 << 20

    answer = await desk.ask(CommandKind.WATCH, PAGE.format("M9"))

    assert (answer.state, answer.refusal) == (CommandState.REFUSED, Refusal.MEMORY)
    assert (answer.answer or "").startswith("Insufficient memory resources")
    assert desk.running.scheduler.find("M9") is None


async def test_a_match_that_is_let_go_stays_away_until_it_is_watched_again(desk: Desk) -> None:
    gone = await desk.ask(CommandKind.UNWATCH, "crex_M1")
    orders = await desk.commands.standing()
    await asyncio.sleep(0.5)
    is_gone = desk.running.scheduler.find("M1") is None
    back = await desk.ask(CommandKind.WATCH, PAGE.format("M1"))

    assert gone.answer == "Stopped watching crex_M1."
    assert [(each.kind, each.subject) for each in orders] == [(StandingKind.UNWATCHED, "crex_M1")]
    assert is_gone
    assert back.state is CommandState.DONE
    assert await desk.commands.standing() == []
    assert desk.running.scheduler.find("M1") is not None


async def test_a_match_is_paused_and_resumed(desk: Desk) -> None:
    paused = await desk.ask(CommandKind.PAUSE_MATCH, "crex_M1")
    stored = desk.running.store.rows[1].phase
    orders = [each.kind for each in await desk.commands.standing()]
    again = await desk.ask(CommandKind.PAUSE_MATCH, "crex_M1")
    resumed = await desk.ask(CommandKind.RESUME_MATCH, "crex_M1")

    assert (paused.state, resumed.state) == (CommandState.DONE, CommandState.DONE)
    assert stored is Phase.PAUSED
    assert (again.state, again.answer) == (CommandState.DONE, "crex_M1 was already paused.")
    assert (orders, await desk.commands.standing()) == ([StandingKind.PAUSED_MATCH], [])
    await eventually(lambda: desk.running.store.rows[1].phase is Phase.ACTIVE)


async def test_a_source_is_paused_and_resumed(desk: Desk) -> None:
    paused = await desk.ask(CommandKind.PAUSE_SOURCE, "crex")
    again = await desk.ask(CommandKind.PAUSE_SOURCE, "crex")
    refused = await desk.ask(CommandKind.WATCH, PAGE.format("M9"))
    desk.running.fetcher.requests.clear()
    await asyncio.sleep(0.5)
    asked = len(desk.running.fetcher.requests)
    resumed = await desk.ask(CommandKind.RESUME_SOURCE, "crex")

    assert (paused.state, resumed.state) == (CommandState.DONE, CommandState.DONE)
    assert (refused.state, refused.answer) == (CommandState.REFUSED, "crex is paused: resume it first.")
    assert again.answer == "crex was already paused."
    assert asked == 0
    await eventually(lambda: desk.running.row("M1").record.phase is Phase.ACTIVE)


@pytest.mark.parametrize(
    ("kind", "argument", "refusal"),
    [
        (CommandKind.PAUSE_MATCH, "crex_M9", Refusal.CONFLICT),
        (CommandKind.RESUME_MATCH, "crex_M9", Refusal.CONFLICT),
        (CommandKind.UNWATCH, "other_1", Refusal.NOT_KNOWN),
        (CommandKind.PAUSE_SOURCE, "other", Refusal.NOT_KNOWN),
        (CommandKind.RESUME_SOURCE, "other", Refusal.NOT_KNOWN),
    ],
)
async def test_what_cannot_be_done_is_refused(desk: Desk, kind: CommandKind, argument: str, refusal: Refusal) -> None:
    answer = await desk.ask(kind, argument)

    assert (answer.state, answer.refusal) == (CommandState.REFUSED, refusal)
    assert await desk.commands.standing() == []


@pytest.mark.req("EC1")
async def test_a_recycle_says_whose_circuit_was_open(desk: Desk) -> None:
    desk.running.site.faults["getSV3"] = b"{}"
    desk.running.site.matches["M1"].bowl("1")
    await eventually(lambda: desk.running.row("M1").record.phase is Phase.PAUSED)
    desk.running.site.faults.clear()

    answer = await desk.ask(CommandKind.RECYCLE)

    assert answer.answer == (
        "Restarted connections, browsers and polling of crex. A circuit was open for crex: it is tried again now."
    )
    await eventually(lambda: desk.running.row("M1").record.phase is Phase.ACTIVE)


async def test_what_fails_says_so_and_the_next_one_is_done(desk: Desk) -> None:
    first, second = await desk.ask(CommandKind.RECYCLE), await desk.ask(CommandKind.RECYCLE)
    third = await desk.ask(CommandKind.RESUME_SOURCE, "crex")

    assert [each.state for each in (first, second, third)] == [
        CommandState.DONE,
        CommandState.FAILED,
        CommandState.DONE,
    ]
    assert desk.recycled == ["asked for by tester"]
    assert first.answer == "Restarted connections, browsers and polling of crex."
    assert "the second one fails" in (second.answer or "")
    await eventually(lambda: len(desk.sink.named(CommandAnswered.name)) == 3)
    reported = [event for event in desk.sink.named(CommandAnswered.name) if isinstance(event, CommandAnswered)]
    assert [event.state for event in reported] == ["done", "failed", "done"]


@pytest.mark.parametrize(
    ("error", "reported", "sentence"),
    [
        (KeyError("x"), TaskFailed, "Internal error; see task.failed in the log."),
        (
            RuntimeError("can't start new thread"),
            PollPostponed,
            "Command failed: out of processes.",
        ),
    ],
    ids=["a bug", "exhausted"],
)
async def test_a_command_without_resources_is_distinguished_from_a_bug(
    desk: Desk, error: Exception, reported: type, sentence: str
) -> None:
    desk.error = error
    await desk.ask(CommandKind.RECYCLE)
    answer = await desk.ask(CommandKind.RECYCLE)

    assert (answer.state, answer.answer) == (CommandState.FAILED, sentence)
    assert [type(event) for event in desk.sink.events if isinstance(event, TaskFailed | PollPostponed)] == [reported]


async def test_without_readable_orders_nothing_begins(tmp_path: Path) -> None:
    path = tmp_path / "ops.db"
    path.write_bytes(b"this is no database" * 1_000)
    desk = Desk(path)

    with pytest.raises(StoreDamaged, match=r"ops\.db: not an SQLite file"):
        await desk.start()

    assert not any(desk.sink.named(TaskFailed.name))
    await desk.commands.aclose()


async def test_orders_that_are_not_read_in_time_stop_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longstop.watching.commands.READ_WITHIN_SECONDS", 0.05)
    desk = Desk(tmp_path / "ops.db")

    async def hang() -> list[StandingOrder]:
        await asyncio.sleep(60)
        return []

    monkeypatch.setattr(desk.commands, "standing", hang)

    with pytest.raises(StorageError, match=r"no answer within 0 s.*nothing is polled: check the disk"):
        await desk.start()

    await desk.commands.aclose()


async def test_a_file_that_is_damaged_later_is_reported_once_and_the_watching_goes_on(desk: Desk) -> None:
    await desk.ask(CommandKind.PAUSE_MATCH, "crex_M1")
    remove_database(desk.path)
    desk.path.write_bytes(b"this is no database" * 1_000)

    await asyncio.sleep(1.6)
    reported = len(desk.sink.named(RecordsFailed.name))
    desk.path.unlink()
    answer = await desk.ask(CommandKind.RESUME_SOURCE, "crex")

    assert reported == 1
    assert desk.running.row("M2").record.phase is Phase.ACTIVE
    assert desk.running.row("M1").record.is_on_hold
    assert answer.state is CommandState.DONE


async def test_orders_in_force_are_stored_again_when_an_older_file_takes_their_place(desk: Desk) -> None:
    await desk.ask(CommandKind.RECYCLE)
    copy_database(desk.path, desk.path.with_name("older"))
    await desk.ask(CommandKind.PAUSE_MATCH, "crex_M1")
    await desk.ask(CommandKind.UNWATCH, "crex_M2")
    remove_database(desk.path)
    desk.path.with_name("older").rename(desk.path)

    async with asyncio.timeout(20):
        while len(stored := await desk.commands.standing()) < 2:  # noqa: ASYNC110 -- the file sets no event
            await asyncio.sleep(0.05)

    assert {(order.kind, order.subject, order.asked_by) for order in stored} == {
        (StandingKind.PAUSED_MATCH, "crex_M1", "tester"),
        (StandingKind.UNWATCHED, "crex_M2", "tester"),
    }


async def test_an_order_that_was_lifted_is_not_stored_again(desk: Desk) -> None:
    await desk.ask(CommandKind.PAUSE_MATCH, "crex_M1")
    await desk.ask(CommandKind.RESUME_MATCH, "crex_M1")

    await asyncio.sleep(1.6)

    assert await desk.commands.standing() == []


async def test_what_was_ordered_before_holds_after_a_restart(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "ops.db")
    await desk.commands.put_order(StandingKind.UNWATCHED, "crex_M1", "tester")
    await desk.commands.put_order(StandingKind.PAUSED_MATCH, "crex_M2", "tester")
    task = asyncio.create_task(desk.start())

    await eventually(lambda: hasattr(desk, "orders") and desk.running.scheduler.find("M1") is None)

    assert desk.running.row("M2").record.is_on_hold
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await desk.commands.aclose()


async def test_the_last_word_counts_however_long_the_one_before_takes(desk: Desk) -> None:
    desk.running.fetcher.slow["getSV3"] = 1.5  # the first poll of the match that is to be watched takes long

    watch = await desk.commands.place(CommandKind.WATCH, PAGE.format("M9"), "tester")
    unwatch = await desk.ask(CommandKind.UNWATCH, "crex_M9")

    assert (await desk.seen(watch.id)).state is CommandState.DONE
    assert unwatch.answer == "Stopped watching crex_M9."
    assert [each.subject for each in await desk.commands.standing()] == ["crex_M9"]
    assert desk.running.scheduler.find("M9") is None


async def test_a_slow_command_for_one_source_delays_no_command_for_another(desk: Desk) -> None:
    desk.running.fetcher.slow["getSV3"] = 5.0  # the first poll of the match that is to be watched takes long

    watch = await desk.commands.place(CommandKind.WATCH, PAGE.format("M9"), "tester")
    other = await desk.ask(CommandKind.PAUSE_SOURCE, "other")

    assert other.is_answered
    assert not (await desk.seen(watch.id)).is_answered


async def test_a_match_that_was_paused_and_let_go_is_read_when_it_is_watched_again(desk: Desk) -> None:
    await desk.ask(CommandKind.PAUSE_MATCH, "crex_M1")
    again = await desk.ask(CommandKind.WATCH, PAGE.format("M1"))
    await desk.ask(CommandKind.UNWATCH, "crex_M1")
    back = await desk.ask(CommandKind.WATCH, PAGE.format("M1"))

    assert again.answer == "crex_M1 is already watched, as match 1. It is paused; resume it to continue."
    assert back.answer == "Watching crex_M1 as match 1."
    assert await desk.commands.standing() == []
    await eventually(lambda: desk.running.row("M1").record.phase is Phase.ACTIVE)


async def test_exhausted_threads_stop_neither_commands_nor_polling(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_free: int) -> list[Command]:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as exhausted:
        exhausted.setattr(desk.commands, "take", refuse)
        await eventually(lambda: len(desk.sink.named(PollPostponed.name)) > 1)  # as long as it lasts

    answer = await desk.ask(CommandKind.PAUSE_SOURCE, "crex")

    assert answer.state is CommandState.DONE
    assert not desk.sink.named(TaskFailed.name)


async def test_a_bug_in_reading_commands_is_reported_once_until_it_is_fixed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes = 0

    async def fail(_free: int) -> list[Command]:
        nonlocal takes
        takes += 1
        raise KeyError("x")

    with monkeypatch.context() as broken:
        broken.setattr(desk.commands, "take", fail)
        await eventually(lambda: takes >= 3)

    answer = await desk.ask(CommandKind.PAUSE_SOURCE, "crex")

    assert answer.state is CommandState.DONE
    assert len(desk.sink.named(TaskFailed.name)) == 1
