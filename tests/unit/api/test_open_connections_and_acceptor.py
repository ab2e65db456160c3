"""Which connection makes room, what counts as one address, and how limits follow the descriptors. Time is virtual."""

import asyncio
import errno
import socket
from typing import Any, cast

import pytest
import uvicorn
from msgspec import Struct
from uvicorn.server import ServerState

from longstop.api.limited_connection import OWN_DESCRIPTORS, RESERVE, ConnectionLimits, LimitedConnection
from longstop.api.open_connections_and_acceptor import (
    BLOCKED_SECONDS,
    MAX_UNSENT_BYTES,
    Acceptor,
    Connections,
    address_group,
    to_evict,
)
from longstop.telemetry.bus import Bus


class FakeConnection(Struct, kw_only=True):
    since: float = 0.0
    is_waiting: bool = False
    blocked_since: float | None = None


def test_the_connection_that_has_waited_longest_makes_room() -> None:
    older, newer, busy = (
        FakeConnection(since=3, is_waiting=True),
        FakeConnection(since=5, is_waiting=True),
        FakeConnection(),
    )

    assert to_evict([newer, busy, older], 10) is older


def test_a_connection_that_is_being_answered_never_makes_room() -> None:
    assert to_evict([FakeConnection(since=1), FakeConnection(since=2)], 1000) is None


def test_one_whose_client_does_not_read_makes_room_when_none_waits() -> None:
    blocked = FakeConnection(blocked_since=5.0)

    assert to_evict([FakeConnection(), blocked], 5 + BLOCKED_SECONDS) is blocked
    assert to_evict([FakeConnection(), blocked], 4.9 + BLOCKED_SECONDS) is None


def test_waiting_comes_before_not_reading() -> None:
    waiting = FakeConnection(since=99, is_waiting=True)

    assert to_evict([FakeConnection(blocked_since=0.0), waiting], 100) is waiting


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("not an address", "not an address"),
    ],
)
def test_a_network_of_ipv6_counts_as_one_address(host: str, group: str) -> None:
    assert address_group(host) == group


@pytest.mark.parametrize(
    ("descriptors", "connections"),
    [(100_000, 512), (256, 256 - OWN_DESCRIPTORS - RESERVE), (64, 16), (10, 1)],
)
def test_the_limit_of_connections_leaves_descriptors_for_files(descriptors: int, connections: int) -> None:
    assert ConnectionLimits(connections=512).within(descriptors).connections == connections


class IdleConnection:
    """A connection whose client sends nothing."""

    address, is_in_reserve, is_waiting = "192.0.2.7", False, True

    def __init__(self, since: float) -> None:
        self.since = since
        self.blocked_since: float | None = None
        self.unsent_bytes = 0
        self.is_closed = False

    def cut_off(self) -> None:
        self.is_closed = True

    def check(self, now: float) -> None:
        """It may wait."""


class FailingListener(socket.socket):
    """A listener that cannot accept."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self.has_failed = asyncio.Event()

    def accept(self) -> Any:
        self.has_failed.set()
        raise OSError(self._number, "it fails")


@pytest.mark.parametrize(
    ("number", "closed"),
    [
        (errno.EMFILE, [0]),
        (errno.ENFILE, [0]),
        (errno.ENOMEM, []),
        (errno.ENOBUFS, []),
        (errno.EPERM, []),
        (errno.EPROTO, []),
    ],
)
async def test_a_connection_that_cannot_be_accepted_closes_one_if_that_helps(number: int, closed: list[int]) -> None:
    connections = Connections(ConnectionLimits(), Bus())
    idle = [IdleConnection(since) for since in range(20)]
    for each in idle:
        connections.add(cast("LimitedConnection", each))

    with FailingListener(number) as listener, socket.socket() as client:
        listener.bind(("127.0.0.1", 0))
        acceptor = Acceptor(listener, connections, lambda _address, _is_in_reserve: None)  # type: ignore[arg-type,return-value]
        client.connect(listener.getsockname())
        await asyncio.wait_for(listener.has_failed.wait(), 5)
        acceptor.close()

    assert [each.since for each in idle if each.is_closed] == closed


class FakeTransport(Struct):
    """A transport to a client that leaves some bytes of an answer unread."""

    unsent: int
    is_cut_off: bool = False

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.is_cut_off = True


async def test_a_client_counts_as_blocked_only_while_it_takes_too_little() -> None:
    connection = LimitedConnection(
        address="192.0.2.7",
        is_in_reserve=False,
        limits=ConnectionLimits(write_seconds=30),
        on_lost=lambda _connection: None,
        config=uvicorn.Config(lambda: None, lifespan="off", log_config=None),
        server_state=ServerState(),
    )
    transport = FakeTransport(unsent=1_000_000)
    connection.transport = cast("asyncio.Transport", transport)
    seen: list[float | None] = []

    for now, unsent in [(1, 1_000_000), (2, 900_000), (3, 900_000), (4, 890_000), (5, 800_000), (6, 800_000), (7, 0)]:
        transport.unsent = unsent
        connection.check(now)
        seen.append(connection.blocked_since)

    assert seen == [None, None, 2, 2, None, 5, None]
    assert not transport.is_cut_off


@pytest.mark.parametrize(("since", "is_cut_off"), [(None, False), (5.0, True)])
def test_when_too_much_is_unsent_only_clients_that_take_too_little_are_cut_off(
    since: float | None, is_cut_off: bool
) -> None:
    connections = Connections(ConnectionLimits(), Bus())
    reading = IdleConnection(1)
    reading.unsent_bytes, reading.blocked_since = MAX_UNSENT_BYTES + 1, since
    connections.add(cast("LimitedConnection", reading))

    connections.sweep(6)

    assert reading.is_closed == is_cut_off
