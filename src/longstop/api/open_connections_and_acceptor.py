"""All connections of the API: which are admitted, which make room, and which are closed.

A hostile client must not keep others out: see "A hostile client" in `docs/explanation/resilience.md`.
"""

import asyncio
import errno
import os
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import Any, Protocol, TypeVar

from longstop.api.limited_connection import RESERVE, ConnectionLimits, LimitedConnection
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import ConnectionsRefused

#: Answers that clients have not read yet; beyond it, the connections with the most are cut off, and no further large
#: answer is made.
MAX_UNSENT_BYTES = 32 * 1024 * 1024
#: A client that has taken too little for this time may be cut off to make room for others.
BLOCKED_SECONDS = 2.0

BACKLOG = 2048
#: Further ones wait until other work of the loop is done.
ACCEPTED_AT_ONCE = 16
#: Waits after a failure to accept: a connection was closed to make room, or that does not help. By the end of the first
#: one, the loop has closed its descriptor.
RETRY_SECONDS, BACK_OFF_SECONDS = 0.005, 1.0
REPORTED_EVERY_SECONDS = 60.0


class Evictable(Protocol):
    """What decides which connection makes room."""

    #: When its stage began.
    since: float
    #: Since when its client has taken too little of an answer.
    blocked_since: float | None

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for its client and has nothing to send."""


AnyConnection = TypeVar("AnyConnection", bound=Evictable)


def to_evict(connections: Iterable[AnyConnection], now: float) -> AnyConnection | None:
    """Return the connection that has waited longest for its client, else one whose client does not read."""
    waiting: AnyConnection | None = None
    blocked: AnyConnection | None = None
    for each in connections:
        if each.is_waiting:
            if waiting is None or each.since < waiting.since:
                waiting = each
        elif (since := each.blocked_since) is not None and now - since >= BLOCKED_SECONDS:
            blocked = blocked or each
    return waiting or blocked


def address_group(host: str) -> str:
    """Return what counts as one address: a client owns a whole /64 of IPv6."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:
        return host
    return str(address.ipv4_mapped or ip_network((address, 64), strict=False))


class Connections:
    """All open connections. Admits new ones, makes room for them, and closes those that wait for too long."""

    def __init__(self, limits: ConnectionLimits, bus: Bus) -> None:
        self.limits = limits
        self._bus = bus
        self._open: set[LimitedConnection] = set()
        self._by_address: Counter[str] = Counter()
        self._in_reserve = 0
        self._refused: Counter[str] = Counter()
        self._reported_at = -REPORTED_EVERY_SECONDS

    def admit(self, address: str, now: float) -> bool | None:
        """Return whether a new connection is one of the reserve; `None` if it must be closed."""
        normal = [each for each in self._open if not each.is_in_reserve]
        if self._by_address[address] >= self.limits.per_address:
            has_room = self.make_room([each for each in normal if each.address == address], now)
        else:
            has_room = len(normal) < self.limits.connections or self.make_room(normal, now)
        if has_room:
            return False
        self.count_refused("the limit of connections is reached")
        if self._in_reserve < RESERVE or self.make_room([each for each in self._open if each.is_in_reserve], now):
            return True
        return None

    def make_room(self, among: Iterable[LimitedConnection], now: float) -> bool:
        """Close the connection that others miss least; return whether there was one."""
        found = to_evict(among, now)
        if found is None:
            return False
        found.cut_off()
        self.remove(found)  # the loop reports its end only later
        return True

    def make_room_anywhere(self, now: float) -> bool:
        return self.make_room(self._open, now)

    def add(self, connection: LimitedConnection) -> None:
        self._open.add(connection)
        if connection.is_in_reserve:
            self._in_reserve += 1
        else:
            self._by_address[connection.address] += 1

    def remove(self, connection: LimitedConnection) -> None:
        if connection not in self._open:
            return
        self._open.remove(connection)
        if connection.is_in_reserve:
            self._in_reserve -= 1
        else:
            self._by_address[connection.address] -= 1
            if not self._by_address[connection.address]:
                del self._by_address[connection.address]

    def count_refused(self, reason: str) -> None:
        self._refused[reason] += 1

    def sweep(self, now: float) -> None:
        """Close what waits for too long, and report what was refused."""
        for each in list(self._open):
            each.check(now)
        self._bound_unsent()
        if self._refused and now - self._reported_at >= REPORTED_EVERY_SECONDS:
            reasons = " and ".join(sorted(self._refused))
            self._bus.emit(
                ConnectionsRefused(refused=self._refused.total(), reason=reasons, connections=len(self._open))
            )
            self._refused.clear()
            self._reported_at = now

    def unsent_bytes(self) -> int:
        """Return how much of all answers their clients have not taken yet."""
        return sum(each.unsent_bytes for each in self._open)

    def _bound_unsent(self) -> None:
        unsent = self.unsent_bytes()
        if unsent <= MAX_UNSENT_BYTES:
            return
        for each in sorted(self._open, key=lambda one: one.unsent_bytes, reverse=True):
            if unsent > MAX_UNSENT_BYTES and each.blocked_since is not None:
                unsent -= each.unsent_bytes
                each.cut_off()


class Acceptor:
    """Accepts connections in place of the loop's server, which logs a traceback for each one that it cannot accept."""

    def __init__(
        self, listener: socket.socket, connections: Connections, connect: Callable[[str, bool], LimitedConnection]
    ) -> None:
        self._listener = listener
        self._connections = connections
        self._connect = connect
        self._loop = asyncio.get_running_loop()
        self._starting: set[asyncio.Task[Any]] = set()
        #: Given up for a moment when the descriptors run out, to accept a connection and close it.
        self._spare: int | None = None
        self._resuming: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        listener.listen(BACKLOG)
        self._resume()

    def close(self) -> None:
        if self._resuming is not None:
            self._resuming.cancel()
        self._loop.remove_reader(self._listener)
        if self._spare is not None:
            os.close(self._spare)

    async def wait_closed(self) -> None:
        """Nothing is left to wait for after `close`; the server of uvicorn asks for it."""

    def _resume(self) -> None:
        if self._spare is None:
            with suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                client, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._back_off(error)
                return
            self._take(client, address_group(address[0]))

    def _take(self, client: socket.socket, address: str) -> None:
        is_in_reserve = self._connections.admit(address, self._loop.time())
        if is_in_reserve is None:
            client.close()
            return
        client.setblocking(False)
        connection = self._connect(address, is_in_reserve)
        self._connections.add(connection)
        starting = self._loop.create_task(self._start(client, connection))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)

    async def _start(self, client: socket.socket, connection: LimitedConnection) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: connection, client)
        except OSError:
            self._connections.remove(connection)
            client.close()

    def _back_off(self, error: OSError) -> None:
        """Close or refuse one connection if descriptors ran out; leave the others to the system for a moment."""
        self._connections.count_refused(error.strerror or errno.errorcode.get(error.errno or 0, "error"))
        self._loop.remove_reader(self._listener)
        seconds = BACK_OFF_SECONDS
        if error.errno in (errno.EMFILE, errno.ENFILE):
            if self._connections.make_room_anywhere(self._loop.time()):
                seconds = RETRY_SECONDS
            elif self._spare is not None:
                os.close(self._spare)
                self._spare = None
                with suppress(OSError):
                    self._listener.accept()[0].close()
        self._resuming = self._loop.call_later(seconds, self._resume)


def descriptor_limit() -> int:
    """Return how many descriptors this process may open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
