"""The verbs that send commands: what they wait for, and what they print when the outcome is unknown."""

import pwd
from collections.abc import Awaitable, Callable, Iterator

import pytest
from msgspec.structs import replace

from longstop.cli.operator_commands import user_name, wait_for_reply
from longstop.errors import StorageError
from longstop.model.command_and_standing_order import Command, CommandKind, CommandState
from tests.readers import NOW, ManualClock

ASKED = Command(id=7, kind=CommandKind.RECYCLE, argument="", asked_by="tester", asked_at=NOW)
DONE = replace(ASKED, state=CommandState.DONE, answer="It is done.", answered_at=NOW)


class FakeCommands:
    """Returns a command in each of these states, or fails; the last one is repeated."""

    def __init__(self, *reads: Command | StorageError | None) -> None:
        self._reads = self._each(reads)

    async def find(self, command_id: int) -> Command | None:
        assert command_id == ASKED.id
        seen = next(self._reads)
        if isinstance(seen, StorageError):
            raise seen
        return seen

    def _each(self, reads: tuple[Command | StorageError | None, ...]) -> Iterator[Command | StorageError | None]:
        yield from reads
        while True:
            yield reads[-1]


def sleeping(clock: ManualClock) -> Callable[[float], Awaitable[None]]:
    async def sleep(seconds: float) -> None:
        clock.advance(seconds)

    return sleep


LOCKED = StorageError("/data/ops.db: the file is locked")


async def test_a_failed_read_is_not_a_reply() -> None:
    clock = ManualClock()

    reply = await wait_for_reply(ASKED, FakeCommands(ASKED, LOCKED, LOCKED, DONE).find, clock, sleeping(clock))

    assert (reply.state, reply.answer) == (CommandState.DONE, "It is done.")


@pytest.mark.parametrize(("seen", "why"), [(LOCKED, f" ({LOCKED})"), (None, "")], ids=["unreadable", "gone"])
async def test_an_unknown_outcome_is_not_reported_as_undone(seen: StorageError | None, why: str) -> None:
    clock = ManualClock()

    reply = await wait_for_reply(ASKED, FakeCommands(seen).find, clock, sleeping(clock))

    assert reply.state is CommandState.FAILED
    assert reply.answer == f"The outcome of this command is unknown{why}: check `longstop top` before sending it again."
    assert 100 <= (clock.now() - NOW).total_seconds() < 120


async def test_a_command_that_no_scraper_takes_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock()

    await wait_for_reply(ASKED, FakeCommands(*[ASKED] * 100, DONE).find, clock, sleeping(clock))

    assert capsys.readouterr().err == "waiting for a scraper to take this command …\n"


def test_a_user_without_a_name_can_send_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that was started with a number only."""

    def unnamed(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unnamed)
    monkeypatch.setattr("os.getuid", lambda: 4711)

    assert user_name() == "cli: uid 4711"
