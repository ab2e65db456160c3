"""A child process that is ours from its birth on, with real processes."""

import asyncio
import errno
import os
import signal
import sys

import pytest

from longstop.supervision.child import Child

PATIENT = "import time; time.sleep(60)"


def start(program: str) -> Child:
    return Child.start((sys.executable, "-c", program), dict(os.environ))


@pytest.fixture(params=["told by the kernel", "without a descriptor for that", "without memory for that"])
def watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOMEM, "no")

    if request.param == "without a descriptor for that":
        monkeypatch.setattr(os, "pidfd_open", refuse)
    elif request.param == "without memory for that":
        monkeypatch.setattr(asyncio.SelectorEventLoop, "add_reader", refuse)


@pytest.mark.usefixtures("watched")
async def test_everybody_who_waits_for_its_end_learns_its_exit_code() -> None:
    child = start("import sys; sys.exit(7)")

    async with asyncio.timeout(20):
        codes = await asyncio.gather(child.wait(), child.wait())

    assert list(codes) == [7, 7]
    assert await child.wait() == 7


@pytest.mark.usefixtures("watched")
async def test_one_that_is_killed_ends_with_the_signal() -> None:
    child = start(PATIENT)

    child.kill_group()

    async with asyncio.timeout(20):
        assert await child.wait() == -signal.SIGKILL


@pytest.mark.usefixtures("watched")
async def test_one_that_is_asked_to_stop_does_and_asking_again_is_no_error() -> None:
    child = start(PATIENT)

    child.ask_to_stop()

    async with asyncio.timeout(20):
        assert await child.wait() == -signal.SIGTERM
    child.ask_to_stop()


async def test_the_number_of_one_that_has_ended_is_never_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    child, killed = start("pass"), []
    async with asyncio.timeout(20):
        await child.wait()
    monkeypatch.setattr(os, "killpg", lambda pid, number: killed.append((pid, number)))

    child.kill_group()

    assert killed == []


async def test_one_that_was_let_go_is_not_watched_any_more() -> None:
    child = start(PATIENT)

    child.let_go()
    child.kill_group()

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(child.wait(), 0.5)
    while child.exit_code is None:  # noqa: ASYNC110 - nobody tells us of it
        await asyncio.sleep(0.01)
