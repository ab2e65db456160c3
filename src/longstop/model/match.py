"""A match as something to watch: its identity, its phase, its urgency."""

import re
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from typing import Self

from msgspec import Struct

from longstop.clock import Moment
from longstop.errors import IllegalTransition, UsageError

_SOURCE_NAME = re.compile(r"[a-z][a-z0-9]{0,31}")
#: What a source may call a match: it becomes part of paths and file names.
SOURCE_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
IMMINENT_WITHIN = timedelta(hours=1)


class MatchRef(Struct, frozen=True, order=True):
    """How one source calls a match."""

    source: str
    source_id: str

    def __str__(self) -> str:
        return f"{self.source}_{self.source_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `{source}_{source id}`; anything else is a sentence, never a lookup with strange characters."""
        source, _, source_id = text.partition("_")
        if not (_SOURCE_NAME.fullmatch(source) and SOURCE_ID.fullmatch(source_id)):
            raise UsageError(f"{text[:80]!r} is no match id: write a number, or a source and its id as in crex_11HD")
        return cls(source, source_id)


#: What fits SQLite's integers, written without leading zeros.
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


def parse_match_id(text: str) -> int | MatchRef:
    """Read how people name a match: by our number, or by a source and its id."""
    return int(text) if _NUMBER.fullmatch(text) else MatchRef.parse(text)


class Phase(StrEnum):
    """Where a match stands in our care."""

    #: Seen in a listing; nothing read of it yet.
    DISCOVERED = "discovered"
    #: Watched; the last look was good.
    ACTIVE = "active"
    #: Refused or unreadable too often; resting.
    PAUSED = "paused"
    #: The source says it is over, with a result.
    COMPLETED = "completed"
    #: Over for a day; no longer looked at.
    ARCHIVED = "archived"


#: The whole life of a match. A source may take a result back, hence COMPLETED → ACTIVE.
TRANSITIONS: dict[Phase, frozenset[Phase]] = {
    Phase.DISCOVERED: frozenset({Phase.ACTIVE, Phase.PAUSED, Phase.COMPLETED}),
    Phase.ACTIVE: frozenset({Phase.PAUSED, Phase.COMPLETED}),
    Phase.PAUSED: frozenset({Phase.ACTIVE, Phase.COMPLETED}),
    Phase.COMPLETED: frozenset({Phase.ACTIVE, Phase.ARCHIVED}),
    Phase.ARCHIVED: frozenset(),
}


def move(current: Phase, to: Phase) -> Phase:
    """Return the new phase, or raise: a move that is not in the table is a bug, not a wish."""
    if current is to:
        return current
    if to not in TRANSITIONS[current]:
        raise IllegalTransition(f"a match cannot go from {current} to {to}")
    return to


class MatchStatus(StrEnum):
    """What the source says of the play."""

    UPCOMING = "upcoming"
    LIVE = "live"
    #: Innings break, drinks, rain, stumps …: not over, picked up again by itself.
    BREAK = "break"
    COMPLETED = "completed"


#: Begun and not over.
IN_PLAY = frozenset({MatchStatus.LIVE, MatchStatus.BREAK})


class Priority(IntEnum):
    """Who goes first; lower is sooner."""

    LIVE = 0
    IMMINENT = 1
    COMPLETED = 2


def priority_of(status: MatchStatus, start_at: datetime | None, now: datetime) -> Priority | None:
    """Return the urgency of a match; `None` for one that starts later than an hour from now."""
    if status is MatchStatus.COMPLETED:
        return Priority.COMPLETED
    if status is not MatchStatus.UPCOMING:
        return Priority.LIVE
    if start_at is None or start_at - now <= IMMINENT_WITHIN:
        return Priority.IMMINENT
    return None


class SyncState(StrEnum):
    """Whether what we hold has been compared with the source's whole event list since we last (re)started."""

    RECOVERING = "recovering"
    IN_SYNC = "in_sync"
    #: Nobody compares it, since nobody watches it; no record says so, the lack of one does.
    UNWATCHED = "unwatched"


class MonitoringRecord(Struct, frozen=True, kw_only=True):
    """How the watching of one match goes; it lives in the hot view and can be built again."""

    match_id: int
    ref: MatchRef
    phase: Phase
    status: MatchStatus
    sync: SyncState
    #: The last accepted poll, also when it brought nothing new: what freshness is measured from.
    last_poll_at: datetime | None
    #: The same, by the clock that never jumps; `None` of a poll that an earlier run took, or an earlier boot.
    last_poll_monotonic: float | None = None
    start_at: datetime | None = None
    #: The last look, good or not: what the next one keeps its distance from.
    last_attempt_at: datetime | None = None
    #: When the match may be looked at again, where it was not found or is paused.
    not_before: datetime | None = None
    #: The last look or line that brought something new.
    changed_at: datetime | None = None
    #: Since when what the site shows of it stands still while play goes on.
    frozen_since: datetime | None = None
    #: How long a good look lasts at present, and why so long.
    interval_seconds: float | None = None
    tempo: str | None = None
    is_important: bool = False
    #: Whether it is paused because somebody asked for that; it comes back when somebody asks again.
    is_on_hold: bool = False
    #: How often its watch was begun anew.
    restarts: int = 0
    consecutive_failures: int = 0
    total_polls: int = 0
    total_failures: int = 0
    last_error: str | None = None
    sport: str
    #: Whether nobody could be asked last time: its site is left alone, has asked for rest, or we keep it waiting.
    is_held: bool = False
    #: Whether that is so for all matches of its site: it is left alone, has asked for rest, or refuses us.
    is_shut_out: bool = False
    #: What this machine lacked, where that is why nobody could be asked.
    lacking: str | None = None

    def age_at(self, now: Moment) -> float | None:
        """Return the seconds since the last accepted poll, whatever the wall clock did; `None` before the first."""
        if self.last_poll_at is None:
            return None
        return max(0.0, now.seconds_since(self.last_poll_at, self.last_poll_monotonic))
