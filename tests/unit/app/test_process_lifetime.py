"""A process runs until a stop signal; no part of it stops alone."""

import asyncio
import os
import signal

import pytest

from longstop.app.process_lifetime import run_until_stopped
from longstop.errors import RestartNeeded, StorageError


async def for_ever() -> None:
    await asyncio.Event().wait()


async def returning() -> None:
    return


async def failing() -> None:
    raise StorageError("the disk is gone")


async def asking_to_stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    await for_ever()


async def test_a_loop_that_returns_is_an_incident_and_not_a_quiet_end() -> None:
    with pytest.raises(RestartNeeded, match="returning returned unexpectedly"):
        await run_until_stopped(for_ever(), returning())


async def test_work_that_fails_ends_the_rest_and_says_why() -> None:
    with pytest.raises(StorageError, match="the disk is gone"):
        await run_until_stopped(for_ever(), failing())


@pytest.mark.req("FR-005")
async def test_a_process_that_is_asked_to_stop_ends_its_work_in_order() -> None:
    ended: list[str] = []

    async def working() -> None:
        try:
            await for_ever()
        finally:
            ended.append("in order")

    await run_until_stopped(working(), asking_to_stop())

    assert ended == ["in order"]


async def test_a_loop_that_ends_by_a_foreign_cancellation_is_reported() -> None:
    async def waiting_for_another() -> None:
        other = asyncio.ensure_future(for_ever())
        asyncio.get_running_loop().call_soon(other.cancel)
        await other

    with pytest.raises(RestartNeeded):
        await run_until_stopped(for_ever(), waiting_for_another())
