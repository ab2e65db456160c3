"""The clients of the chaos suite `hostile`: each attack connects from several addresses, and ends in time."""

import asyncio
import sys
import time
from contextlib import suppress

import msgspec
import pytest

from bench.chaos.hostile_schedule import Attack
from tests.acceptance.conftest import ROOT


@pytest.mark.parametrize("attack", Attack)
async def test_an_attack_comes_from_several_addresses_and_ends_in_time(attack: Attack) -> None:
    addresses: set[str] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        addresses.add(writer.get_extra_info("peername")[0])
        try:
            while await reader.read(65_536):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except OSError:
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.chaos.hostile_clients", attack, "--port", str(port), "--seconds", "0.6"),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    began = time.monotonic()
    out, _ = await process.communicate(b"a-token\n")
    server.close()

    assert process.returncode == 0
    assert time.monotonic() - began < 15
    assert msgspec.json.decode(out)["connections"] > 1
    assert "127.0.0.1" not in addresses
    assert len(addresses) > 1
