"""The checks. Each takes what was measured and returns a result with advice."""

import os
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from longstop.doctor.holders import Holder
from longstop.errors import SettingsError
from longstop.fetching.browser.base import BrowserKind
from longstop.fetching.browser.chromium import INSTALL, PACKAGES
from longstop.settings import Settings, read_settings
from longstop.sources.base import SourceConfig
from longstop.sources.registry import load_sources, make_source

MIN_PYTHON = (3, 11)
#: The wall clock cannot be before the day on which this was written.
EARLIEST_SECONDS = 1_793_491_200.0  # 2026-11-01
#: How far wall clock and monotonic clock may drift apart during the measurement.
MAX_DRIFT_SECONDS = 0.05
MIN_MEMORY_BYTES = 500_000_000
MIN_SPACE_BYTES = 1_000_000_000
#: Files, logs, pipes and the store; connections come on top.
FILES_BESIDE_CONNECTIONS = 200
#: The check that finds no enabled site: `up` needs one, `demo` does not.
NO_SITE = "sources"


class CheckStatus(StrEnum):
    OK = "ok"
    #: It does not exist.
    MISSING = "missing"
    #: It exists but is not usable.
    WRONG = "wrong"
    #: It was not checked, because it depends on something that is wrong.
    SKIPPED = "skipped"


class Check(Struct, frozen=True, kw_only=True):
    """The result of one check."""

    name: str
    verdict: CheckStatus
    found: str
    #: What to do; empty if nothing.
    advice: str = ""
    #: Whether Longstop cannot run without it; everything else is optional or for tests.
    is_needed: bool = True

    @property
    def is_problem(self) -> bool:
        return self.is_needed and self.verdict is not CheckStatus.OK


class ClockPair(Struct, frozen=True):
    """Both clocks at the same moment."""

    wall: float
    monotonic: float


class Program(Struct, frozen=True):
    """A program that tests or some sites need."""

    name: str
    package: str
    used_for: str


class BrowserStart(Struct, frozen=True):
    """The outcome of starting a browser."""

    path: str
    #: Why it does not start; empty if it does.
    problem: str = ""


class InstallAdvice(Struct, frozen=True):
    """The exact commands that install a program on this machine."""

    is_root: bool
    #: Whether packages come from Debian or Ubuntu.
    has_apt: bool
    #: The Python that runs this process.
    python: str

    def for_program(self, package: str) -> str:
        if not self.has_apt:
            return f"install {package} with the package manager of this system"
        return f"run {'' if self.is_root else 'sudo '}apt-get install {package}"

    def for_browser(self, package: str) -> str:
        download = f"{self.python} -m playwright install chromium"
        if not self.has_apt:
            return f"run {download}"
        return self.for_program(package) if self.is_root else f"{self.for_program(package)}; without sudo: {download}"


#: The Debian and Ubuntu packages of the browsers; a headed one is the same program as a headless one.
BROWSER_PACKAGES = {BrowserKind.SHELL: "chromium-headless-shell", BrowserKind.HEADLESS: "chromium"}
DISPLAY_PROGRAM = "Xvfb"
PROGRAMS = (
    Program("openssl", "openssl", "certificates in tests of fetching"),
    Program("strace", "strace", "kills at exact system calls in tests of the store"),
    Program(DISPLAY_PROGRAM, "xvfb", "headed browsers on a machine without a display"),
    Program("faketime", "faketime", "clock jumps in tests"),
    Program("promtool", "prometheus", "checks of the metrics in tests"),
)


def is_ready(checks: Iterable[Check]) -> bool:
    """Return whether everything that is needed is there."""
    return not any(check.is_problem for check in checks)


def has_no_site(checks: Iterable[Check]) -> bool:
    """Return whether no site is enabled. That is a choice, but then `up` has nothing to scrape."""
    return any(check.name == NO_SITE and check.verdict is CheckStatus.MISSING for check in checks)


def skipped(name: str) -> Check:
    """Return the result of a check that needs valid settings."""
    found = "not checked: the settings are not valid"
    return Check(name=name, verdict=CheckStatus.SKIPPED, found=found, is_needed=False)


def _check(name: str, found: str, advice: str, *, is_good: bool, is_needed: bool = True) -> Check:
    """Return the result for something that exists and is either usable or not."""
    verdict = CheckStatus.OK if is_good else CheckStatus.WRONG
    return Check(name=name, verdict=verdict, found=found, advice="" if is_good else advice, is_needed=is_needed)


# --- the machine ------------------------------------------------------------------------------------------------------


def check_python(version: tuple[int, int, int]) -> Check:
    found = ".".join(map(str, version))
    return _check("Python", found, "install Python 3.11 or newer", is_good=version >= MIN_PYTHON)


def check_sqlite(version: str | None, is_safe: bool) -> Check:
    if version is None:
        advice = "run pip install apsw"
        return Check(name="SQLite", verdict=CheckStatus.MISSING, found="apsw cannot be imported", advice=advice)
    advice = "this version can corrupt a file that several processes use: run pip install --upgrade apsw"
    return _check("SQLite", f"{version}, bundled with apsw", advice, is_good=is_safe)


def check_fetching(user_agent: str | None, reason: str) -> Check:
    """Check the user agent that the HTTP library sent to a local server."""
    advice = "run pip install --force-reinstall curl-cffi; it needs a Linux with glibc"
    if user_agent is None:
        return Check(name="fetching", verdict=CheckStatus.MISSING, found=reason, advice=advice)
    found = "curl_cffi impersonates Chrome" if "Chrome/" in user_agent else f"curl_cffi sends {user_agent[:60]!r}"
    return _check("fetching", found, advice, is_good="Chrome/" in user_agent)


def check_clock(before: ClockPair, after: ClockPair) -> Check:
    drift = (after.wall - before.wall) - (after.monotonic - before.monotonic)
    if before.wall < EARLIEST_SECONDS:
        return _check("clock", "the date is in the past", "set the clock, and keep it right with chrony", is_good=False)
    return _check(
        "clock",
        f"wall and monotonic clock agree to {abs(drift) * 1000:.0f} ms",
        "the wall clock jumps: keep it right with chrony",
        is_good=abs(drift) <= MAX_DRIFT_SECONDS,
    )


def check_memory(available_bytes: int) -> Check:
    return _check(
        "memory",
        f"{available_bytes / 1e6:,.0f} MB available",
        f"free {MIN_MEMORY_BYTES / 1e6:,.0f} MB: stop other programs, or use a larger machine",
        is_good=available_bytes >= MIN_MEMORY_BYTES,
    )


def check_open_files(limit: int, concurrency_cap: int) -> Check:
    needed = FILES_BESIDE_CONNECTIONS + 2 * concurrency_cap
    found = f"the limit is {limit}, {needed} are needed"
    return _check("open files", found, f"run ulimit -n {needed} before the start", is_good=limit >= needed)


def check_space(place: str, free_bytes: int) -> Check:
    return _check(
        "disk space",
        f"{free_bytes / 1e9:,.1f} GB free at {place}",
        f"free {MIN_SPACE_BYTES / 1e9:,.0f} GB, or choose another directory with LONGSTOP_DATA",
        is_good=free_bytes >= MIN_SPACE_BYTES,
    )


def check_browser_packages(missing: Sequence[str], install: InstallAdvice, *, is_needed: bool) -> Check:
    """Check whether the extra [browser] is installed. HTTP alone does not need it."""
    name = "browser, packages"
    if not missing:
        return Check(name=name, verdict=CheckStatus.OK, found=", ".join(PACKAGES), is_needed=is_needed)
    found = f"{', '.join(missing)} missing; needed for sites that are scraped with a browser"
    advice = f"run {install.python} -m {INSTALL}"
    return Check(name=name, verdict=CheckStatus.MISSING, found=found, advice=advice, is_needed=is_needed)


def check_chromium(
    kind: BrowserKind, start: BrowserStart | None, install: InstallAdvice, *, is_needed: bool, is_root: bool
) -> Check:
    """Check whether a kind of browser starts. HTTP alone does not need one."""
    name = f"browser, {kind}"
    if start is None:
        found = "not installed; needed for sites that deliver their data to a browser only"
        advice = install.for_browser(BROWSER_PACKAGES[kind])
        return Check(name=name, verdict=CheckStatus.MISSING, found=found, advice=advice, is_needed=is_needed)
    if start.problem:
        found = f"{start.path} does not start: {start.problem}"
        advice = "run the program in a terminal to see why, or set BROWSER_EXECUTABLE to another Chromium"
        return _check(name, found, advice, is_good=False, is_needed=is_needed)
    sandbox = ", as root without its sandbox" if is_root else ""
    return _check(name, f"{start.path} starts{sandbox}", "", is_good=True, is_needed=is_needed)


def check_program(program: Program, path: str | None, install: InstallAdvice, *, is_needed: bool = False) -> Check:
    if path is not None:
        return Check(name=program.name, verdict=CheckStatus.OK, found=path, is_needed=is_needed)
    return Check(
        name=program.name,
        verdict=CheckStatus.MISSING,
        found=f"not installed; used for {program.used_for}",
        advice=install.for_program(program.package),
        is_needed=is_needed,
    )


# --- the operator's choices -------------------------------------------------------------------------------------------


def check_settings(environ: Mapping[str, str]) -> tuple[Settings | None, Check]:
    """Return the settings, or `None` if they are not valid: checks of the defaults would mislead."""
    try:
        settings = read_settings(environ)
    except SettingsError as error:
        return None, _check("settings", "not valid", _one_line(error), is_good=False)
    return settings, _check("settings", "environment and file are valid", "", is_good=True)


def check_sources(path: Path) -> list[Check]:
    """Check the sources file, and each site that is enabled in it."""
    try:
        configs = load_sources(path)
    except SettingsError as error:
        return [_check("sources", f"{path} is not valid", _one_line(error), is_good=False)]
    enabled = [config for config in configs if config.enabled]
    if enabled:
        return [_check_source(config) for config in enabled]
    known = ", ".join(config.domain_id for config in configs) or "none"
    return [
        Check(
            name=NO_SITE,
            verdict=CheckStatus.MISSING,
            found=f"no site is enabled in {path} (known: {known})",
            advice="name who permitted scraping under permission and set enabled: true; longstop demo needs no site",
            is_needed=False,
        )
    ]


def _check_source(config: SourceConfig) -> Check:
    name = f"source {config.domain_id}"
    try:
        make_source(config)
    except SettingsError as error:
        return _check(name, "cannot be created", _one_line(error), is_good=False)
    permission = f"permission: {config.permission}" if config.permission else "private address, no permission needed"
    transport = f"with a browser ({config.browser})" if config.browser else "over HTTP"
    return _check(name, f"enabled, scraped {transport}; {permission}", "", is_good=True)


def browsers_wanted(settings: Settings) -> set[BrowserKind]:
    """Return the kinds of browser that enabled sites need; a headed one includes the headless one."""
    try:
        configs = load_sources(settings.sources)
    except SettingsError:
        return set()
    kinds = {config.browser for config in configs if config.enabled and config.browser}
    if BrowserKind.HEADLESS in kinds and not settings.scraper.browser.headless:
        kinds.add(BrowserKind.HEADED)
    return kinds | ({BrowserKind.HEADLESS} if BrowserKind.HEADED in kinds else set())


def check_data_directory(path: Path, holder: Holder | None) -> Check:
    """Check whether the directory can be used or created; this creates nothing."""
    if path.exists() and not path.is_dir():
        advice = "choose another path with LONGSTOP_DATA"
        return _check("data directory", f"{path} is not a directory", advice, is_good=False)
    existing = nearest_existing(path)
    if not os.access(existing, os.R_OK | os.W_OK | os.X_OK):
        advice = "make it writable, or choose another directory with LONGSTOP_DATA"
        return _check("data directory", f"{existing} is not writable", advice, is_good=False)
    state = f"{path} is writable" if existing == path else f"{path} will be created"
    used = f", in use by the scraper {holder}" if holder else ""
    return _check("data directory", state + used, "", is_good=True)


def check_port(name: str, port: int, variable: str, holder: Holder | None, data: Path, *, is_needed: bool) -> Check:
    """Check a port. One that a Longstop process of the same data directory uses is fine."""
    if port == 0:
        return _check(name, "any free port will be used", "", is_good=True, is_needed=is_needed)
    if holder is None:
        return _check(name, f"{port} is free", "", is_good=True, is_needed=is_needed)
    return _check(
        name,
        f"{port} is in use by {holder}",
        f"stop that process, or choose another port with {variable}",
        is_good=holder.data == data.resolve(),
        is_needed=is_needed,
    )


def nearest_existing(path: Path) -> Path:
    """Return the path itself, or its nearest parent directory that exists."""
    return next(each for each in (path, *path.absolute().parents) if each.exists())


def _one_line(error: SettingsError) -> str:
    return "; ".join(str(error).splitlines())
