"""The book of commands on a real file: asked once, taken once, answered once, whoever dies."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from longstop.errors import IllegalTransition, UsageError
from longstop.model.command import Command, CommandKind, CommandState, Refusal, Reply, StandingKind
from longstop.storage.sqlite.ops import COMMANDS_KEPT, MAX_COMMANDS_WAITING, CommandBook, Question
from tests.readers import NOW, ManualClock

RECYCLE = Question(kind=CommandKind.RECYCLE, asked_by="tester")
DONE = Reply(state=CommandState.DONE, answer="It is done.")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ops.db"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def book(path: Path, clock: ManualClock) -> Iterator[CommandBook]:
    opened = CommandBook(path, clock)
    yield opened
    opened.close()


def seen(book: CommandBook, command: Command) -> Command:
    found = book.command(command.id)
    assert found is not None
    return found


def test_a_command_is_asked_taken_and_answered(book: CommandBook, clock: ManualClock) -> None:
    asked = book.ask(Question(kind=CommandKind.UNWATCH, argument="crex_1", asked_by="tester"))
    clock.advance(1)
    [taken] = book.take(8)
    clock.advance(1)
    book.answer(taken, Reply(state=CommandState.REFUSED, answer="No.", refusal=Refusal.CONFLICT))

    answered = seen(book, asked)
    assert (asked.state, taken.state, answered.state) == (
        CommandState.PENDING,
        CommandState.TAKEN,
        CommandState.REFUSED,
    )
    assert (answered.kind, answered.argument, answered.asked_by) == (CommandKind.UNWATCH, "crex_1", "tester")
    assert (answered.answer, answered.refusal, answered.is_answered) == ("No.", Refusal.CONFLICT, True)
    assert (answered.asked_at, answered.answered_at) == (NOW, NOW + timedelta(seconds=2))


def test_commands_are_taken_in_their_order_and_no_more_than_wanted(book: CommandBook) -> None:
    asked = [book.ask(RECYCLE).id for _ in range(5)]

    first, second = book.take(3), book.take(3)

    assert [each.id for each in first + second] == asked


def test_two_who_take_at_the_same_time_never_get_the_same_one(path: Path, clock: ManualClock) -> None:
    books = [CommandBook(path, clock) for _ in range(4)]
    asked = {books[0].ask(RECYCLE).id for _ in range(60)}

    def take_all(book: CommandBook) -> list[int]:
        taken: list[int] = []
        while batch := book.take(2):
            taken += [each.id for each in batch]
        return taken

    with ThreadPoolExecutor(len(books)) as threads:
        taken = [number for numbers in threads.map(take_all, books) for number in numbers]

    for book in books:
        book.close()
    assert len(taken) == len(set(taken))
    assert set(taken) == asked


def test_a_command_that_nobody_takes_expires_and_is_not_done_later(book: CommandBook, clock: ManualClock) -> None:
    asked = book.ask(RECYCLE)

    clock.advance(61)

    assert book.take(8) == []
    assert seen(book, asked).state is CommandState.EXPIRED
    assert "start one" in (seen(book, asked).answer or "")


def test_whoever_looks_at_a_command_sees_it_expire(book: CommandBook, clock: ManualClock) -> None:
    asked = book.ask(RECYCLE)

    clock.advance(61)

    assert seen(book, asked).state is CommandState.EXPIRED


@pytest.mark.parametrize("hours", [-1, 1])
def test_no_wall_clock_makes_a_command_expire(path: Path, hours: int) -> None:
    class Jumping(ManualClock):
        def monotonic(self) -> float:
            return 7.0

    clock = Jumping()
    book = CommandBook(path, clock)
    book.ask(RECYCLE)

    clock.advance(hours * 3600)

    assert len(book.take(8)) == 1
    book.close()


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_command_from_before_a_reboot_is_not_done_days_later(
    path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, is_taken: bool
) -> None:
    """The clock that never jumps begins anew with a boot, and comes by the same numbers again."""
    before = CommandBook(path, clock)
    asked = before.ask(RECYCLE)
    if is_taken:
        before.take(8)
    before.close()
    monkeypatch.setattr("longstop.storage.sqlite.ops.this_boot", lambda: "the next one")

    book = CommandBook(path, clock)
    clock.advance(1)

    assert book.take(8) == []
    assert seen(book, asked).state is (CommandState.FAILED if is_taken else CommandState.EXPIRED)
    book.close()


def test_where_a_kernel_does_not_name_its_boots_orders_are_taken_all_the_same(
    path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking, book = CommandBook(path, clock), CommandBook(path, clock)
    asking.ask(RECYCLE)
    monkeypatch.setattr("longstop.storage.sqlite.ops.this_boot", lambda: None)

    taken = book.take(8)

    assert len(taken) == 1
    asking.close()
    book.close()


def test_an_order_never_goes_into_a_file_that_was_moved_aside(path: Path, clock: ManualClock) -> None:
    """An API that runs alone holds the file while a restore puts another one in its place."""
    api = CommandBook(path, clock)
    api.ask(RECYCLE)
    aside = path.parent / "aside"
    aside.mkdir()
    for each in path.parent.glob("ops.db*"):
        each.rename(aside / each.name)
    scraper = CommandBook(path, clock)
    scraper.give_up_taken()

    asked = api.ask(RECYCLE)

    assert [each.id for each in scraper.take(8)] == [asked.id]
    api.close()
    scraper.close()


def test_a_file_that_was_deleted_is_made_again(book: CommandBook, path: Path) -> None:
    book.ask(RECYCLE)
    for each in path.parent.glob("ops.db*"):
        each.unlink()

    asked = book.ask(RECYCLE)

    assert path.exists()
    assert [each.id for each in book.take(8)] == [asked.id]


def test_an_answer_is_given_once(book: CommandBook) -> None:
    book.ask(RECYCLE)
    [taken] = book.take(1)
    book.answer(taken, DONE)

    book.answer(taken, Reply(state=CommandState.FAILED, answer="Or not."))

    assert seen(book, taken).answer == "It is done."


def test_nobody_answers_with_a_state_that_is_no_answer(book: CommandBook) -> None:
    book.ask(RECYCLE)
    [taken] = book.take(1)

    with pytest.raises(IllegalTransition):
        book.answer(taken, Reply(state=CommandState.EXPIRED, answer="Too late."))


def test_a_command_whose_scraper_was_killed_is_never_done_again(path: Path, clock: ManualClock) -> None:
    """A real process takes it and dies by SIGKILL before it answers; its successor gives the command up."""
    book = CommandBook(path, clock)
    asked = book.ask(RECYCLE)
    program = (
        "import os, signal\nfrom pathlib import Path\nfrom longstop.storage.sqlite.ops import CommandBook\n"
        "from tests.readers import ManualClock\n"
        f"assert len(CommandBook(Path({str(path)!r}), ManualClock()).take(8)) == 1\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], check=False, cwd=Path(__file__).parents[2])

    before = seen(book, asked).state
    book.give_up_taken()

    assert killed.returncode == -9
    assert before is CommandState.TAKEN
    assert book.take(8) == []
    assert seen(book, asked).state is CommandState.FAILED
    assert "died while doing this" in (seen(book, asked).answer or "")
    book.close()


def test_the_book_does_not_grow_for_ever(book: CommandBook) -> None:
    first = book.ask(RECYCLE)
    for _ in range(COMMANDS_KEPT + 1):
        book.answer(book.take(1)[0], DONE)
        newest = book.ask(RECYCLE)

    assert book.command(first.id) is None
    assert book.command(newest.id - COMMANDS_KEPT + 1) is not None


def test_only_so_many_wait(book: CommandBook, clock: ManualClock) -> None:
    for _ in range(MAX_COMMANDS_WAITING):
        book.ask(RECYCLE)

    with pytest.raises(UsageError, match="waiting already"):
        book.ask(RECYCLE)
    clock.advance(61)
    assert book.ask(RECYCLE).state is CommandState.PENDING


def test_what_is_too_long_is_refused(book: CommandBook) -> None:
    with pytest.raises(UsageError, match="characters"):
        book.ask(Question(kind=CommandKind.WATCH, argument="x" * 2_001, asked_by="tester"))


def test_a_standing_order_stays_until_it_is_taken_back(path: Path, clock: ManualClock) -> None:
    book = CommandBook(path, clock)
    book.put_order(StandingKind.UNWATCHED, "crex_1", "first")
    book.put_order(StandingKind.UNWATCHED, "crex_1", "second")
    book.put_order(StandingKind.PAUSED_SOURCE, "crex", "first")
    book.close()

    again = CommandBook(path, clock)
    orders = again.standing()
    lifted = [again.lift_order(StandingKind.UNWATCHED, "crex_1") for _ in range(2)]

    assert [(each.kind, each.subject, each.asked_by) for each in orders] == [
        (StandingKind.PAUSED_SOURCE, "crex", "first"),
        (StandingKind.UNWATCHED, "crex_1", "first"),
    ]
    assert lifted == [True, False]
    assert len(again.standing()) == 1
    again.close()
