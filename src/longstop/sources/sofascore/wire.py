"""What several of sofascore's bodies have in common."""

from typing import Annotated
from unicodedata import normalize

from msgspec import Meta, Struct

Small = Annotated[int, Meta(ge=0, le=9_999)]
Minute = Annotated[int, Meta(ge=-99, le=9_999)]
Id = Annotated[int, Meta(ge=0, le=2**53)]
Seconds = Annotated[int, Meta(ge=0, le=4_102_444_800)]


class Player(Struct, frozen=True):
    id: Id
    name: str = ""


def tidy(name: str) -> str:
    return normalize("NFC", name.strip())
