"""Events of the browser fetcher."""

from longstop.telemetry.events import Severity, Telemetry
from longstop.telemetry.events.sources import SourceTelemetry


class BrowserStarted(SourceTelemetry, frozen=True, kw_only=True):
    name = "browser.started"
    generation: int
    kind: str
    pid: int
    version: str
    seconds: float


class BrowserUnsandboxed(SourceTelemetry, frozen=True, kw_only=True):
    """Chromium runs as root, which is only possible without its sandbox."""

    name = "browser.unsandboxed"
    severity = Severity.WARN


class BrowserFailed(SourceTelemetry, frozen=True, kw_only=True):
    """A browser died or is unresponsive; its processes are killed, and the next request starts another one."""

    name = "browser.failed"
    severity = Severity.ERROR
    generation: int
    pid: int | None
    reason: str


class BrowserRecycled(SourceTelemetry, frozen=True, kw_only=True):
    """A browser is replaced by a new one; it closes after its last request."""

    name = "browser.recycled"
    generation: int
    #: One of `pages`, `age`, `memory`, `processes`, `timeouts`, `latency`, `hosts`, `kind`, `asked`.
    reason: str
    pages: int
    age_seconds: float
    processes: int
    rss_bytes: int | None
    pss_bytes: int | None


class BrowserClosed(SourceTelemetry, frozen=True, kw_only=True):
    name = "browser.closed"
    generation: int
    #: `closed` if it exited on request, `killed` if it had to be killed.
    how: str
    seconds: float
    #: Processes that could not be killed.
    left: int


class PageDiscarded(SourceTelemetry, frozen=True, kw_only=True):
    name = "page.discarded"
    severity = Severity.WARN
    reason: str


class PageRotated(SourceTelemetry, frozen=True, kw_only=True):
    name = "page.rotated"
    severity = Severity.DEBUG
    answers: int
    decoded_bytes: int


class PageRotationFailed(SourceTelemetry, frozen=True, kw_only=True):
    """A long-used page could not be replaced. It stays in use, and replacing it is retried later."""

    name = "page.rotation_failed"
    severity = Severity.WARN
    reason: str


class PageMeasured(SourceTelemetry, frozen=True, kw_only=True):
    name = "page.measured"
    severity = Severity.DEBUG
    request: str
    mode: str
    bytes_in_est: int
    requests_total: int
    requests_blocked: int
    captured: int


class ModeChanged(SourceTelemetry, frozen=True, kw_only=True):
    name = "mode.changed"
    before: str
    after: str
    reason: str


class ProxyRotated(SourceTelemetry, frozen=True, kw_only=True):
    name = "proxy.rotated"
    #: Our own name of the session; no part of the credential.
    session: str
    reason: str


class ProxyQuarantined(SourceTelemetry, frozen=True, kw_only=True):
    name = "proxy.quarantined"
    severity = Severity.WARN
    session: str
    reason: str
    seconds: float


class BudgetReached(Telemetry, frozen=True, kw_only=True):
    name = "proxy.budget_reached"
    severity = Severity.WARN
    percent: int
    used_bytes: int
    budget_bytes: int
    #: Priorities that may not use the proxy any more this month.
    stopped: tuple[str, ...]
