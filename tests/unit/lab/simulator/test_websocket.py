import asyncio
from typing import cast

import pytest

from longstop_lab.simulator.http import Request
from longstop_lab.simulator.websocket import answer_until_closed, text_frame, wants_channel

MASK = b"\x01\x02\x03\x04"


class Written:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data


def from_a_page(code: int, payload: bytes) -> bytes:
    masked = bytes(byte ^ MASK[nth % 4] for nth, byte in enumerate(payload))
    return bytes((0x80 | code, 0x80 | len(payload))) + MASK + masked


async def answers_to(data: bytes) -> bytes:
    reader, written = asyncio.StreamReader(), Written()
    reader.feed_data(data)
    reader.feed_eof()
    await answer_until_closed(reader, cast(asyncio.StreamWriter, written))
    return written.data


def test_a_short_text_has_a_short_head_and_a_long_one_its_length_in_two_bytes() -> None:
    assert text_frame(b"hello") == b"\x81\x05hello"
    assert text_frame(b"x" * 300)[:4] == b"\x81\x7e\x01\x2c"


async def test_a_ping_is_answered_and_a_close_ends_it() -> None:
    reported = await answers_to(
        from_a_page(1, b"ignored") + from_a_page(9, b"are you there") + from_a_page(8, b"\x03\xe8")
    )

    assert reported == b"\x8a\x0dare you there" + b"\x88\x02\x03\xe8"


@pytest.mark.parametrize("frame", [b"\x81\x05hello", b"\x81\xff" + b"\0" * 12])
async def test_a_frame_without_a_mask_or_without_measure_ends_it(frame: bytes) -> None:
    with pytest.raises(ConnectionError):
        await answers_to(frame)


def test_only_an_upgrade_with_a_key_wants_a_channel() -> None:
    headers = {"upgrade": "WebSocket", "sec-websocket-key": "x"}

    assert wants_channel(Request(method="GET", path="/", headers=headers))
    assert not wants_channel(Request(method="GET", path="/", headers={"upgrade": "websocket"}))
    assert not wants_channel(Request(method="POST", path="/", headers=headers))
