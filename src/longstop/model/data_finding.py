"""Findings: problems in the data of a match, such as missing events."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class FindingKind(StrEnum):
    """Kinds of problems in the data of a source."""

    #: Events are missing.
    GAP = "gap"
    #: The totals of events and scoreboard differ.
    MISMATCH = "mismatch"
    #: The stored match was replaced: the source kept contradicting it.
    REBUILT = "rebuilt"


class Finding(Struct, frozen=True, kw_only=True):
    """A problem in the data of a match: stored, served, and closed when it is resolved."""

    kind: FindingKind
    #: Where: in cricket `1` for an innings or `2:14` for over 14 of the second innings; in football `home` or `away`.
    place: str
    detail: str


class StoredFinding(Struct, frozen=True, kw_only=True):
    finding: Finding
    opened_at: datetime
    closed_at: datetime | None
