"""The ports of a deployment, on real sockets: no other process gets them between their choice and their use."""

import asyncio
import socket

import pytest

from longstop_lab.deployment import reserve_port


async def test_a_held_port_is_refused_to_others_and_a_server_of_ours_can_listen_there_again_and_again() -> None:
    with reserve_port() as held:
        port = held.getsockname()[1]

        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", port))
        for _ in range(2):
            server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", port)
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            server.close()
            await server.wait_closed()

        with reserve_port() as other:
            assert other.getsockname()[1] != port


def test_a_preferred_port_that_is_in_use_is_not_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with reserve_port(port) as held:
            assert held.getsockname()[1] != port


def test_a_preferred_port_that_is_free_is_taken() -> None:
    with reserve_port() as held:
        port = held.getsockname()[1]

    with reserve_port(port) as again:
        assert again.getsockname()[1] == port
