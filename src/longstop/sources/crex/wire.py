"""What several of crex's bodies have in common."""

import re
from typing import Annotated

from msgspec import Meta

from longstop.errors import LayoutChanged

Milliseconds = Annotated[int, Meta(ge=0, le=4_102_444_800_000)]


def numbers(pattern: re.Pattern[str], text: str, field: str) -> list[int]:
    found = pattern.fullmatch(text)
    if found is None:
        raise LayoutChanged(f"field {field!r} reads {text[:40]!r}")
    return [int(group) for group in found.groups()]
