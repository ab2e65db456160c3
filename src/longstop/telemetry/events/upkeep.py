"""What happens to what is kept and told: store, live view, metrics, alerts, orders."""

from longstop.telemetry.events.base import Severity, Telemetry


class ReloadFailed(Telemetry, frozen=True, kw_only=True):
    """What the operator says of a source could not be read again; it goes on as before."""

    name = "reload.failed"
    severity = Severity.WARN
    source: str
    reason: str


class AlertUndelivered(Telemetry, frozen=True, kw_only=True):
    """An alert could not be delivered to the webhook."""

    name = "alert.undelivered"
    severity = Severity.ERROR
    alert: str
    attempts: int
    reason: str


class ScreenshotSaved(Telemetry, frozen=True, kw_only=True):
    """A page that could not be read was photographed."""

    name = "screenshot.saved"
    source: str
    #: Where, below the data directory.
    page: str


class MetricsServed(Telemetry, frozen=True, kw_only=True):
    name = "metrics.served"
    host: str
    port: int


class MetricsUnavailable(Telemetry, frozen=True, kw_only=True):
    """The metrics' port cannot be had; the watching goes on without it, and the port is asked for again later."""

    name = "metrics.unavailable"
    severity = Severity.WARN
    host: str
    port: int
    reason: str


class HotViewFailed(Telemetry, frozen=True, kw_only=True):
    """The live view could not be written; nothing is lost, but the ages that the API shows grow."""

    name = "hot_view.failed"
    severity = Severity.ERROR
    error_message: str


class StoreFailed(Telemetry, frozen=True, kw_only=True):
    """The store did not take or give a match; the others go on, and this one is tried again."""

    name = "store.failed"
    severity = Severity.ERROR
    ref: str
    error_type: str
    error_message: str


class CommandAnswered(Telemetry, frozen=True, kw_only=True):
    """Somebody asked the scraper for something, and this came of it."""

    name = "command.answered"
    id: int
    kind: str
    asked_by: str
    state: str
    answer: str
    seconds: float


class RecordsFailed(Telemetry, frozen=True, kw_only=True):
    """What is written about the work could not be; the work itself goes on."""

    name = "records.failed"
    severity = Severity.ERROR
    #: Which records: `errors`, `match logs`, `recoveries`, `health log` or `commands`.
    records: str
    error_message: str
