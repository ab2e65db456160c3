"""Who holds a port or a lock file, asked of the kernel."""

import errno
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from msgspec import Struct

_LOCKS = Path("/proc/locks")


class Holder(Struct, frozen=True):
    """The process that has something we want."""

    name: str
    pid: int | None
    is_ours: bool

    def __str__(self) -> str:
        return f"{self.name}, pid {self.pid}" if self.pid else self.name


def listener_on(host: str, port: int) -> Holder | None:
    """Return who listens where we want to; `None` when nobody does."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            return Holder(f"nobody, and yet {host} cannot be had: {error.strerror}", None, is_ours=False)
        return next(_listeners(port), Holder("a process of another user", None, is_ours=False))
    return None


def lock_holder(lock: Path) -> Holder | None:
    """Return who holds a lock file. The kernel is asked: trying the lock could make a starting scraper stumble."""
    with suppress(OSError):
        inode = lock.stat().st_ino
        for line in _LOCKS.read_text(encoding="ascii").splitlines():
            # 12: FLOCK  ADVISORY  WRITE 4711 08:01:123456 0 EOF
            words = line.split()
            if words[1:2] == ["FLOCK"] and words[5].endswith(f":{inode}"):
                return _holder(int(words[4]))
    return None


def _listeners(port: int) -> Iterator[Holder]:
    with suppress(psutil.Error):
        for connection in psutil.net_connections(kind="tcp"):
            if _is_on(connection.laddr, port) and connection.status == psutil.CONN_LISTEN and connection.pid:
                yield _holder(connection.pid)


def _is_on(address: tuple[Any, ...], port: int) -> bool:
    return bool(address) and address[1] == port


def _holder(pid: int) -> Holder:
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        is_ours = any(Path(word).name == "longstop" for word in process.cmdline())
        return Holder("longstop" if is_ours else process.name(), pid, is_ours)
    return Holder("a process", pid, is_ours=False)
