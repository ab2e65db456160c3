"""Settings: one frozen tree, read once at the start. It mirrors `config/config.yaml`; the environment overrides it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, SecretStr, ValidationError

from longstop.errors import SettingsError
from longstop.fetching.browser.proxy_sessions import ProxyMode
from longstop.telemetry.events import Severity
from longstop.yaml_validation import (
    Group,
    Number,
    PathText,
    Wanted,
    Whole,
    describe_problems,
    is_group,
    parse_yaml,
    read_text,
    suggest,
)

#: Variables with these prefixes are ours: an unknown one is a mistake and is reported.
OUR_PREFIXES = ("LONGSTOP_", "SCRAPER_", "CIRCUIT_BREAKER_", "RETRY_")
#: The path of `config.yaml`; without it the defaults apply.
CONFIG_VARIABLE = "LONGSTOP_CONFIG"
#: The pipe through which a child notices that its supervisor died; set by the supervisor.
PARENT_FD_VARIABLE = "LONGSTOP_PARENT_FD"
#: The pipe for the heartbeats of a child; set by the supervisor.
BEAT_FD_VARIABLE = "LONGSTOP_BEAT_FD"
#: The directory of recorded bodies of real sites; used by tests.
RECORDED_VARIABLE = "LONGSTOP_RECORDED"

#: Labels as the resolver accepts them: others raise a UnicodeError there.
_HOST_PATTERN = r"^[A-Za-z0-9:-]{1,63}(\.[A-Za-z0-9:-]{1,63})*\.?$"
_PROXY_PATTERN = r"^$|^[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*$"
_HOST = Wanted("a host name or address such as 127.0.0.1")


class Env(NamedTuple):
    """The environment variable that sets a leaf."""

    name: str


class Lifecycle(Group):
    polling_interval: Annotated[Number, Field(ge=0.1, le=60), Env("POLLING_INTERVAL_SECONDS")] = 2.5
    """Seconds between two polls of a live match."""

    discovery_interval: Annotated[Number, Field(ge=0.1, le=3600), Env("DISCOVERY_INTERVAL_SECONDS")] = 60.0
    """Seconds between two polls of a site's live list while nothing is live."""

    busy_interval: Annotated[Number, Field(ge=0.1, le=60), Env("BUSY_INTERVAL_SECONDS")] = 2.0
    """Seconds between two polls of a match that changes in at least every second poll."""

    break_interval: Annotated[Number, Field(ge=0.1, le=600), Env("BREAK_INTERVAL_SECONDS")] = 30.0
    """Seconds between two polls of a match in a break; at most `discovery_interval` where the site has a listing."""

    break_after: Annotated[Number, Field(ge=1, le=3600), Env("BREAK_AFTER_SECONDS")] = 180.0
    """Seconds without a change after which a match counts as in a break, whatever the site says."""

    completed_interval: Annotated[Number, Field(ge=0.1, le=86400), Env("COMPLETED_INTERVAL_SECONDS")] = 300.0
    """Seconds between two polls of a completed match."""

    calm_after_errors: Annotated[Number, Field(ge=1, le=3600), Env("CALM_AFTER_ERRORS_SECONDS")] = 300.0
    """Seconds without errors after which a match with many errors is polled at its normal interval again."""

    not_found_memory: Annotated[Number, Field(ge=0.1, le=3600), Env("NOT_FOUND_SECONDS")] = 60.0
    """Seconds until a page that was not found is requested again."""

    max_lifetime_hours: Annotated[Number, Field(ge=0.001, le=168), Env("SCRAPER_MAX_LIFETIME_HOURS")] = 6.0
    """Hours after which polling of a match is restarted, at a quiet moment."""

    staleness_threshold: Annotated[Number, Field(ge=1, le=3600), Env("STALENESS_THRESHOLD_SECONDS")] = 300.0
    """Seconds without a successful poll after which polling of a match in play is restarted and an alert is sent."""

    important: Annotated[str, Env("IMPORTANT_MATCHES"), Wanted("comma-separated words")] = ""
    """Comma-separated words; a match with one of them in its title is polled more often."""


class Fetching(Group):
    concurrency_cap: Annotated[Whole, Field(ge=1, le=1000), Env("CONCURRENCY_CAP")] = 32
    """Concurrent polls over all sources, and connections of one source."""

    timeout: Annotated[Number, Field(ge=0.1, le=120), Env("FETCH_TIMEOUT_SECONDS")] = 10.0
    """Seconds that one fetch may take in total, including redirects and body."""

    max_body_bytes: Annotated[Whole, Field(ge=1024, le=100_000_000), Env("FETCH_MAX_BODY_BYTES")] = 5_000_000
    """Maximum bytes of one decoded body; a larger one is aborted."""


class MatchLimits(Group):
    poll_bytes: Annotated[Whole, Field(ge=100_000, le=1_000_000_000), Env("SCRAPER_MAX_POLL_BYTES")] = 12_000_000
    """Bytes of all pages of one poll; a poll that needs more is refused."""

    poll_pages: Annotated[Whole, Field(ge=10, le=100_000), Env("SCRAPER_MAX_POLL_PAGES")] = 600
    """Pages of one poll; the count restarts if it reads the match again; a five-day Test match has about 300."""

    items: Annotated[Whole, Field(ge=100, le=1_000_000), Env("SCRAPER_MAX_ITEMS")] = 2_000
    """Items of one list of a page, such as events, players or figures."""

    events: Annotated[Whole, Field(ge=100, le=1_000_000), Env("SCRAPER_MAX_EVENTS")] = 10_000
    """Events of a match, and items of all pages of one poll; a five-day Test match has about 3,500."""

    innings: Annotated[Whole, Field(ge=4, le=1000), Env("SCRAPER_MAX_INNINGS")] = 50
    """Innings of a match, super overs included."""

    overs: Annotated[Whole, Field(ge=50, le=10_000), Env("SCRAPER_MAX_OVERS")] = 500
    """Overs of an innings; the longest so far had 335."""

    entries: Annotated[Whole, Field(ge=10, le=1_000_000), Env("SCRAPER_MAX_ENTRIES")] = 5_000
    """Entries of a listing; a longer one is refused, and known matches are polled without it."""

    matches: Annotated[Whole, Field(ge=1, le=100_000), Env("SCRAPER_MAX_MATCHES")] = 2_000
    """Matches of one source that are watched, or ended within the last day; further ones are not watched."""

    text: Annotated[Whole, Field(ge=100, le=1_000_000), Env("SCRAPER_MAX_TEXT")] = 500
    """Characters of one text, such as a name."""

    payload_bytes: Annotated[Whole, Field(ge=10_000, le=100_000_000), Env("SCRAPER_MAX_PAYLOAD_BYTES")] = 1_000_000
    """Bytes of the payload of a match."""

    parse_seconds: Annotated[Number, Field(ge=0.1, le=60), Env("SCRAPER_MAX_PARSE_SECONDS")] = 5.0
    """Seconds for parsing a large page, or for comparing a large match with what is stored."""


class BrowserTimeouts(Group):
    page: Annotated[Number, Field(ge=0.1, le=300), Env("PAGE_TIMEOUT_SECONDS")] = 30.0
    """Seconds that a browser may take for one response in total."""

    navigation: Annotated[Number, Field(ge=0.1, le=300), Env("NAVIGATION_TIMEOUT_SECONDS")] = 30.0
    """Seconds until a loading page must deliver its first response."""

    hung: Annotated[Number, Field(ge=6, le=300), Env("BROWSER_HUNG_SECONDS")] = 30.0
    """Seconds without a response after which a browser counts as hung and is killed with all its processes."""


class BrowserLife(Group):
    max_pages: Annotated[Whole, Field(ge=1, le=1_000_000), Env("BROWSER_MAX_PAGES")] = 1000
    """Pages after which a browser is replaced."""

    max_hours: Annotated[Number, Field(ge=0.001, le=168), Env("BROWSER_MAX_HOURS")] = 6.0
    """Hours after which a browser is replaced."""

    max_memory_mb: Annotated[Whole, Field(ge=100, le=1_000_000), Env("BROWSER_MAX_MEMORY_MB")] = 1500
    """Megabytes of a browser's process tree, shared memory counted once, above which it is replaced."""

    max_processes: Annotated[Whole, Field(ge=5, le=100_000), Env("BROWSER_MAX_PROCESSES")] = 200
    """Processes of a browser above which it is replaced."""

    sweep_interval: Annotated[Number, Field(ge=1, le=86400), Env("BROWSER_SWEEP_SECONDS")] = 1800.0
    """Seconds between two sweeps for orphaned browsers."""


class Proxy(Group):
    host: Annotated[str, Field(pattern=_PROXY_PATTERN), Env("IPROYAL_HOST"), Wanted("a host name")] = ""
    """The proxy of browsers; empty for none. If it is set, no request bypasses it."""

    port: Annotated[Whole, Field(ge=1, le=65535), Env("IPROYAL_PORT")] = 12321
    """The port of the proxy."""

    username: Annotated[str, Env("IPROYAL_USERNAME"), Wanted("text")] = ""
    """The user name for the proxy."""

    password: Annotated[SecretStr, Env("IPROYAL_PASSWORD"), Wanted("text")] = SecretStr("")
    """The password for the proxy, without the suffixes for country and session."""

    country: Annotated[str, Field(pattern=r"^$|^[A-Za-z]{2}$"), Env("IPROYAL_COUNTRY"), Wanted("two letters")] = ""
    """The exit country as two letters; empty for any. The browser's language and time zone follow it."""

    mode: Annotated[ProxyMode, Env("SCRAPER_PROXY_MODE")] = ProxyMode.STICKY
    """Whether a session keeps its IP address (sticky) or gets a new one for each connection (rotating)."""

    sticky_ttl: Annotated[Number, Field(ge=60, le=86400), Env("SCRAPER_STICKY_TTL_SECONDS")] = 600.0
    """Seconds after which a sticky session is replaced."""

    sessions: Annotated[Whole, Field(ge=1, le=100), Env("SCRAPER_PROXY_SESSIONS")] = 2
    """Sessions per source, used in turn."""

    budget_mb: Annotated[Whole, Field(ge=0, le=10_000_000), Env("SCRAPER_PROXY_BUDGET_MB")] = 2048
    """Megabytes through the proxy per month, both ways; completed matches stop first, live ones last. 0: no limit."""


class Browser(Group):
    executable: Annotated[str, Field(pattern=r"^[^\x00]*$"), Env("BROWSER_EXECUTABLE"), Wanted("a path")] = ""
    """The path of Chromium; empty to search for one."""

    headless: Annotated[bool, Env("BROWSER_HEADLESS")] = True
    """Whether the full browser runs headless; false gives it a window, on a virtual display if needed."""

    use_cdp: Annotated[bool, Env("SCRAPER_USE_CDP")] = False
    """Whether Longstop starts Chromium itself and controls it through its debugging port."""

    process_per_site: Annotated[bool, Env("BROWSER_PROCESS_PER_SITE")] = False
    """Whether all pages of a site share one process: less memory, but a busy page delays the others."""

    timeouts: BrowserTimeouts = BrowserTimeouts()
    life: BrowserLife = BrowserLife()
    proxy: Proxy = Proxy()


class Memory(Group):
    soft_limit_mb: Annotated[Whole, Field(ge=32, le=1_000_000), Env("MEMORY_SOFT_LIMIT_MB")] = 1536
    """Megabytes of a process and its children, including browsers, above which it is asked to restart."""

    hard_limit_mb: Annotated[Whole, Field(ge=32, le=1_000_000), Env("MEMORY_HARD_LIMIT_MB")] = 2048
    """Megabytes of a process and its children above which it is killed and restarted."""

    min_available_mb: Annotated[Whole, Field(ge=0, le=1_000_000), Env("MEMORY_MIN_AVAILABLE_MB")] = 500
    """Megabytes that must be available on the machine and in the container before polling of a match starts."""


class ResourceSettings(Group):
    memory: Memory = Memory()


class CircuitBreaker(Group):
    threshold: Annotated[Whole, Field(ge=1, le=1000), Env("CIRCUIT_BREAKER_THRESHOLD")] = 5
    """Consecutive connection failures after which the circuit of a host opens."""

    timeout: Annotated[Number, Field(ge=0.1, le=3600), Env("CIRCUIT_BREAKER_TIMEOUT_SECONDS")] = 60.0
    """Seconds for which it stays open, except for one canary request at a time."""

    success_threshold: Annotated[Whole, Field(ge=1, le=1000), Env("CIRCUIT_BREAKER_SUCCESS_THRESHOLD")] = 5
    """Successful responses after which it closes."""

    canary_interval: Annotated[Number, Field(ge=0.1, le=60), Env("CIRCUIT_BREAKER_CANARY_SECONDS")] = 2.5
    """Seconds between two canary requests."""

    slow: Annotated[Number, Field(ge=0.1, le=120), Env("CIRCUIT_BREAKER_SLOW_SECONDS")] = 8.0
    """Seconds after which even a successful response counts as a failure."""

    pause_threshold: Annotated[Whole, Field(ge=1, le=1000), Env("PAUSE_THRESHOLD")] = 5
    """Consecutive refusals or unreadable responses within ten minutes after which the breaker of a match pauses it."""

    cool_down: Annotated[Number, Field(ge=0.1, le=3600), Env("COOL_DOWN_SECONDS")] = 300.0
    """Seconds for which a match is paused."""

    source_timeout: Annotated[Number, Field(ge=0.1, le=7200), Env("CIRCUIT_BREAKER_SOURCE_SECONDS")] = 900.0
    """Seconds for which the circuit of a site stays open after too many refusals."""

    layout_probe: Annotated[Number, Field(ge=0.1, le=3600), Env("LAYOUT_PROBE_SECONDS")] = 300.0
    """Seconds between two attempts while the pages of a site cannot be parsed."""


class Retry(Group):
    max_attempts: Annotated[Whole, Field(ge=1, le=20), Env("RETRY_MAX_ATTEMPTS")] = 5
    """Maximum retries of a request; one for a live match is sent three times in total."""

    base_delay: Annotated[Number, Field(ge=0.01, le=60), Env("RETRY_BASE_DELAY_SECONDS")] = 1.0
    """Seconds before the second attempt; doubled for each further one."""

    max_delay: Annotated[Number, Field(ge=0.01, le=600), Env("RETRY_MAX_DELAY_SECONDS")] = 16.0
    """Maximum seconds between two attempts."""


class Resilience(Group):
    circuit_breaker: CircuitBreaker = CircuitBreaker()
    retry: Retry = Retry()


class Logging(Group):
    level: Annotated[Severity, Env("LOG_LEVEL")] = Severity.INFO
    """The lowest severity that is logged."""


class Prometheus(Group):
    enabled: Annotated[bool, Env("ENABLE_PROMETHEUS_METRICS")] = True
    """Whether the scraper serves metrics."""

    host: Annotated[str, Field(pattern=_HOST_PATTERN), _HOST, Env("PROMETHEUS_HOST")] = "127.0.0.1"
    """The address of the metrics server; the default accepts only local connections."""

    port: Annotated[Whole, Field(ge=0, le=65535), Env("PROMETHEUS_PORT")] = 9090
    """The port of the metrics server; 0 for any free one, which is logged."""


class Webhook(Group):
    url: Annotated[str, Field(pattern=r"^$|^https?://\S+$"), Env("ALERT_WEBHOOK_URL"), Wanted("an http address")] = ""
    """The URL that alerts are posted to; empty for none."""

    secret: Annotated[SecretStr, Env("ALERT_WEBHOOK_SECRET"), Wanted("text")] = SecretStr("")
    """The key that signs alerts; empty for none."""


class Monitoring(Group):
    prometheus: Prometheus = Prometheus()
    logging: Logging = Logging()
    webhook: Webhook = Webhook()

    error_rate_threshold: Annotated[Whole, Field(ge=1, le=10000), Env("ERROR_RATE_THRESHOLD")] = 10
    """Errors of one match per minute above which an alert is sent."""

    keep_error_pages: Annotated[bool, Env("SNAPSHOTS")] = True
    """Whether pages that cannot be parsed are stored, with screenshots if a browser loaded them."""


class Supervision(Group):
    settled_after: Annotated[Number, Field(ge=0, le=3600), Env("LONGSTOP_SETTLED_SECONDS")] = 10.0
    """Seconds after which a process counts as started; one that dies sooner is restarted with a growing delay."""

    stop_within: Annotated[Number, Field(ge=0.1, le=600), Env("LONGSTOP_STOP_SECONDS")] = 30.0
    """Seconds in which all processes together must stop; then they are killed."""

    stalled_after: Annotated[Number, Field(ge=5, le=3600), Env("LONGSTOP_STALL_SECONDS")] = 90.0
    """Seconds without a successful poll of any match in play after which a scraper fails and restarts everything."""

    standstill_after: Annotated[Number, Field(ge=5, le=3600), Env("LONGSTOP_STANDSTILL_SECONDS")] = 30.0
    """Seconds without a heartbeat after which a process is killed and restarted; a starting one has 60."""


class Scraper(Group):
    lifecycle: Lifecycle = Lifecycle()
    fetching: Fetching = Fetching()
    limits: MatchLimits = MatchLimits()
    browser: Browser = Browser()
    resources: ResourceSettings = ResourceSettings()
    resilience: Resilience = Resilience()
    monitoring: Monitoring = Monitoring()


class Api(Group):
    host: Annotated[str, Field(pattern=_HOST_PATTERN), _HOST, Env("LONGSTOP_API_HOST")] = "127.0.0.1"
    """The address to listen on; the default accepts only local connections."""

    port: Annotated[Whole, Field(ge=0, le=65535), Env("LONGSTOP_API_PORT")] = 8700
    """The port to listen on; 0 for any free one."""

    connections: Annotated[Whole, Field(ge=1, le=100_000), Env("LONGSTOP_API_CONNECTIONS")] = 512
    """Open connections; one more closes the one that has waited longest for its client. Bounded by the descriptors."""

    connections_per_address: Annotated[Whole, Field(ge=1, le=100_000), Env("LONGSTOP_API_CONNECTIONS_PER_ADDRESS")] = (
        128
    )
    """Open connections of one address; a reverse proxy is one."""

    request_timeout: Annotated[Number, Field(ge=0.1, le=600), Env("LONGSTOP_API_REQUEST_SECONDS")] = 10.0
    """Seconds in which a request must begin after its connection, and its head and its body must each arrive."""

    write_timeout: Annotated[Number, Field(ge=0.1, le=600), Env("LONGSTOP_API_WRITE_SECONDS")] = 30.0
    """Seconds without progress after which a client that does not read its answer is cut off."""

    idle_timeout: Annotated[Number, Field(ge=0.1, le=3600), Env("LONGSTOP_API_IDLE_SECONDS")] = 30.0
    """Seconds between two requests after which a connection is closed."""

    token_ttl_hours: Annotated[Whole, Field(ge=1, le=8760), Env("TOKEN_TTL_HOURS")] = 24
    """Hours for which a token is valid."""


class Settings(Group):
    """Everything that an operator can configure."""

    data: Annotated[PathText, Env("LONGSTOP_DATA")] = Path("data")
    """The data directory; a relative path starts at the working directory."""

    sources: Annotated[PathText, Env("LONGSTOP_SOURCES")] = Path("config/sources.yaml")
    """The file that describes the sites; a relative path starts at the working directory."""

    scraper: Scraper = Scraper()
    api: Api = Api()
    supervision: Supervision = Supervision()


class Leaf(NamedTuple):
    """A setting's two names: its place in the tree and its environment variable."""

    path: tuple[str, ...]
    variable: str


def leaves(model: type[Group] = Settings, above: tuple[str, ...] = ()) -> Iterator[Leaf]:
    for name, field in model.model_fields.items():
        branch = is_group(field)
        if branch is not None:
            yield from leaves(branch, (*above, name))
        else:
            yield Leaf((*above, name), next(note.name for note in field.metadata if isinstance(note, Env)))


def known_variables() -> list[str]:
    others = (CONFIG_VARIABLE, PARENT_FD_VARIABLE, BEAT_FD_VARIABLE, RECORDED_VARIABLE)
    return [*(leaf.variable for leaf in leaves()), *others]


def load_settings(environ: Mapping[str, str], file: Mapping[str, Any], file_name: str = "config.yaml") -> Settings:
    """Return the settings from the environment and the file, or raise with all problems, one per line."""
    problems = _unknown_variables(environ)
    given = [leaf for leaf in leaves() if leaf.variable in environ]
    tree = dict(file)
    for leaf in given:
        tree = _put(tree, leaf.path, environ[leaf.variable])
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        names = {".".join(leaf.path): leaf.variable for leaf in given}
        problems += describe_problems(Settings, error, names, file_name)
    if problems:
        raise SettingsError("\n".join(problems))
    return settings


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Return the settings of this process: from its environment and the file that it names."""
    name = environ.get(CONFIG_VARIABLE)
    if name is None:
        return load_settings(environ, {})
    text = read_text(Path(name), f"set {CONFIG_VARIABLE} to the path of a settings file, or unset it")
    return load_settings(environ, parse_yaml(text, name), name)


def _unknown_variables(environ: Mapping[str, str]) -> list[str]:
    known = known_variables()
    unknown = sorted(name for name in environ if name.startswith(OUR_PREFIXES) and name not in known)
    return [f"{name} is unknown: {suggest(name, known)}" for name in unknown]


def _put(tree: Mapping[str, Any], path: tuple[str, ...], value: str) -> dict[str, Any]:
    """Return the tree with one leaf set. A value in place of a group stays: validation reports it."""
    name, *rest = path
    if not rest:
        return {**tree, name: value}
    branch = tree.get(name)
    if branch is not None and not isinstance(branch, Mapping):
        return dict(tree)
    return {**tree, name: _put(branch or {}, tuple(rest), value)}
