"""Matches: identity, phase, status, priority, and the stored row."""

import re
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from typing import Self

from msgspec import Struct

from longstop.errors import IllegalTransition, UsageError

_SOURCE_NAME = re.compile(r"[a-z][a-z0-9]{0,31}")
#: A source's id of a match; it becomes part of URLs and file names.
SOURCE_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
IMMINENT_WITHIN = timedelta(hours=1)


class MatchRef(Struct, frozen=True, order=True):
    """A match by source and the source's id, written as `crex_11HD`."""

    source: str
    source_id: str

    def __str__(self) -> str:
        return f"{self.source}_{self.source_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `{source}_{source id}`; raise a `UsageError` for anything else."""
        source, _, source_id = text.partition("_")
        if not (_SOURCE_NAME.fullmatch(source) and SOURCE_ID.fullmatch(source_id)):
            raise UsageError(f"{text[:80]!r} is not a match id: write a number, or a source and its id as in crex_11HD")
        return cls(source, source_id)


#: A SQLite integer without leading zeros.
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


def parse_match_id(text: str) -> int | MatchRef:
    """Parse a match id: our number, or a source and its id."""
    return int(text) if _NUMBER.fullmatch(text) else MatchRef.parse(text)


class Phase(StrEnum):
    """The lifecycle of a match."""

    #: Seen in a listing, not polled yet.
    DISCOVERED = "discovered"
    #: Polled successfully.
    ACTIVE = "active"
    #: Paused by its breaker after too many refusals or unreadable pages, or by an operator.
    PAUSED = "paused"
    #: Finished, according to the source.
    COMPLETED = "completed"
    #: Finished for a day, no longer polled.
    ARCHIVED = "archived"


#: All allowed moves. A source may withdraw a result, hence COMPLETED → ACTIVE.
TRANSITIONS: dict[Phase, frozenset[Phase]] = {
    Phase.DISCOVERED: frozenset({Phase.ACTIVE, Phase.PAUSED, Phase.COMPLETED}),
    Phase.ACTIVE: frozenset({Phase.PAUSED, Phase.COMPLETED}),
    Phase.PAUSED: frozenset({Phase.ACTIVE, Phase.COMPLETED}),
    Phase.COMPLETED: frozenset({Phase.ACTIVE, Phase.ARCHIVED}),
    Phase.ARCHIVED: frozenset(),
}


def move(current: Phase, to: Phase) -> Phase:
    """Return the new phase; raise for a move that is not in the table, which is a bug."""
    if current is to:
        return current
    if to not in TRANSITIONS[current]:
        raise IllegalTransition(f"a match cannot move from {current} to {to}")
    return to


class MatchStatus(StrEnum):
    """The status of play, according to the source."""

    UPCOMING = "upcoming"
    LIVE = "live"
    #: Innings break, drinks, rain, stumps …: play will resume.
    BREAK = "break"
    COMPLETED = "completed"


#: Started and not finished.
IN_PLAY = frozenset({MatchStatus.LIVE, MatchStatus.BREAK})


class Priority(IntEnum):
    """The order of polls; lower goes first."""

    LIVE = 0
    IMMINENT = 1
    COMPLETED = 2


def priority_of(status: MatchStatus, start_at: datetime | None, now: datetime) -> Priority | None:
    """Return the priority of a match; `None` for one that starts more than an hour from now."""
    if status is MatchStatus.COMPLETED:
        return Priority.COMPLETED
    if status is not MatchStatus.UPCOMING:
        return Priority.LIVE
    if start_at is None or start_at - now <= IMMINENT_WITHIN:
        return Priority.IMMINENT
    return None


class MatchRow(Struct, frozen=True, kw_only=True):
    match_id: int
    ref: MatchRef
    phase: Phase
    status: MatchStatus
    title: str
    start_at: datetime | None
    owner: str | None
    #: Incremented by each claim; writes with an older epoch are rejected.
    epoch: int
    #: The highest event sequence number.
    seq: int
    created_at: datetime
    #: The last poll that stored a change; the last *poll* is in the hot view.
    updated_at: datetime | None
    completed_at: datetime | None
    sport: str
