"""A recovery: something that was done without a person, and what was seen to come of it."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from longstop.errors import IllegalTransition


class RecoveryKind(StrEnum):
    """What was done."""

    #: A process that had died was started again.
    RESTART = "restart"
    #: A process was asked to stop, and was started again.
    SOFT_RESTART = "soft_restart"
    #: A process was killed with all that it had started, and was started again.
    HARD_RESTART = "hard_restart"
    #: A scraper made afresh all that it asks with: connections, watches, browsers.
    RECYCLE = "recycle"
    #: A browser was replaced.
    BROWSER_RECYCLE = "browser_recycle"
    #: Processes that nobody owned any more were ended.
    SWEEP = "sweep"
    #: The watch of a match was begun anew.
    WATCH_RESTART = "watch_restart"


class RecoveryOutcome(StrEnum):
    """What came of it."""

    #: Not seen yet.
    PENDING = "pending"
    RECOVERED = "recovered"
    NOT_RECOVERED = "not_recovered"


#: An outcome is seen once.
TRANSITIONS: dict[RecoveryOutcome, frozenset[RecoveryOutcome]] = {
    RecoveryOutcome.PENDING: frozenset({RecoveryOutcome.RECOVERED, RecoveryOutcome.NOT_RECOVERED}),
    RecoveryOutcome.RECOVERED: frozenset(),
    RecoveryOutcome.NOT_RECOVERED: frozenset(),
}


class Recovery(Struct, frozen=True, kw_only=True):
    """One entry of the audit."""

    id: str
    kind: RecoveryKind
    #: Why, in a sentence.
    trigger: str
    #: What it was done to: a process, a node, a source.
    subject: str
    #: The process that did it.
    process: str
    began_at: datetime
    pids_before: tuple[int, ...] = ()
    #: From the beginning until the outcome was seen; `None` before that.
    duration_seconds: float | None = None
    #: `None` when nobody looked.
    pids_after: tuple[int, ...] | None = None
    outcome: RecoveryOutcome = RecoveryOutcome.PENDING
    #: What was seen, in a sentence.
    observed: str | None = None
    #: How many of the same it stands for: itself, and older ones that are no longer listed.
    count: int = 1


def check_outcome(before: RecoveryOutcome, after: RecoveryOutcome) -> None:
    """Raise where an outcome is told twice, or never told at all."""
    if after not in TRANSITIONS[before]:
        raise IllegalTransition(f"the outcome of a recovery cannot go from {before} to {after}")
