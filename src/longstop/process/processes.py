"""Processes as the kernel shows them: identity, tree, memory, and a kill that never hits the wrong process.

A pid can be reused. A pid together with its start time identifies one process for good.

This module parses `stat` and `environ` itself. The supervisor lists all processes every second; `psutil.process_iter`
takes 3.5 times as long for the same fields, and does not report the session.
"""

import ctypes
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
from msgspec import Struct

from longstop.model.scraper_report import Usage

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PR_SET_CHILD_SUBREAPER = 36
ZOMBIE = "Z"
#: Marks a browser as ours. Only its first process shows it: Chromium overwrites the environment of the others.
MARK_VARIABLE = "LONGSTOP_BROWSER_MARK"


class Identity(Struct, frozen=True):
    """One process; a later process with the same pid has another identity."""

    pid: int
    #: Start time in clock ticks since boot.
    started: int


class Process(Struct, frozen=True, kw_only=True):
    identity: Identity
    name: str
    #: One letter: R, S, D, T (stopped), Z (zombie) …
    state: str
    parent: int
    session: int
    cpu_seconds: float
    rss_bytes: int

    @property
    def pid(self) -> int:
        return self.identity.pid


def find_process(pid: int) -> Process | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name may contain spaces and parentheses.
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return Process(
        identity=Identity(pid, int(fields[19])),
        name=name,
        state=fields[0],
        parent=int(fields[1]),
        session=int(fields[3]),
        cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICKS,
        rss_bytes=int(fields[21]) * _PAGE,
    )


def list_processes() -> list[Process]:
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    return [process for pid in pids if (process := find_process(pid)) is not None]


def is_alive(identity: Identity) -> bool:
    """Return whether exactly this process runs; a zombie does not."""
    process = find_process(identity.pid)
    return process is not None and process.identity == identity and process.state != ZOMBIE


def is_running(pid: int) -> bool:
    """Return whether any process with this pid runs; a zombie does not."""
    process = find_process(pid)
    return process is not None and process.state != ZOMBIE


def process_tree(head: Identity, among: Iterable[Process] | None = None) -> list[Process]:
    """Return a session leader, its session and its descendants, without zombies.

    The session finds processes whose parent has died.
    """
    candidates = list(list_processes() if among is None else among)
    leader = next((each for each in candidates if each.pid == head.pid), None)
    if leader is not None and leader.identity != head:
        return []  # the kernel reuses a pid only when its session is empty
    members = {each.pid for each in candidates if each.session == head.pid and each.identity.started >= head.started}
    if leader is not None:
        members |= {head.pid, *_descendants(head.pid, candidates)}
    return [each for each in candidates if each.pid in members and each.state != ZOMBIE]


def measure(processes: Iterable[Process]) -> Usage:
    """Measure the memory of a process tree.

    Only root may read the PSS of a sandboxed process. Such a process counts with its RSS: without it the memory limits
    would miss the very page that leaks.
    """
    measured = list(processes)
    shares = [_pss(each.pid) for each in measured]
    held = [each.rss_bytes if share is None else share for each, share in zip(measured, shares, strict=True)]
    return Usage(
        processes=len(measured),
        rss_bytes=sum(each.rss_bytes for each in measured) if measured else None,
        pss_bytes=None if all(share is None for share in shares) else sum(held),
    )


def kill(identity: Identity) -> bool:
    """Kill exactly this process; return whether it ran."""
    try:
        handle = os.pidfd_open(identity.pid)
    except OSError:
        return False
    try:
        # Checked while the handle is open: the signal goes to the process that was checked, even if the pid is reused.
        if not is_alive(identity):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def environment_variable(pid: int, name: str) -> str | None:
    """Return a variable from a process's initial environment; `None` if it is unset or may not be read."""
    prefix = f"{name}=".encode()
    with suppress(OSError):
        for entry in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
            if entry.startswith(prefix):
                return os.fsdecode(entry[len(prefix) :])
    return None


def browser_mark(pid: int) -> str | None:
    """Return the mark of a browser that longstop started, on this node or another; `None` for other processes."""
    return environment_variable(pid, MARK_VARIABLE)


def with_mark(mark: str, among: Iterable[Process] | None = None) -> list[Process]:
    """Return the processes with this mark, without zombies."""
    candidates = list_processes() if among is None else among
    return [each for each in candidates if each.state != ZOMBIE and browser_mark(each.pid) == mark]


def command_line(pid: int) -> tuple[str, ...]:
    """Return the arguments of a process; empty if they may not be read."""
    with suppress(OSError, psutil.Error):
        return tuple(psutil.Process(pid).cmdline())
    return ()


def become_subreaper() -> bool:
    """Adopt descendants whose parent dies, and reap them here: the init process of a container may never do so."""
    library = ctypes.CDLL(None, use_errno=True)
    return bool(library.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def reap(names: Iterable[str], spared: Iterable[int] = ()) -> int:
    """Reap zombie children with one of these names; return how many there were.

    Skip the `spared` pids: the code that started them waits for them.
    """
    skipped = frozenset(spared)
    wanted = {name[:15] for name in names}  # the kernel truncates names
    return sum(reap_zombie(each) for each in _zombie_children() if each.name in wanted and each.pid not in skipped)


def reap_session(head: Identity, spared: Iterable[int] = ()) -> int:
    """Reap the zombie children that this process adopted from a dead session leader, whatever their names."""
    skipped = frozenset(spared)
    adopted = (each for each in _zombie_children() if each.identity.started >= head.started)
    return sum(reap_zombie(each) for each in adopted if each.session == head.pid and each.pid not in skipped)


def reap_zombie(zombie: Process) -> bool:
    """Remove a zombie child from the process table; return whether it was there."""
    with suppress(ChildProcessError):
        return os.waitpid(zombie.pid, os.WNOHANG)[0] == zombie.pid
    return False


def _zombie_children() -> list[Process]:
    return [each for each in list_processes() if each.parent == os.getpid() and each.state == ZOMBIE]


def _descendants(pid: int, candidates: Iterable[Process]) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for each in candidates:
        children.setdefault(each.parent, []).append(each.pid)
    pending = [pid]
    while pending:
        for child in children.get(pending.pop(), ()):
            yield child
            pending.append(child)


def _pss(pid: int) -> int | None:
    with suppress(OSError, psutil.Error):
        return psutil.Process(pid).memory_full_info().pss
    return None
