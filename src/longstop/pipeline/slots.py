"""The places of a line: what we hold beside what we see."""

from msgspec import Struct

from longstop.model.event import Event
from longstop.pipeline.assemble import SeenEvent


class Held(Struct, frozen=True):
    """A place that this look did not reach: what we hold stands."""

    known: Event


class Shown(Struct, frozen=True):
    """A place that we hold and see; `known` is void when the source once took it away and brings it back."""

    known: Event
    seen: SeenEvent


class New(Struct, frozen=True):
    """A place that we see for the first time."""

    seen: SeenEvent


class Vanished(Struct, frozen=True):
    """A place that we hold, and that the source should show and does not."""

    known: Event
    #: Whether it is at the very end of the line, where a feed that lags looks the same.
    is_tail: bool


Slot = Held | Shown | New | Vanished
