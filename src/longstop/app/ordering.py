"""Lets people give a running scraper orders, which the API and the command line store as commands."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from longstop.app.runtime import Runtime
from longstop.watching.commands import CommandLoop, Recycle
from longstop.watching.scheduler import Scheduler


@asynccontextmanager
async def taking_orders(
    runtime: Runtime, schedulers: Mapping[str, Scheduler], recycle: Recycle
) -> AsyncIterator[CommandLoop]:
    """Give the one who takes orders, with what was ordered before in force already."""
    orders = CommandLoop(
        runtime.ops.commands,
        schedulers,
        recycle=recycle,
        memory_check=runtime.memory_check,
        bus=runtime.bus,
        clock=runtime.clock,
    )
    await orders.begin()
    yield orders
