"""A draining resource is closed after its last user, or when its time is over."""

import asyncio

import pytest

from longstop.fetching.browser.tasks_and_close_after_last_use import Draining
from longstop.testing import run_virtual

SECONDS = 30.0


class Resource:
    """Counts how often it was closed."""

    def __init__(self, users: int) -> None:
        self.users = users
        self.closes = 0

    async def close(self) -> None:
        self.closes += 1


def test_an_unused_resource_is_closed_at_once() -> None:
    async def scene() -> None:
        draining, resource = Draining(Resource.close, SECONDS), Resource(users=0)

        draining.add(resource)
        await asyncio.sleep(0)

        assert (resource.closes, draining.all) == (1, ())

    run_virtual(scene())


def test_a_used_resource_is_closed_once_after_its_last_user() -> None:
    async def scene() -> None:
        draining, resource = Draining(Resource.close, SECONDS), Resource(users=2)
        draining.add(resource)
        draining.add(resource)
        seen = []

        for _ in range(2):
            resource.users -= 1
            draining.released(resource)
            await asyncio.sleep(1)
            seen.append(resource.closes)
        await asyncio.sleep(2 * SECONDS)

        assert seen == [0, 1]
        assert resource.closes == 1

    run_virtual(scene())


@pytest.mark.parametrize(("seconds", "closes"), [(SECONDS - 1, 0), (SECONDS + 1, 1)])
def test_a_resource_is_closed_after_its_time_although_it_is_used(seconds: float, closes: int) -> None:
    async def scene() -> None:
        draining, resource = Draining(Resource.close, SECONDS), Resource(users=1)

        draining.add(resource)
        await asyncio.sleep(seconds)

        assert resource.closes == closes
        await draining.aclose()

    run_virtual(scene())


def test_releasing_a_resource_that_is_not_draining_closes_nothing() -> None:
    async def scene() -> None:
        draining, resource = Draining(Resource.close, SECONDS), Resource(users=0)

        draining.released(resource)
        await asyncio.sleep(2 * SECONDS)

        assert resource.closes == 0

    run_virtual(scene())


def test_closing_closes_all_draining_resources() -> None:
    async def scene() -> None:
        draining, resources = Draining(Resource.close, SECONDS), [Resource(users=1), Resource(users=3)]
        for resource in resources:
            draining.add(resource)

        await draining.aclose()

        assert [resource.closes for resource in resources] == [1, 1]

    run_virtual(scene())
