"""Process trees: stopping and killing them, and reporting when there was nothing to kill."""

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from longstop.process.processes import Identity, find_process, kill
from tests.process_tree import hit, stop_descendants, tree

SLEEP = ("sleep", "60")


@asynccontextmanager
async def running(*argv: str) -> AsyncIterator[tuple[Process, Identity]]:
    process = await asyncio.create_subprocess_exec(*argv)
    try:
        found = find_process(process.pid)
        assert found is not None
        yield process, found.identity
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def test_who_died_before_the_strike_is_not_hit_and_the_next_one_is_waited_for() -> None:
    async with running(*SLEEP) as (first, dead), running(*SLEEP) as (second, living):
        first.kill()
        await first.wait()
        found = iter([dead, None, living])

        assert await hit(lambda: next(found), halt=0, timeout=20)

        assert await second.wait() == -signal.SIGKILL


@pytest.mark.parametrize("halt", [0, 0.01])
async def test_a_process_that_does_not_appear_in_time_is_not_killed(halt: float) -> None:
    async with running(*SLEEP) as (process, dead):
        process.kill()
        await process.wait()

        assert not await hit(lambda: dead, halt=halt, timeout=0.3)


async def test_a_stopped_process_can_continue() -> None:
    async with running(*SLEEP) as (_, identity):
        halting = asyncio.create_task(hit(lambda: identity, halt=1.0, timeout=20))
        async with asyncio.timeout(20):
            while (now := find_process(identity.pid)) is None or now.state != "T":  # noqa: ASYNC110 - the kernel emits no event
                await asyncio.sleep(0.01)

        assert await halting

        after = find_process(identity.pid)
        assert after is not None
        assert after.state != "T"


async def test_descendants_are_stopped_and_the_process_itself_continues() -> None:
    async with running("sh", "-c", "sleep 60 & sleep 60 & wait") as (head, _):
        async with asyncio.timeout(20):
            while len(below := tree(head.pid)[1:]) < 2:  # noqa: ASYNC110 - the kernel emits no event
                await asyncio.sleep(0.01)

        assert stop_descendants(head.pid) == 2

        async with asyncio.timeout(20):
            while [each.state for each in tree(head.pid)[1:]] != ["T", "T"]:  # noqa: ASYNC110 - it stops them soon
                await asyncio.sleep(0.01)
        assert [each.state for each in tree(head.pid)[:1]] == ["S"]
        assert all(kill(each.identity) for each in below)
