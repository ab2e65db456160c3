"""What the browser engine tells."""

from longstop.telemetry.events import Severity, Telemetry


class BrowserStarted(Telemetry, frozen=True, kw_only=True):
    name = "browser.started"
    source: str
    generation: int
    kind: str
    pid: int
    version: str
    seconds: float


class BrowserUnsandboxed(Telemetry, frozen=True, kw_only=True):
    """Chromium runs as root, and as root only without its sandbox."""

    name = "browser.unsandboxed"
    severity = Severity.WARN
    source: str


class BrowserFailed(Telemetry, frozen=True, kw_only=True):
    """A browser died or does not answer; its processes are ended, and the next request starts another one."""

    name = "browser.failed"
    severity = Severity.ERROR
    source: str
    generation: int
    pid: int | None
    reason: str


class BrowserRecycled(Telemetry, frozen=True, kw_only=True):
    """A browser has served enough: another one takes over, and it ends when its last request has."""

    name = "browser.recycled"
    source: str
    generation: int
    #: Why: `pages`, `age`, `memory`, `processes`, `timeouts`, `latency` or `asked`.
    reason: str
    pages: int
    age_seconds: float
    processes: int
    rss_bytes: int | None
    pss_bytes: int | None


class BrowserClosed(Telemetry, frozen=True, kw_only=True):
    """A browser and all of its processes are gone."""

    name = "browser.closed"
    source: str
    generation: int
    #: How far the ladder had to be climbed: `closed` when it went by itself, `killed` when it had to be ended.
    how: str
    seconds: float
    #: Processes that could not be ended.
    left: int


class PageDiscarded(Telemetry, frozen=True, kw_only=True):
    """A page crashed, hung or was no longer needed in a way that nobody planned."""

    name = "page.discarded"
    severity = Severity.WARN
    source: str
    reason: str


class PageRotated(Telemetry, frozen=True, kw_only=True):
    """A page that has been answered much was opened a second time, and the new one has taken its place."""

    name = "page.rotated"
    severity = Severity.DEBUG
    source: str
    answers: int
    decoded_bytes: int


class PageRotationFailed(Telemetry, frozen=True, kw_only=True):
    """A page that has been answered much could not be opened a second time: it goes on, and is tried again later."""

    name = "page.rotation_failed"
    severity = Severity.WARN
    source: str
    reason: str


class PageMeasured(Telemetry, frozen=True, kw_only=True):
    """What one answer cost on the network."""

    name = "page.measured"
    severity = Severity.DEBUG
    source: str
    request: str
    mode: str
    bytes_in_est: int
    requests_total: int
    requests_blocked: int
    captured: int


class ModeChanged(Telemetry, frozen=True, kw_only=True):
    """A source is read in a cheaper way than before, or has to be read in a dearer one."""

    name = "mode.changed"
    source: str
    before: str
    after: str
    reason: str


class ProxyRotated(Telemetry, frozen=True, kw_only=True):
    """A session with the proxy is given up for a new one."""

    name = "proxy.rotated"
    source: str
    #: Our own name of the session; nothing of the credential.
    session: str
    reason: str


class ProxyQuarantined(Telemetry, frozen=True, kw_only=True):
    """A session with the proxy fails so often that others are used for a while."""

    name = "proxy.quarantined"
    severity = Severity.WARN
    source: str
    session: str
    reason: str
    seconds: float


class BudgetReached(Telemetry, frozen=True, kw_only=True):
    """So much of the month's bytes through the proxy is used that somebody should know, or some must stop."""

    name = "proxy.budget_reached"
    severity = Severity.WARN
    percent: int
    used_bytes: int
    budget_bytes: int
    #: The priorities that may use nothing more this month.
    stopped: tuple[str, ...]


class OrphanKilled(Telemetry, frozen=True, kw_only=True):
    """A process of ours that nobody owned any more was ended."""

    name = "orphan.killed"
    severity = Severity.WARN
    pid: int
    program: str
    rss_bytes: int | None
