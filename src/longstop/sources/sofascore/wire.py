"""What several of sofascore's bodies have in common."""

from typing import Annotated

from msgspec import Meta, Struct

from longstop.sources.wire import Id

Minute = Annotated[int, Meta(ge=-99, le=9_999)]
Seconds = Annotated[int, Meta(ge=0, le=4_102_444_800)]


class Player(Struct, frozen=True):
    id: Id
    name: str = ""
