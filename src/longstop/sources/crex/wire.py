"""What several of crex's bodies have in common."""

import re
from typing import Annotated
from unicodedata import normalize

from msgspec import Meta

from longstop.errors import LayoutChanged

#: Bounds that no match reaches: a number beyond them is another field or another site.
Small = Annotated[int, Meta(ge=0, le=9_999)]
Id = Annotated[int, Meta(ge=0, le=2**53)]
Milliseconds = Annotated[int, Meta(ge=0, le=4_102_444_800_000)]


def numbers(pattern: re.Pattern[str], text: str, field: str) -> list[int]:
    found = pattern.fullmatch(text)
    if found is None:
        raise LayoutChanged(f"field {field!r} reads {text[:40]!r}")
    return [int(group) for group in found.groups()]


def tidy(name: str) -> str:
    return normalize("NFC", name.strip())
