"""Processes as the kernel shows them: who they are, what they hold, and how they are ended for certain.

A pid alone says nothing, since it is given again; a pid and the moment of its start name one process for ever.
"""

import ctypes
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from longstop.fetching.browser.base import Usage

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PR_SET_CHILD_SUBREAPER = 36
#: The variable that marks a browser as ours. Only a tree's first process shows it: Chromium's others write over it.
MARK_VARIABLE = "LONGSTOP_BROWSER_MARK"


class Identity(Struct, frozen=True):
    """One process, and no later one with the same pid."""

    pid: int
    #: Clock ticks from the machine's start to its own.
    started: int


class Process(Struct, frozen=True, kw_only=True):
    """What the kernel says of a process at one moment."""

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


def look(pid: int) -> Process | None:
    """Return what the kernel says of a pid now."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    words = rest.split()
    return Process(
        identity=Identity(pid, int(words[19])),
        name=name,
        state=words[0],
        parent=int(words[1]),
        session=int(words[3]),
        cpu_seconds=(int(words[11]) + int(words[12])) / _TICKS,
        rss_bytes=int(words[21]) * _PAGE,
    )


def everybody() -> list[Process]:
    """Return all processes of the machine."""
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    return [process for pid in pids if (process := look(pid)) is not None]


def is_alive(identity: Identity) -> bool:
    """Return whether just this process still runs; a zombie does not."""
    process = look(identity.pid)
    return process is not None and process.identity == identity and process.state != "Z"


def family(head: Identity, among: Iterable[Process] | None = None) -> list[Process]:
    """Return a session leader and all that it has started, whoever has adopted them since; without zombies."""
    people = list(everybody() if among is None else among)
    leader = next((each for each in people if each.pid == head.pid), None)
    if leader is not None and leader.identity != head:
        return []  # the kernel gives a pid again only when nobody of its session is left
    members = {each.pid for each in people if each.session == head.pid and each.identity.started >= head.started}
    if leader is not None:
        members |= {head.pid, *_descendants(head.pid, people)}
    return [each for each in people if each.pid in members and each.state != "Z"]


def usage(processes: Iterable[Process]) -> Usage:
    """Measure a family.

    A process in a sandbox shows its share to root alone. It counts with all that it holds: without it the limits would
    not see the very page that leaks.
    """
    people = list(processes)
    shares = [_pss(each.pid) for each in people]
    held = [each.rss_bytes if share is None else share for each, share in zip(people, shares, strict=True)]
    return Usage(
        processes=len(people),
        rss_bytes=sum(each.rss_bytes for each in people) if people else None,
        pss_bytes=None if all(share is None for share in shares) else sum(held),
        cpu_seconds=sum(each.cpu_seconds for each in people),
    )


def kill(identity: Identity) -> bool:
    """End just this process; return whether there was one to end."""
    try:
        handle = os.pidfd_open(identity.pid)
    except OSError:
        return False
    try:
        # Polled at while we hold the handle: from here on the pid cannot become somebody else.
        process = look(identity.pid)
        if process is None or process.identity != identity or process.state == "Z":
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def variable_of(pid: int, name: str) -> str | None:
    """Return what a process was given in its environment; `None` for nothing, or when it is not ours to look at."""
    wanted = f"{name}=".encode()
    with suppress(OSError):
        for entry in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
            if entry.startswith(wanted):
                return os.fsdecode(entry[len(wanted) :])
    return None


def mark_of(pid: int) -> str | None:
    """Return the mark of a browser of ours, or of another node's; `None` for everybody else."""
    return variable_of(pid, MARK_VARIABLE)


def marked(mark: str, among: Iterable[Process] | None = None) -> list[Process]:
    """Return the processes that carry a mark, dead ones excepted."""
    people = everybody() if among is None else among
    return [each for each in people if each.state != "Z" and mark_of(each.pid) == mark]


def arguments_of(pid: int) -> tuple[str, ...]:
    with suppress(OSError):
        text = (_PROC / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace")
        # A process that has renamed itself keeps one long text.
        return tuple(text.rstrip("\0").replace("\0", " ").split(" "))
    return ()


def become_subreaper() -> bool:
    """Adopt processes whose parent dies, so that none becomes a zombie of a first process that never waits."""
    library = ctypes.CDLL(None, use_errno=True)
    return bool(library.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def reap(names: Iterable[str], spared: Iterable[int] = ()) -> int:
    """Wait for dead children with one of these names; return how many there were.

    Others, and those that are spared, are left alone: whoever started them waits for them.
    """
    others = frozenset(spared)
    wanted = {name[:15] for name in names}  # the kernel keeps no more of a name
    return sum(wait_for(each) for each in _dead_children() if each.name in wanted and each.pid not in others)


def reap_session(head: Identity, spared: Iterable[int] = ()) -> int:
    """Wait for the dead whom a session leader's death has made our children; some have renamed themselves."""
    others = frozenset(spared)
    people = (each for each in _dead_children() if each.identity.started >= head.started)
    return sum(wait_for(each) for each in people if each.session == head.pid and each.pid not in others)


def wait_for(dead: Process) -> bool:
    """Take a dead child out of the table of processes; return whether it was there, and ours to wait for."""
    with suppress(ChildProcessError):
        return os.waitpid(dead.pid, os.WNOHANG)[0] == dead.pid
    return False


def _dead_children() -> list[Process]:
    return [each for each in everybody() if each.parent == os.getpid() and each.state == "Z"]


def _descendants(pid: int, people: Iterable[Process]) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for each in people:
        children.setdefault(each.parent, []).append(each.pid)
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            yield child
            waiting.append(child)


def _pss(pid: int) -> int | None:
    with suppress(OSError, ValueError):
        for line in (_PROC / str(pid) / "smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return None
