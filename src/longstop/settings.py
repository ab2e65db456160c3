"""Settings: one frozen tree, read once at the edge. It mirrors `config/config.yaml`; the environment wins over it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, SecretStr, ValidationError

from longstop.config_file import (
    Group,
    Number,
    PathText,
    Wanted,
    Whole,
    is_group,
    parse_yaml,
    read_text,
    say_problems,
    suggest,
)
from longstop.errors import SettingsError
from longstop.fetching.browser.proxies import ProxyMode
from longstop.telemetry.events import Severity

#: Names that begin like this are ours: one we do not know is a mistake, and a mistake must not be silent.
OUR_PREFIXES = ("LONGSTOP_", "SCRAPER_", "CIRCUIT_BREAKER_", "RETRY_")
#: Where `config.yaml` is; without it the defaults count.
CONFIG_VARIABLE = "LONGSTOP_CONFIG"
#: The pipe through which a child process notices its supervisor's death; set by the supervisor.
PARENT_FD_VARIABLE = "LONGSTOP_PARENT_FD"
#: The pipe through which a child process gives its supervisor signs of life; set by the supervisor.
BEAT_FD_VARIABLE = "LONGSTOP_BEAT_FD"
#: Where recorded bodies of real sites are; read by tests.
RECORDED_VARIABLE = "LONGSTOP_RECORDED"

_HOST_PATTERN = r"^[A-Za-z0-9.:-]+$"
_HOST = Wanted("a host name or address such as 127.0.0.1")


class Env(NamedTuple):
    """The environment variable that sets a leaf."""

    name: str


class Lifecycle(Group):
    polling_interval: Annotated[Number, Field(ge=0.1, le=60), Env("POLLING_INTERVAL_SECONDS")] = 2.5
    """Seconds between two looks at a live match."""

    discovery_interval: Annotated[Number, Field(ge=0.1, le=3600), Env("DISCOVERY_INTERVAL_SECONDS")] = 60.0
    """Seconds between two looks at a site's live list while nothing is live."""

    busy_interval: Annotated[Number, Field(ge=0.1, le=60), Env("BUSY_INTERVAL_SECONDS")] = 2.0
    """Seconds between two looks at a match of which every second look or more brings something new."""

    break_interval: Annotated[Number, Field(ge=0.1, le=600), Env("BREAK_INTERVAL_SECONDS")] = 30.0
    """Seconds between two looks at a match in a break."""

    break_after: Annotated[Number, Field(ge=1, le=3600), Env("BREAK_AFTER_SECONDS")] = 180.0
    """Seconds without a change after which a match is taken to be in a break, whatever the site says."""

    completed_interval: Annotated[Number, Field(ge=0.1, le=86400), Env("COMPLETED_INTERVAL_SECONDS")] = 300.0
    """Seconds between two looks at a match that is over."""

    calm_after_errors: Annotated[Number, Field(ge=1, le=3600), Env("CALM_AFTER_ERRORS_SECONDS")] = 300.0
    """Seconds that must pass quietly before a match that had many errors is looked at as often as before."""

    not_found_memory: Annotated[Number, Field(ge=0.1, le=3600), Env("NOT_FOUND_SECONDS")] = 60.0
    """Seconds for which a page that was not found is not asked for again."""

    max_lifetime_hours: Annotated[Number, Field(ge=0.001, le=168), Env("SCRAPER_MAX_LIFETIME_HOURS")] = 6.0
    """Hours after which the watch of a match is begun anew, in a quiet moment."""

    staleness_threshold: Annotated[Number, Field(ge=1, le=3600), Env("STALENESS_THRESHOLD_SECONDS")] = 300.0
    """Seconds without a good look after which the watch of a match in play is begun anew, and an alert is sent."""

    important: Annotated[str, Env("IMPORTANT_MATCHES"), Wanted("words, with commas between them")] = ""
    """Words, with commas between them; a match with one of them in its title is looked at faster."""


class Fetching(Group):
    concurrency_cap: Annotated[Whole, Field(ge=1, le=1000), Env("CONCURRENCY_CAP")] = 32
    """Fetches in flight at one time, over all sources."""

    timeout: Annotated[Number, Field(ge=0.1, le=120), Env("FETCH_TIMEOUT_SECONDS")] = 10.0
    """Seconds that one fetch may take in all, redirects and body included."""

    max_body_bytes: Annotated[Whole, Field(ge=1024, le=100_000_000), Env("FETCH_MAX_BODY_BYTES")] = 5_000_000
    """Bytes of one decoded body; a larger one is refused while it streams."""


class BrowserTimeouts(Group):
    page: Annotated[Number, Field(ge=0.1, le=300), Env("PAGE_TIMEOUT_SECONDS")] = 30.0
    """Seconds that a browser may take for one answer in all."""

    navigation: Annotated[Number, Field(ge=0.1, le=300), Env("NAVIGATION_TIMEOUT_SECONDS")] = 30.0
    """Seconds until a page that is loaded gives its first answer."""

    hung: Annotated[Number, Field(ge=6, le=300), Env("BROWSER_HUNG_SECONDS")] = 30.0
    """Seconds of silence after which a browser is taken to hang, and is ended with all of its processes."""


class BrowserLife(Group):
    max_pages: Annotated[Whole, Field(ge=1, le=1_000_000), Env("BROWSER_MAX_PAGES")] = 1000
    """Pages after which another browser takes over."""

    max_hours: Annotated[Number, Field(ge=0.001, le=168), Env("BROWSER_MAX_HOURS")] = 6.0
    """Hours after which another browser takes over."""

    max_memory_mb: Annotated[Whole, Field(ge=100, le=1_000_000), Env("BROWSER_MAX_MEMORY_MB")] = 1500
    """Megabytes of a browser's whole tree, shared ones counted once; above them another takes over."""

    max_processes: Annotated[Whole, Field(ge=5, le=100_000), Env("BROWSER_MAX_PROCESSES")] = 200
    """Processes of a browser; above them another takes over."""

    sweep_interval: Annotated[Number, Field(ge=1, le=86400), Env("BROWSER_SWEEP_SECONDS")] = 1800.0
    """Seconds between two sweeps for browsers of ours that nobody owns any more."""


class Proxy(Group):
    host: Annotated[str, Field(pattern=r"^$|^[A-Za-z0-9.-]+$"), Env("IPROYAL_HOST"), Wanted("a host name")] = ""
    """The proxy that browsers go through; empty for none. With one set nothing leaves without it."""

    port: Annotated[Whole, Field(ge=1, le=65535), Env("IPROYAL_PORT")] = 12321
    """The proxy's port."""

    username: Annotated[str, Env("IPROYAL_USERNAME"), Wanted("text")] = ""
    """The user name at the proxy."""

    password: Annotated[SecretStr, Env("IPROYAL_PASSWORD"), Wanted("text")] = SecretStr("")
    """The password at the proxy, without the parts for country and session."""

    country: Annotated[str, Field(pattern=r"^$|^[A-Za-z]{2}$"), Env("IPROYAL_COUNTRY"), Wanted("two letters")] = ""
    """The country to appear in, in two letters; empty for any. The browser's language and clock follow it."""

    mode: Annotated[ProxyMode, Env("SCRAPER_PROXY_MODE")] = ProxyMode.STICKY
    """Whether a session keeps its address (sticky) or gets another one for each connection (rotating)."""

    sticky_ttl: Annotated[Number, Field(ge=60, le=86400), Env("SCRAPER_STICKY_TTL_SECONDS")] = 600.0
    """Seconds after which a sticky session is given up for a new one."""

    sessions: Annotated[Whole, Field(ge=1, le=100), Env("SCRAPER_PROXY_SESSIONS")] = 2
    """Sessions that take turns, for each source."""

    budget_mb: Annotated[Whole, Field(ge=0, le=10_000_000), Env("SCRAPER_PROXY_BUDGET_MB")] = 2048
    """Megabytes through the proxy in a month, both ways; finished matches stop first, live ones last. 0: no end."""


class Browser(Group):
    executable: Annotated[str, Env("BROWSER_EXECUTABLE"), Wanted("a path")] = ""
    """The Chromium to start; empty takes the one that is found."""

    headless: Annotated[bool, Env("BROWSER_HEADLESS")] = True
    """Whether a whole browser runs without a window; false gives it one, on a display of its own if need be."""

    use_cdp: Annotated[bool, Env("SCRAPER_USE_CDP")] = False
    """Whether Chromium is started by us and spoken to through its debugging port."""

    process_per_site: Annotated[bool, Env("BROWSER_PROCESS_PER_SITE")] = False
    """Whether all pages of a site share one process: less memory, but a page that spins holds up the others."""

    timeouts: BrowserTimeouts = BrowserTimeouts()
    life: BrowserLife = BrowserLife()
    proxy: Proxy = Proxy()


class Memory(Group):
    soft_limit_mb: Annotated[Whole, Field(ge=32, le=1_000_000), Env("MEMORY_SOFT_LIMIT_MB")] = 1536
    """Megabytes of a process and all that it has started, its browsers too; above them it is asked to begin anew."""

    hard_limit_mb: Annotated[Whole, Field(ge=32, le=1_000_000), Env("MEMORY_HARD_LIMIT_MB")] = 2048
    """Megabytes of a process and all that it has started; above them it is killed and started again."""

    min_available_mb: Annotated[Whole, Field(ge=0, le=1_000_000), Env("MEMORY_MIN_AVAILABLE_MB")] = 500
    """Megabytes that must be available, on the machine and in the container, for a new watch to begin."""


class Resources(Group):
    memory: Memory = Memory()


class CircuitBreaker(Group):
    threshold: Annotated[Whole, Field(ge=1, le=1000), Env("CIRCUIT_BREAKER_THRESHOLD")] = 5
    """Connection failures in a row after which a host is left alone."""

    timeout: Annotated[Number, Field(ge=0.1, le=3600), Env("CIRCUIT_BREAKER_TIMEOUT_SECONDS")] = 60.0
    """Seconds for which it is left alone, but for one canary at a time."""

    success_threshold: Annotated[Whole, Field(ge=1, le=1000), Env("CIRCUIT_BREAKER_SUCCESS_THRESHOLD")] = 5
    """Good answers after which all are let through again."""

    canary_interval: Annotated[Number, Field(ge=0.1, le=60), Env("CIRCUIT_BREAKER_CANARY_SECONDS")] = 2.5
    """Seconds between two canaries."""

    slow: Annotated[Number, Field(ge=0.1, le=120), Env("CIRCUIT_BREAKER_SLOW_SECONDS")] = 8.0
    """Seconds after which even a good answer counts as a failure."""

    pause_threshold: Annotated[Whole, Field(ge=1, le=1000), Env("PAUSE_THRESHOLD")] = 5
    """Refusals or unreadable answers in a row, within ten minutes, after which a match is paused."""

    cool_down: Annotated[Number, Field(ge=0.1, le=3600), Env("COOL_DOWN_SECONDS")] = 300.0
    """Seconds for which a match is paused."""

    source_timeout: Annotated[Number, Field(ge=0.1, le=7200), Env("CIRCUIT_BREAKER_SOURCE_SECONDS")] = 900.0
    """Seconds for which a whole site is left alone after it refused too much."""

    layout_probe: Annotated[Number, Field(ge=0.1, le=3600), Env("LAYOUT_PROBE_SECONDS")] = 300.0
    """Seconds between two tries while a site's pages cannot be read."""


class Retry(Group):
    max_attempts: Annotated[Whole, Field(ge=1, le=20), Env("RETRY_MAX_ATTEMPTS")] = 5
    """How often a request is sent again at most; a live match's is sent three times in all."""

    base_delay: Annotated[Number, Field(ge=0.01, le=60), Env("RETRY_BASE_DELAY_SECONDS")] = 1.0
    """Seconds before the second attempt; they double with each further one."""

    max_delay: Annotated[Number, Field(ge=0.01, le=600), Env("RETRY_MAX_DELAY_SECONDS")] = 16.0
    """Seconds that lie between two attempts at most."""


class Resilience(Group):
    circuit_breaker: CircuitBreaker = CircuitBreaker()
    retry: Retry = Retry()


class Logging(Group):
    level: Annotated[Severity, Env("LOG_LEVEL")] = Severity.INFO
    """The least severity that is written."""


class Prometheus(Group):
    enabled: Annotated[bool, Env("ENABLE_PROMETHEUS_METRICS")] = True
    """Whether the scraper serves metrics."""

    host: Annotated[str, Field(pattern=_HOST_PATTERN), _HOST, Env("PROMETHEUS_HOST")] = "127.0.0.1"
    """The address of the metrics; the default is reached from this machine only."""

    port: Annotated[Whole, Field(ge=0, le=65535), Env("PROMETHEUS_PORT")] = 9090
    """The port of the metrics; 0 takes any free one, and the log says which."""


class Webhook(Group):
    url: Annotated[str, Field(pattern=r"^$|^https?://\S+$"), Env("ALERT_WEBHOOK_URL"), Wanted("an http address")] = ""
    """Where alerts are posted; empty for nowhere."""

    secret: Annotated[SecretStr, Env("ALERT_WEBHOOK_SECRET"), Wanted("text")] = SecretStr("")
    """The key that signs alerts; empty for none."""


class Monitoring(Group):
    prometheus: Prometheus = Prometheus()
    logging: Logging = Logging()
    webhook: Webhook = Webhook()

    error_rate_threshold: Annotated[Whole, Field(ge=1, le=10000), Env("ERROR_RATE_THRESHOLD")] = 10
    """Errors of one match within a minute; more than these raise an alert."""

    keep_error_pages: Annotated[bool, Env("SNAPSHOTS")] = True
    """Whether pages that cannot be read are kept, and pictures of them where a browser reads the site."""


class Supervision(Group):
    settled_after: Annotated[Number, Field(ge=0, le=3600), Env("LONGSTOP_SETTLED_SECONDS")] = 10.0
    """Seconds a process must live to count as come up well; one that dies sooner, again, is started more slowly."""

    stop_within: Annotated[Number, Field(ge=0.1, le=600), Env("LONGSTOP_STOP_SECONDS")] = 30.0
    """Seconds in which all processes together must have stopped; what has not is killed."""

    stalled_after: Annotated[Number, Field(ge=5, le=3600), Env("LONGSTOP_STALL_SECONDS")] = 90.0
    """Seconds without a good look at any match in play after which a scraper fails and makes everything afresh."""

    standstill_after: Annotated[Number, Field(ge=5, le=3600), Env("LONGSTOP_STANDSTILL_SECONDS")] = 30.0
    """Seconds without a sign of life after which a process is killed and started again; one that starts has 60."""


class Scraper(Group):
    lifecycle: Lifecycle = Lifecycle()
    fetching: Fetching = Fetching()
    browser: Browser = Browser()
    resources: Resources = Resources()
    resilience: Resilience = Resilience()
    monitoring: Monitoring = Monitoring()


class Api(Group):
    host: Annotated[str, Field(pattern=_HOST_PATTERN), _HOST, Env("LONGSTOP_API_HOST")] = "127.0.0.1"
    """The address to listen on; the default is reached from this machine only."""

    port: Annotated[Whole, Field(ge=0, le=65535), Env("LONGSTOP_API_PORT")] = 8700
    """The port to listen on; 0 takes any free one."""

    token_ttl_hours: Annotated[Whole, Field(ge=1, le=8760), Env("TOKEN_TTL_HOURS")] = 24
    """Hours for which a token is good."""


class Settings(Group):
    """All that an operator can choose."""

    data: Annotated[PathText, Env("LONGSTOP_DATA")] = Path("data")
    """The directory of the data files; relative ones start at the working directory."""

    sources: Annotated[PathText, Env("LONGSTOP_SOURCES")] = Path("config/sources.yaml")
    """The file that describes the sites; relative ones start at the working directory."""

    scraper: Scraper = Scraper()
    api: Api = Api()
    supervision: Supervision = Supervision()


class Leaf(NamedTuple):
    """A setting's two names: its place in the tree and its environment variable."""

    path: tuple[str, ...]
    variable: str


def leaves(model: type[Group] = Settings, above: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """Yield every setting of the tree."""
    for name, field in model.model_fields.items():
        branch = is_group(field)
        if branch is not None:
            yield from leaves(branch, (*above, name))
        else:
            yield Leaf((*above, name), next(note.name for note in field.metadata if isinstance(note, Env)))


def known_variables() -> list[str]:
    """Return every environment variable that means something to us."""
    return [leaf.variable for leaf in leaves()] + [
        CONFIG_VARIABLE,
        PARENT_FD_VARIABLE,
        BEAT_FD_VARIABLE,
        RECORDED_VARIABLE,
    ]


def load_settings(environ: Mapping[str, str], file: Mapping[str, Any], file_name: str = "config.yaml") -> Settings:
    """Return the settings that the environment and the file's tree make, or raise with every problem, one a line."""
    problems = _unknown_variables(environ)
    given = [leaf for leaf in leaves() if leaf.variable in environ]
    tree = dict(file)
    for leaf in given:
        tree = _put(tree, leaf.path, environ[leaf.variable])
    try:
        settings = Settings.model_validate(_without_empty_groups(tree))
    except ValidationError as error:
        names = {".".join(leaf.path): leaf.variable for leaf in given}
        problems += say_problems(Settings, error, names, file_name)
    if problems:
        raise SettingsError("\n".join(problems))
    return settings


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Return the settings of this process: its environment, and the file named there."""
    name = environ.get(CONFIG_VARIABLE)
    if name is None:
        return load_settings(environ, {})
    text = read_text(Path(name), f"write the path of a settings file into {CONFIG_VARIABLE}, or leave it out")
    return load_settings(environ, parse_yaml(text, name), name)


def _unknown_variables(environ: Mapping[str, str]) -> list[str]:
    known = known_variables()
    unknown = sorted(name for name in environ if name.startswith(OUR_PREFIXES) and name not in known)
    return [f"{name} is unknown: {suggest(name, known)}" for name in unknown]


def _put(tree: Mapping[str, Any], path: tuple[str, ...], value: str) -> dict[str, Any]:
    """Return the tree with one leaf set. A branch that is no branch stays as it is: the check will name it."""
    name, *rest = path
    if not rest:
        return {**tree, name: value}
    branch = tree.get(name)
    if branch is not None and not isinstance(branch, Mapping):
        return dict(tree)
    return {**tree, name: _put(branch or {}, tuple(rest), value)}


def _without_empty_groups(tree: Mapping[str, Any], model: type[Group] = Settings) -> dict[str, Any]:
    """Return the tree without the groups whose every line is commented out: YAML reads those as null."""
    kept: dict[str, Any] = {}
    for name, value in tree.items():
        branch = is_group(model.model_fields[name]) if name in model.model_fields else None
        if branch is None or not (value is None or isinstance(value, Mapping)):
            kept[name] = value
        elif value is not None:
            kept[name] = _without_empty_groups(value, branch)
    return kept
