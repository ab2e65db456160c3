"""A font that a browser takes: no letters, and as heavy as one that has them."""

import struct
import zlib
from collections.abc import Mapping
from functools import cache
from random import Random

_WEIGHT_BYTES = 60_000
_UNITS = 1000
_TRUETYPE = 0x00010000
_NAME = "Text".encode("utf-16-be")
#: A number that every head of a font carries.
_MAGIC = 0x5F0F3CF5
#: Seconds since 1904; the value does not matter.
_MADE = 3_800_000_000


@cache
def font() -> bytes:
    """Return a WOFF with one empty glyph. What makes it heavy is its private block, which browsers fetch and skip."""
    tables = _tables()
    private = Random("font").randbytes(_WEIGHT_BYTES)
    entries, body = b"", b""
    first = 44 + 20 * len(tables)
    for tag, table in sorted(tables.items()):
        packed = min(zlib.compress(table), table, key=len)
        entries += struct.pack(">4sIIII", tag, first + len(body), len(packed), len(table), _checksum(table))
        body += _padded(packed)
    whole = first + len(body) + len(private)
    unpacked = 12 + 16 * len(tables) + sum(len(_padded(table)) for table in tables.values())
    head = struct.pack(">4sIIHHIHH", b"wOFF", _TRUETYPE, whole, len(tables), 0, unpacked, 1, 0)
    return head + struct.pack(">IIIII", 0, 0, 0, first + len(body), len(private)) + entries + body + private


def _tables() -> Mapping[bytes, bytes]:
    return {
        b"OS/2": _os2(),
        b"cmap": _cmap(),
        b"glyf": bytes(4),
        b"head": _head(),
        b"hhea": struct.pack(">HHhhhHhhhhhhhhhhhH", 1, 0, 800, -200, 0, 500, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1),
        b"hmtx": struct.pack(">Hh", 500, 0),
        b"loca": struct.pack(">HH", 0, 0),
        b"maxp": struct.pack(">I14H", _TRUETYPE, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
        b"name": _names(),
        b"post": struct.pack(">IIhhIIIII", 0x00030000, 0, -100, 50, 0, 0, 0, 0, 0),
    }


def _head() -> bytes:
    versions = struct.pack(">IIII", _TRUETYPE, _TRUETYPE, 0, _MAGIC)
    return versions + struct.pack(">HHqqhhhhHHhhh", 0, _UNITS, _MADE, _MADE, 0, 0, 0, 0, 0, 8, 2, 0, 0)


def _os2() -> bytes:
    sizes = struct.pack(">HhHHH10hh", 4, 500, 400, 5, 0, *(300, 300, 0, 75, 300, 300, 0, 350, 50, 250), 0)
    classes = bytes(10) + struct.pack(">IIII", 1, 0, 0, 0) + b"NONE"
    return (
        sizes + classes + struct.pack(">HHHhhhHHIIhhHHH", 64, 32, 32, 800, -200, 0, 800, 200, 1, 0, 400, 700, 0, 32, 1)
    )


def _cmap() -> bytes:
    """Return a table of letters that has the space only; nothing else can be written with it."""
    segments = struct.pack(">HHHHHHH", 4, 4, 1, 0, 32, 0xFFFF, 0) + struct.pack(">HHHHHH", 32, 0xFFFF, 0xFFE0, 1, 0, 0)
    letters = struct.pack(">HHH", 4, 6 + len(segments), 0) + segments
    return struct.pack(">HHHHI", 0, 1, 3, 1, 12) + letters


def _names() -> bytes:
    numbers = (1, 2, 4, 6)
    records = b"".join(struct.pack(">HHHHHH", 3, 1, 0x409, number, len(_NAME), 0) for number in numbers)
    return struct.pack(">HHH", 0, len(numbers), 6 + len(records)) + records + _NAME


def _padded(table: bytes) -> bytes:
    return table + bytes(-len(table) % 4)


def _checksum(table: bytes) -> int:
    padded = _padded(table)
    words: tuple[int, ...] = struct.unpack(f">{len(padded) // 4}I", padded)
    return sum(words) & 0xFFFFFFFF
