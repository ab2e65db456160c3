"""The verbs that give orders: what they wait for, and what they say when nobody can tell what came of it."""

import pwd
from collections.abc import Awaitable, Callable, Iterator

import pytest
from msgspec.structs import replace

from longstop.cli.orders import answer_to, asker
from longstop.errors import StorageError
from longstop.model.command import Command, CommandKind, CommandState
from tests.readers import NOW, ManualClock

ASKED = Command(id=7, kind=CommandKind.RECYCLE, argument="", asked_by="tester", asked_at=NOW)
DONE = replace(ASKED, state=CommandState.DONE, answer="It is done.", answered_at=NOW)


class Book:
    """Shows a command as it was written down, or fails; the last look is what all later ones are."""

    def __init__(self, *looks: Command | StorageError | None) -> None:
        self._looks = self._each(looks)

    async def find(self, command_id: int) -> Command | None:
        assert command_id == ASKED.id
        seen = next(self._looks)
        if isinstance(seen, StorageError):
            raise seen
        return seen

    def _each(self, looks: tuple[Command | StorageError | None, ...]) -> Iterator[Command | StorageError | None]:
        yield from looks
        while True:
            yield looks[-1]


def sleeping(clock: ManualClock) -> Callable[[float], Awaitable[None]]:
    async def sleep(seconds: float) -> None:
        clock.advance(seconds)

    return sleep


HELD = StorageError("ops.db: somebody else holds the file")


async def test_a_look_that_fails_is_no_answer() -> None:
    clock = ManualClock()

    reply = await answer_to(ASKED, Book(ASKED, HELD, HELD, DONE).find, clock, sleeping(clock))

    assert (reply.state, reply.answer) == (CommandState.DONE, "It is done.")


@pytest.mark.parametrize(("seen", "why"), [(HELD, f" ({HELD})"), (None, "")], ids=["unreadable", "gone"])
async def test_what_nobody_can_tell_is_not_called_undone(seen: StorageError | None, why: str) -> None:
    clock = ManualClock()

    reply = await answer_to(ASKED, Book(seen).find, clock, sleeping(clock))

    assert reply.state is CommandState.FAILED
    assert reply.answer == f"What came of this cannot be seen{why}: look how things are, and ask again."
    assert 100 <= (clock.now() - NOW).total_seconds() < 120


async def test_whoever_asks_is_told_that_nobody_takes_it(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock()

    await answer_to(ASKED, Book(*[ASKED] * 100, DONE).find, clock, sleeping(clock))

    assert capsys.readouterr().err == "waiting for a scraper to take this …\n"


def test_a_user_without_a_name_may_give_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that was started with a number only."""

    def nobody(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.setattr("os.getuid", lambda: 4711)

    assert asker() == "cli: uid 4711"
