"""Finds the process that uses a port or holds a lock file."""

import errno
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
from msgspec import Struct

from longstop.errors import SettingsError
from longstop.settings import CONFIG_VARIABLE, read_settings

#: The verbs that use a data directory until they are stopped.
_SERVING_VERBS = frozenset({"up", "scraper", "api"})
_DATA_VARIABLE = "LONGSTOP_DATA"
_LOCKS = Path("/proc/locks")


class Holder(Struct, frozen=True):
    name: str
    pid: int | None = None
    #: Its data directory; `None` if it is not Longstop, or unknown.
    data: Path | None = None
    #: Whether a demo started it, which stops it at its end.
    is_demo: bool = False

    def __str__(self) -> str:
        process = f"{self.name}, pid {self.pid}" if self.pid else self.name
        return f"{process}, data directory {self.data}" if self.data else process


def listener_on(host: str, port: int) -> Holder | None:
    """Return the process that listens on a port; `None` if the port is free."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            return Holder(f"no process, but {host} is not usable: {error.strerror}")
        return next(_listeners(port), Holder("a process of another user"))
    return None


def lock_holder(lock: Path) -> Holder | None:
    """Return the process that holds a lock file. Reads /proc: trying the lock could fail a starting scraper."""
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
            is_here = connection.laddr and connection.laddr.port == port
            if is_here and connection.status == psutil.CONN_LISTEN and connection.pid:
                yield _holder(connection.pid)


def _holder(pid: int) -> Holder:
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        words = process.cmdline()
        if not _is_longstop(words):
            return Holder(process.name(), pid)
        data = _data_of(process, words) if _SERVING_VERBS.intersection(words) else None
        parents = [parent.cmdline() for parent in process.parents()]
        return Holder("longstop", pid, data, any("demo" in each and _is_longstop(each) for each in parents))
    return Holder("a process", pid)


def _is_longstop(words: list[str]) -> bool:
    return any(Path(word).name == "longstop" for word in words)


def _data_of(process: psutil.Process, words: list[str]) -> Path | None:
    """Return the data directory of a Longstop process: from its option, environment or settings file."""
    cwd, environ = Path(process.cwd()), process.environ()
    given = {name: environ[name] for name in (CONFIG_VARIABLE, _DATA_VARIABLE) if name in environ}
    if CONFIG_VARIABLE in given:
        given[CONFIG_VARIABLE] = str(cwd / given[CONFIG_VARIABLE])
    option = _option(words, "--data")
    try:
        return (cwd / (option or read_settings(given).data)).resolve()
    except SettingsError:
        return None


def _option(words: list[str], name: str) -> str | None:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == name or word.startswith(f"{name}="):
            return following if word == name else word.partition("=")[2]
    return None
