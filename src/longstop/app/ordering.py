"""Lets people give a running scraper orders: through `ops.db`, where the API and the command line write them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from longstop.clock import Clock
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.ops import CommandBook
from longstop.supervision.room import Room
from longstop.telemetry.bus import Bus
from longstop.watching.orders import Orders, Recycle
from longstop.watching.scheduler import Scheduler


@asynccontextmanager
async def taking_orders(
    directory: DataDirectory,
    schedulers: Mapping[str, Scheduler],
    *,
    recycle: Recycle,
    room: Room,
    bus: Bus,
    clock: Clock,
) -> AsyncIterator[Orders]:
    """Give the one who takes orders, with what was ordered before in force already."""
    book = CommandBook(directory.ops_db, clock)
    orders = Orders(book, schedulers, recycle=recycle, room=room, bus=bus, clock=clock)
    await orders.begin()
    try:
        yield orders
    finally:
        await asyncio.to_thread(book.close)
