"""How a process is struck: whoever is between two lives is waited for, and only what was hit counts."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

import psutil

from bench.tree import tree
from longstop.process.processes import Identity, is_alive, kill

LOOK_EVERY = 0.1


async def hit(find: Callable[[], Identity | None], *, halt: float, within: float) -> bool:
    """Kill whoever is found, or halt it for some seconds; return whether anybody was hit in time."""
    deadline = monotonic() + within
    while monotonic() < deadline:
        found = await asyncio.to_thread(find)
        if found is not None and (await _halt(found, halt) if halt else kill(found)):
            return True
        await asyncio.sleep(LOOK_EVERY)
    return False


def halt_all_below(head: int) -> int:
    """Halt what a process has started, for good; return how many there were. Only SIGKILL reaches them from now on."""
    below = [each.identity for each in tree(head) if each.pid != head]
    return sum(_halted(each) is not None for each in below)


async def _halt(identity: Identity, seconds: float) -> bool:
    """Let a process stand still for a while; return whether it did. Whoever ends it meanwhile has noticed."""
    if (process := _halted(identity)) is None:
        return False
    await asyncio.sleep(seconds)
    with suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGCONT)
    return True


def _halted(identity: Identity) -> psutil.Process | None:
    if not is_alive(identity):
        return None
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(identity.pid)
        process.send_signal(signal.SIGSTOP)
        return process
    return None
