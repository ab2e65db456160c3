"""Automatic recoveries, and their observed outcomes."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class RecoveryKind(StrEnum):
    #: A dead process was restarted.
    RESTART = "restart"
    #: A process was stopped with a signal, and restarted.
    SOFT_RESTART = "soft_restart"
    #: A process was killed with its descendants, and restarted.
    HARD_RESTART = "hard_restart"
    #: A scraper restarted its connections, watches and browsers.
    RECYCLE = "recycle"
    #: A browser was replaced.
    BROWSER_RECYCLE = "browser_recycle"
    #: Orphan processes were killed.
    SWEEP = "sweep"
    #: The watch of a match was restarted.
    WATCH_RESTART = "watch_restart"


class RecoveryOutcome(StrEnum):
    #: Not observed yet.
    PENDING = "pending"
    RECOVERED = "recovered"
    NOT_RECOVERED = "not_recovered"


class Recovery(Struct, frozen=True, kw_only=True):
    id: str
    kind: RecoveryKind
    #: The reason.
    trigger: str
    #: The affected process, node or source.
    subject: str
    #: The process that did it.
    process: str
    began_at: datetime
    pids_before: tuple[int, ...] = ()
    #: From the start until the outcome was observed; `None` before that.
    duration_seconds: float | None = None
    #: `None` when not measured.
    pids_after: tuple[int, ...] | None = None
    outcome: RecoveryOutcome = RecoveryOutcome.PENDING
    #: What was observed.
    observed: str | None = None
    #: The number of equal entries it represents: itself, and older ones that were dropped.
    count: int = 1
