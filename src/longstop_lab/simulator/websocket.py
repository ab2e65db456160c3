"""The server side of a WebSocket, as far as a channel that only sends needs it."""

import asyncio
import base64
import struct
from hashlib import sha1

from longstop_lab.simulator.http import Request

#: What the protocol wants to be mixed into the answer.
_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10
_FINAL, _MASKED = 0x80, 0x80
_MAX_BYTES = 65_535


def wants_channel(request: Request) -> bool:
    upgrade = request.headers.get("upgrade", "").lower()
    return request.method == "GET" and upgrade == "websocket" and "sec-websocket-key" in request.headers


def accept(request: Request) -> bytes:
    """Return the answer that opens the channel."""
    key = request.headers["sec-websocket-key"] + _MAGIC
    proof = base64.b64encode(sha1(key.encode(), usedforsecurity=False).digest()).decode()
    lines = ("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade")
    return "\r\n".join((*lines, f"Sec-WebSocket-Accept: {proof}", "", "")).encode()


def text_frame(text: bytes) -> bytes:
    return _frame(_TEXT, text)


async def answer_until_closed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read what the other side sends, answer its pings, and return when it closes the channel."""
    while True:
        code, payload = await _read_frame(reader)
        if code == _PING:
            writer.write(_frame(_PONG, payload))
        elif code == _CLOSE:
            writer.write(_frame(_CLOSE, payload[:2]))
            return


def _frame(code: int, payload: bytes) -> bytes:
    if len(payload) < 126:
        head = struct.pack("!BB", _FINAL | code, len(payload))
    else:
        head = struct.pack("!BBH", _FINAL | code, 126, len(payload))
    return head + payload


async def _read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    first, second = await reader.readexactly(2)
    length = second & 0x7F
    if length == 126:
        (length,) = struct.unpack("!H", await reader.readexactly(2))
    if length > _MAX_BYTES or length == 127 or not second & _MASKED:
        raise ConnectionError("a frame of a page is short and masked")
    mask = await reader.readexactly(4)
    payload = await reader.readexactly(length)
    return first & 0x0F, bytes(byte ^ mask[nth % 4] for nth, byte in enumerate(payload))
