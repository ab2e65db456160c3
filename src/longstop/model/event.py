"""Events of a match. Each has a key that is assigned once and never reused."""

import re
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Self

import msgspec
from msgspec import Struct

_KEY = re.compile(r"([a-z_]+)(?::([a-z_]+))?((?::[0-9]+)*)")


class Op(StrEnum):
    """What a version does to its key."""

    INSERT = "insert"
    UPDATE = "update"
    VOID = "void"


class EventKey(Struct, frozen=True, order=True, cache_hash=True):
    """The identity of an event: its kind, its numbers, and its side where it belongs to one.

    The sport defines the meaning of the numbers. The last number is the order of assignment, not of play: an event that
    is inserted in the past takes the next free number, so that known events keep theirs. Its place in the order of play
    is `Event.position`.
    """

    kind: str
    numbers: tuple[int, ...] = ()
    #: `home` or `away` for an event of one side, else empty.
    side: str = ""

    def __str__(self) -> str:
        return ":".join((self.kind, *([self.side] if self.side else ()), *map(str, self.numbers)))

    @classmethod
    def parse(cls, text: str) -> Self:
        parts = _KEY.fullmatch(text)
        if parts is None:
            raise ValueError(f"{text!r} is not an event key")
        kind, side, numbers = parts.groups()
        return cls(kind, tuple(map(int, numbers.split(":")[1:])), side or "")


#: The result of a match, in every sport; its content has a `text`.
RESULT = EventKey("result")


class Event(Struct, frozen=True, kw_only=True):
    """One version of one event. Versions are never changed, only followed by newer ones."""

    key: EventKey
    #: 1, 2, 3 … per key.
    rev: int = 1
    op: Op = Op.INSERT
    #: One of the sport's content types.
    content: Struct
    #: The source's own id of the event.
    source_event_id: str
    #: The place among the live events of its kind, from 1; `None` for kinds without one, and for void events.
    position: int | None = None
    #: The source of this version; empty for the source that the match is named after.
    source: str = ""

    @property
    def is_live(self) -> bool:
        return self.op is not Op.VOID


class StoredEvent(Struct, frozen=True, kw_only=True):
    event: Event
    #: Counter for each match, assigned in the transaction that stored the version.
    seq: int
    epoch: int
    captured_at: datetime


def content_hash(content: Struct, position: int | None) -> str:
    """Return a digest for comparison. It does not identify a version: A → B → A is three versions."""
    return sha256(msgspec.json.encode((content, position))).hexdigest()
