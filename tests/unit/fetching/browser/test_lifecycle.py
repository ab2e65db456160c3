"""What leaves is closed when the last who uses it has left, or after a while."""

import asyncio

import pytest

from longstop.fetching.browser.lifecycle import Draining
from longstop.testing import run_virtual

SECONDS = 30.0


class Room:
    """Something that is used."""

    def __init__(self, users: int) -> None:
        self.users = users
        self.ends = 0

    async def end(self) -> None:
        self.ends += 1


def test_what_nobody_uses_is_ended_at_once() -> None:
    async def scene() -> None:
        draining, room = Draining(Room.end, SECONDS), Room(users=0)

        draining.add(room)
        await asyncio.sleep(0)

        assert (room.ends, draining.all) == (1, ())

    run_virtual(scene())


def test_what_is_used_is_ended_with_its_last_user_and_once() -> None:
    async def scene() -> None:
        draining, room = Draining(Room.end, SECONDS), Room(users=2)
        draining.add(room)
        draining.add(room)
        seen = []

        for _ in range(2):
            room.users -= 1
            draining.released(room)
            await asyncio.sleep(1)
            seen.append(room.ends)
        await asyncio.sleep(2 * SECONDS)

        assert seen == [0, 1]
        assert room.ends == 1

    run_virtual(scene())


@pytest.mark.parametrize(("seconds", "ends"), [(SECONDS - 1, 0), (SECONDS + 1, 1)])
def test_who_does_not_leave_has_only_so_long(seconds: float, ends: int) -> None:
    async def scene() -> None:
        draining, room = Draining(Room.end, SECONDS), Room(users=1)

        draining.add(room)
        await asyncio.sleep(seconds)

        assert room.ends == ends
        await draining.aclose()

    run_virtual(scene())


def test_who_leaves_what_stays_ends_nothing() -> None:
    async def scene() -> None:
        draining, room = Draining(Room.end, SECONDS), Room(users=0)

        draining.released(room)
        await asyncio.sleep(2 * SECONDS)

        assert room.ends == 0

    run_virtual(scene())


def test_closing_ends_all_that_leave() -> None:
    async def scene() -> None:
        draining, rooms = Draining(Room.end, SECONDS), [Room(users=1), Room(users=3)]
        for room in rooms:
            draining.add(room)

        await draining.aclose()

        assert [room.ends for room in rooms] == [1, 1]

    run_virtual(scene())
