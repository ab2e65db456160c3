"""Events: what happened, under a key that is allotted once and never used again."""

from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from math import inf
from typing import Self

import msgspec
from msgspec import Struct

from longstop.model.cricket import Delivery, InferredBalls, InningsSummary, OverSummary, Result
from longstop.model.football import FootballContent, Kick, PeriodEnd, Side, Timed

Content = Delivery | InferredBalls | OverSummary | InningsSummary | Result | FootballContent


class EventKind(StrEnum):
    """The kinds of row; a wicket or boundary is inside its delivery, not beside it."""

    DELIVERY = "delivery"
    #: The part of an over that no window showed.
    INFERRED = "inferred"
    OVER = "over"
    INNINGS = "innings"
    #: Football's, as all that follow but the last.
    GOAL = "goal"
    CARD = "card"
    SUBSTITUTION = "substitution"
    VAR = "var"
    MISSED_PENALTY = "missed_penalty"
    PERIOD = "period"
    KICK = "kick"
    RESULT = "result"


#: Kinds that belong to one of two sides.
SIDED = frozenset(
    {
        EventKind.GOAL,
        EventKind.CARD,
        EventKind.SUBSTITUTION,
        EventKind.VAR,
        EventKind.MISSED_PENALTY,
        EventKind.KICK,
    }
)
#: What the numbers of a key are, where it has others than its `nth`.
_NUMBERS: dict[EventKind, tuple[str, ...]] = {
    EventKind.DELIVERY: ("innings", "over", "nth"),
    EventKind.INFERRED: ("innings", "over"),
    EventKind.OVER: ("innings", "over"),
    EventKind.INNINGS: ("innings",),
    EventKind.RESULT: (),
}
#: Kinds that may be dropped when there is no room for all; every other one is critical, and never lost.
NOT_CRITICAL = frozenset({EventKind.SUBSTITUTION, EventKind.VAR, EventKind.MISSED_PENALTY})


class Op(StrEnum):
    """What a version does to its key."""

    INSERT = "insert"
    UPDATE = "update"
    VOID = "void"


class EventKey(Struct, frozen=True, order=True):
    """The identity of an event.

    In cricket (kind, innings from 1, over from 0, nth delivery of the over from 1), in football (kind, side, nth
    from 1). The nth is the order of allotment, not the place in the over: a ball inserted in the past takes the next
    free one, so that nothing known moves. Its place is the event's `position`.
    """

    kind: EventKind
    innings: int = 0
    over: int = 0
    nth: int = 0
    #: `home` or `away` for football's events of one side, else empty.
    side: str = ""

    def __str__(self) -> str:
        match self.kind:
            case EventKind.DELIVERY:
                return f"delivery:{self.innings}:{self.over}:{self.nth}"
            case EventKind.OVER | EventKind.INFERRED:
                return f"{self.kind}:{self.innings}:{self.over}"
            case EventKind.INNINGS:
                return f"innings:{self.innings}"
            case EventKind.PERIOD:
                return f"period:{self.nth}"
            case EventKind.RESULT:
                return "result"
            case _:
                return f"{self.kind}:{self.side}:{self.nth}"

    @classmethod
    def parse(cls, text: str) -> Self:
        name, *rest = text.split(":")
        kind = EventKind(name)
        side = Side(rest.pop(0)).value if kind in SIDED else ""
        numbers = dict(zip(_NUMBERS.get(kind, ("nth",)), map(int, rest), strict=True))
        return cls(kind, side=side, **numbers)


class Event(Struct, frozen=True, kw_only=True):
    """One version of one event; the versions of a key are never changed, only followed by others."""

    key: EventKey
    #: 1, 2, 3 … per key.
    rev: int
    op: Op
    content: Content
    #: The source's own id of the event.
    source_event_id: str
    #: The place among the live deliveries of the innings, from 1; `None` for other kinds and for void ones.
    position: int | None = None

    @property
    def is_live(self) -> bool:
        return self.op is not Op.VOID


class StoredEvent(Struct, frozen=True, kw_only=True):
    """An event version as the store keeps it."""

    event: Event
    #: Counter per match, given inside the transaction that stored the version.
    seq: int
    epoch: int
    captured_at: datetime


def content_hash(content: Content, position: int | None) -> str:
    """Return a digest for comparison; never an identity, since A → B → A is three versions."""
    return sha256(msgspec.json.encode((content, position))).hexdigest()


def order_of_play(event: Event) -> tuple[float, float, int, int]:
    """Return a sort key: deliveries by position, then their over's end, the innings' end, the result.

    In football: by the clock, a period's end after all of it, then the shoot-out, then the result.
    """
    key, content = event.key, event.content
    match key.kind:
        case EventKind.DELIVERY:
            return (key.innings, key.over, 0, event.position or 0)
        case EventKind.INFERRED:
            return (key.innings, key.over, 1, 0)
        case EventKind.OVER:
            return (key.innings, key.over, 2, 0)
        case EventKind.INNINGS:
            return (key.innings, inf, 0, 0)
        case EventKind.RESULT:
            return (inf, inf, 1, 0)
    if isinstance(content, Kick):
        return (inf, content.sequence, 0, 0)
    if isinstance(content, PeriodEnd):
        return (inf if content.minute is None else content.minute, inf, 0, key.nth)
    if isinstance(content, Timed):
        return (inf if content.minute is None else content.minute, content.added or 0, 0, key.nth)
    raise TypeError(f"{key} has no place in the order of play")


def is_football(content: Content) -> bool:
    return isinstance(content, FootballContent)
