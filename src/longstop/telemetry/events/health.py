"""How a scraper is, and what was done about it."""

from longstop.telemetry.events.base import Severity, Telemetry


class RecoveryStarted(Telemetry, frozen=True, kw_only=True):
    """Something is done without a person; what comes of it is told later, under the same id."""

    name = "recovery.started"
    severity = Severity.WARN
    id: str
    kind: str
    trigger: str
    subject: str


class RecoverySucceeded(Telemetry, frozen=True, kw_only=True):
    """It was seen to help."""

    name = "recovery.succeeded"
    id: str
    kind: str
    subject: str
    observed: str
    duration_seconds: float


class RecoveryFailed(Telemetry, frozen=True, kw_only=True):
    """It was not seen to help."""

    name = "recovery.failed"
    severity = Severity.ERROR
    id: str
    kind: str
    subject: str
    observed: str
    duration_seconds: float


class HealthRecovered(Telemetry, frozen=True, kw_only=True):
    """A scraper is healthy again."""

    name = "health.recovered"
    before: str


class HealthDegraded(Telemetry, frozen=True, kw_only=True):
    """Matches in play are older than they should be, or rest."""

    name = "health.degraded"
    severity = Severity.WARN
    before: str
    reason: str


class HealthFailing(Telemetry, frozen=True, kw_only=True):
    """A match in play was not read for two minutes, or none was for ninety seconds."""

    name = "health.failing"
    severity = Severity.CRITICAL
    before: str
    reason: str


class HealthRecovering(Telemetry, frozen=True, kw_only=True):
    """What is asked with was made afresh; the first good look ends it."""

    name = "health.recovering"
    severity = Severity.WARN
    before: str
    reason: str
