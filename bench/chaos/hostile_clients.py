"""Clients that attack the API, as a process of their own: `python -m bench.chaos.hostile_clients ATTACK --port P …`.

They come from 127.0.0.2 to 127.0.0.50, are bounded in number and time, and print one JSON line at the end.
"""

import argparse
import asyncio
import os
import resource
import socket
import struct
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from random import Random
from time import monotonic

import msgspec

from bench.chaos.hostile_schedule import Attack

FIRST_ADDRESS, LAST_ADDRESS = 2, 50
#: The attacker's own machine is not the one attacked: its work must not take the processors of that.
_NICENESS = 15
_CHUNK = 65_536
_NO_LINGER = struct.pack("ii", 1, 0)
_IDLE_SOCKETS = 400
_PIPELINED = b"GET /health HTTP/1.1\r\nHost: longstop\r\n\r\n" * 500
_GARBAGE = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00" * 64,
    b"GET /health HTTP/9.9\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /%00%ff%0d%0aX: HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /live HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"GET /live HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    b"GET /live HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\nzz\r\n",
    b"GET /live HTTP/1.1\r\nHost: a\x00b\r\nX\x80: \xff\r\n: empty\r\n\r\n",
    b"\r\n" * 10_000,
    b"\x00" * 50_000,
)


class Attacker:
    """Opens connections from changing addresses until a moment, and counts what becomes of them."""

    def __init__(self, port: int, until: float, dice: Random, token: str, paths: Sequence[str]) -> None:
        self.counts: Counter[str] = Counter()
        self._port = port
        self._until = until
        self._dice = dice
        self._token = token
        self._paths = paths
        self._loop = asyncio.get_running_loop()

    @property
    def is_over(self) -> bool:
        return monotonic() >= self._until

    async def run(self, attack: Attack) -> None:
        each, connections = self._ways()[attack]
        async with asyncio.timeout_at(self._loop.time() + self._until - monotonic()):
            await asyncio.gather(*(self._repeat(each, nth) for nth in range(connections)))

    def _ways(self) -> dict[Attack, tuple[Callable[[socket.socket, int], Awaitable[None]], int]]:
        """Return what one connection does, and how many there are at once."""
        return {
            Attack.PIPELINE: (self._pipeline, 8),
            Attack.HEADERS: (self._headers, 20),
            Attack.IDLE: (self._idle, _IDLE_SOCKETS),
            Attack.DRIP: (self._drip, 100),
            Attack.READS: (self._reads, 24),
            Attack.CHURN: (self._churn, 30),
            Attack.GARBAGE: (self._garbage, 20),
            Attack.BODIES: (self._bodies, 20),
        }

    async def _repeat(self, each: Callable[[socket.socket, int], Awaitable[None]], nth: int) -> None:
        while not self.is_over:
            connection = socket.socket()
            connection.setblocking(False)
            try:
                # Half of all from one address, as one client would; the others from many.
                address = FIRST_ADDRESS + (nth // 2 % (LAST_ADDRESS - FIRST_ADDRESS) + 1 if nth % 2 else 0)
                connection.bind((f"127.0.0.{address}", 0))
                await self._loop.sock_connect(connection, ("127.0.0.1", self._port))
                self.counts["connections"] += 1
                await each(connection, nth)
            except OSError:
                self.counts["refused"] += 1
            finally:
                connection.close()
            await asyncio.sleep(0.05)

    async def _send(self, connection: socket.socket, data: bytes) -> None:
        await self._loop.sock_sendall(connection, data)
        self.counts["bytes"] += len(data)

    async def _pipeline(self, connection: socket.socket, _nth: int) -> None:
        while not self.is_over:
            await self._send(connection, _PIPELINED)

    async def _headers(self, connection: socket.socket, nth: int) -> None:
        await self._send(connection, b"GET /health HTTP/1.1\r\nHost: longstop\r\nX-Long: ")
        # One line without end, or lines without end.
        more = b"a" * _CHUNK if nth % 2 else b"b\r\nX-More: " * 6_000
        while not self.is_over:
            await self._send(connection, more)
            await asyncio.sleep(0.01)

    async def _idle(self, connection: socket.socket, _nth: int) -> None:
        await self._loop.sock_recv(connection, 1)  # until the server closes

    async def _drip(self, connection: socket.socket, nth: int) -> None:
        request = b"GET /health HTTP/1.1\r\nHost: longstop\r\nX-Slow: " + b"a" * 1_000
        for byte in request:
            await self._send(connection, bytes((byte,)))
            await asyncio.sleep(0.2 + nth % 5 / 10)

    async def _reads(self, connection: socket.socket, nth: int) -> None:
        path = self._paths[nth % len(self._paths)]
        head = f"GET {path} HTTP/1.1\r\nHost: longstop\r\nAuthorization: Bearer {self._token}\r\n\r\n".encode()
        while not self.is_over:
            await self._send(connection, head)
            if nth % 4 == 3:  # a client that reads a kilobyte at a time
                await self._loop.sock_recv(connection, 1_000)
                await asyncio.sleep(0.2)
                continue
            received = await self._loop.sock_recv(connection, _CHUNK)
            if not received:
                return
            while not self.is_over and len(received) == _CHUNK:
                received = await self._loop.sock_recv(connection, _CHUNK)

    async def _churn(self, connection: socket.socket, nth: int) -> None:
        if nth % 2:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            await self._send(connection, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")

    async def _garbage(self, connection: socket.socket, _nth: int) -> None:
        chosen = self._dice.choice((*_GARBAGE, self._dice.randbytes(2_000)))
        await self._send(connection, chosen)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._loop.sock_recv(connection, _CHUNK)

    async def _bodies(self, connection: socket.socket, nth: int) -> None:
        length = "Transfer-Encoding: chunked" if nth % 2 else "Content-Length: 1000000000000"
        target = "/cricket-data/match-info/1" if nth % 4 < 2 else "/health"
        await self._send(connection, f"POST {target} HTTP/1.1\r\nHost: longstop\r\n{length}\r\n\r\n".encode())
        chunk = b"10000\r\n" + b"c" * _CHUNK + b"\r\n" if nth % 2 else b"c" * _CHUNK
        while not self.is_over:
            await self._send(connection, chunk)
            await asyncio.sleep(0.02)


async def attack(chosen: argparse.Namespace) -> Counter[str]:
    dice = Random(f"{chosen.attack} {chosen.seed}")
    attacker = Attacker(chosen.port, monotonic() + chosen.seconds, dice, sys.stdin.readline().strip(), chosen.paths)
    with suppress(TimeoutError):
        await attacker.run(Attack(chosen.attack))
    return attacker.counts


def main() -> None:
    parser = argparse.ArgumentParser(description="Attack an API on this machine; the token is read from stdin.")
    parser.add_argument("attack", choices=list(Attack))
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--paths", nargs="+", default=["/health"])
    chosen = parser.parse_args()
    os.nice(_NICENESS)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(msgspec.json.encode(asyncio.run(attack(chosen))).decode())


if __name__ == "__main__":
    main()
