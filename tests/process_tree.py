"""Process trees in tests and benchmarks: find, measure, kill and stop them."""

import asyncio
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from time import monotonic

import psutil

from longstop.model.scraper_report import Usage
from longstop.process.processes import Identity, Process, find_process, is_alive, kill, measure

POLL_SECONDS = 0.1


class Role(StrEnum):
    """The role of a process in a browser."""

    BROWSER = "browser"
    RENDERER = "renderer"
    NETWORK = "network"
    DRIVER = "driver"


def role_of(arguments: Iterable[str]) -> Role | None:
    """Return the role of a browser's process by its command line; `None` for roles that are never killed."""
    line = " ".join(arguments)
    if "run-driver" in line:
        return Role.DRIVER
    if "NetworkService" in line:
        return Role.NETWORK
    if "--type=renderer" in line:
        return Role.RENDERER
    return None if "--type=" in line or "crashpad" in line or "chrom" not in line else Role.BROWSER


def tree(head: int) -> list[Process]:
    """Return a process and its descendants; empty when it has ended."""
    with suppress(psutil.NoSuchProcess):
        below = psutil.Process(head).children(recursive=True)
        return [found for pid in (head, *(child.pid for child in below)) if (found := find_process(pid))]
    return []


def tree_usage(head: int) -> Usage:
    """Return the memory and the number of processes of a tree."""
    return measure(tree(head))


def tree_cpu_seconds(head: int) -> float:
    """Return the processor time of a tree, including ended processes that their parents have waited for."""
    return sum(_cpu_seconds(each.pid) for each in tree(head))


def _cpu_seconds(pid: int) -> float:
    with suppress(psutil.Error):
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0


def writes(pid: int, file: Path) -> bool:
    """Return whether a process has a file open for writing."""
    with suppress(psutil.Error):
        return any(each.path == str(file) and each.mode != "r" for each in psutil.Process(pid).open_files())
    return False


async def hit(find: Callable[[], Identity | None], *, halt: float, timeout: float) -> bool:
    """Kill the process that `find` returns, or stop it for `halt` seconds; return whether one was hit in time."""
    deadline = monotonic() + timeout
    while monotonic() < deadline:
        found = await asyncio.to_thread(find)
        if found is not None and (await _halt(found, halt) if halt else kill(found)):
            return True
        await asyncio.sleep(POLL_SECONDS)
    return False


def stop_descendants(head: int) -> int:
    """Send SIGSTOP to all descendants of a process, and return their number."""
    below = [each.identity for each in tree(head) if each.pid != head]
    return sum(_stopped(each) is not None for each in below)


async def _halt(identity: Identity, seconds: float) -> bool:
    """Stop a process for a while; return whether it existed. It may be killed meanwhile."""
    if (process := _stopped(identity)) is None:
        return False
    await asyncio.sleep(seconds)
    with suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGCONT)
    return True


def _stopped(identity: Identity) -> psutil.Process | None:
    if not is_alive(identity):
        return None
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(identity.pid)
        process.send_signal(signal.SIGSTOP)
        return process
    return None
