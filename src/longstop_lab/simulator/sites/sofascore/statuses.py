"""The status of a match: code, description and type."""

from msgspec import Struct

from longstop_lab.simulator.football.board import FootballBoard


class Status(Struct, frozen=True):
    code: int
    description: str
    type: str


_STATUSES = {
    "Not started": Status(0, "Not started", "notstarted"),
    "1st half": Status(6, "1st half", "inprogress"),
    "2nd half": Status(7, "2nd half", "inprogress"),
    "Halftime": Status(31, "Halftime", "inprogress"),
    "Awaiting extra time": Status(32, "Awaiting extra time", "inprogress"),
    "Extra time halftime": Status(33, "Extra time halftime", "inprogress"),
    "Awaiting penalties": Status(34, "Awaiting penalties", "inprogress"),
    "1st extra": Status(41, "1st extra", "inprogress"),
    "2nd extra": Status(42, "2nd extra", "inprogress"),
    "Penalties": Status(50, "Penalties", "inprogress"),
    "Postponed": Status(60, "Postponed", "postponed"),
    "Interrupted": Status(80, "Interrupted", "interrupted"),
    # The type of a match that was called off is the same whether or not some of it was played.
    "Abandoned": Status(90, "Abandoned", "canceled"),
    "Ended": Status(100, "Ended", "finished"),
    "AET": Status(110, "AET", "finished"),
    "AP": Status(120, "AP", "finished"),
}
#: The statuses of matches in the live list.
LISTED = frozenset(name for name, status in _STATUSES.items() if status.type in ("inprogress", "interrupted"))
#: The status of a match with low coverage, in either half.
_STARTED = Status(20, "Started", "inprogress")

#: The part of the match that each status belongs to: the first and last minute, and how its end is called.
PARTS = {
    "1st half": (1, 45, "HT"),
    "2nd half": (46, 90, "FT"),
    "1st extra": (91, 105, "ET HT"),
    "2nd extra": (106, 120, "AET"),
    "Penalties": (120, 120, "PEN"),
}


def status_of(board: FootballBoard, *, is_low_coverage: bool) -> Status:
    if is_low_coverage and board.status in ("1st half", "2nd half"):
        return _STARTED
    return _STATUSES[board.status or "Not started"]


def has_begun(board: FootballBoard) -> bool:
    return "1st half" in board.since


def is_over(board: FootballBoard) -> bool:
    return status_of(board, is_low_coverage=False).type in ("finished", "canceled")


def last_minute(board: FootballBoard) -> int:
    """Return the latest minute with an event; 0 before the first."""
    return max((getattr(shown, "minute", 0) for shown in board.live.values()), default=0)


def minute_now(board: FootballBoard, elapsed: float) -> int:
    """Return the minute that is played, or the last known one while none is."""
    known = last_minute(board)
    if board.status not in PARTS:
        return known
    first, last, _ = PARTS[board.status]
    return min(last, max(known, first + int((elapsed - board.since[board.status]) // 60)))
