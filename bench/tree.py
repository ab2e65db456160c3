"""A process and everything below it: who they are, what they hold, what they have spent."""

from contextlib import suppress

import psutil

from longstop.fetching.browser.base import Usage
from longstop.process.processes import Process, find_process, measure


def tree(head: int) -> list[Process]:
    """Return a process and all below it, as they are now; nothing when it has ended."""
    with suppress(psutil.NoSuchProcess):
        below = psutil.Process(head).children(recursive=True)
        return [found for pid in (head, *(child.pid for child in below)) if (found := find_process(pid))]
    return []


def held(head: int) -> Usage:
    """Return what a tree holds now."""
    return measure(tree(head))


def spent(head: int) -> float:
    """Return the processor seconds of a tree so far; of those that have ended, their parents keep the account."""
    return sum(_spent(each.pid) for each in tree(head))


def _spent(pid: int) -> float:
    with suppress(psutil.Error):
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0
