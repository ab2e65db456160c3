"""The checks. Each takes what was measured and returns a result with advice."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from longstop.doctor.holders import Holder
from longstop.errors import SettingsError, StorageError
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.fetching.browser.chromium_path_and_arguments import INSTALL, PACKAGES
from longstop.settings import Settings, read_settings
from longstop.sources.base import SourceConfig
from longstop.sources.load_sources import check_hosts, load_sources, make_source
from longstop.storage.directory import is_private
from longstop.storage.sqlite.connection import check_readable
from longstop.storage.sqlite.load_sql_and_migrate import Database

#: The wall clock cannot be before the day on which this was written.
EARLIEST_SECONDS = 1_793_491_200.0  # 2026-11-01
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
    name: str
    verdict: CheckStatus
    found: str
    #: What to do; empty if nothing.
    advice: str = ""
    #: Whether Longstop cannot run without it; everything else is optional.
    is_needed: bool = True

    @property
    def is_problem(self) -> bool:
        return self.is_needed and self.verdict is not CheckStatus.OK


#: The Debian and Ubuntu packages of the browsers; a headed one is the same program as a headless one.
BROWSER_PACKAGES = {BrowserKind.SHELL: "chromium-headless-shell", BrowserKind.HEADLESS: "chromium"}
#: Headed browsers need it on a machine without a display.
DISPLAY_PROGRAM, DISPLAY_PACKAGE = "Xvfb", "xvfb"


def install_advice(package: str) -> str:
    """Return the command that installs a program; elsewhere than on Debian and Ubuntu the package has the same name."""
    return f"run {'' if os.geteuid() == 0 else 'sudo '}apt-get install {package}"


def is_ready(checks: Iterable[Check]) -> bool:
    return not any(check.is_problem for check in checks)


def has_no_site(checks: Iterable[Check]) -> bool:
    """Return whether no site is enabled. That is a choice, but then `up` has nothing to scrape."""
    return any(check.name == NO_SITE and check.verdict is CheckStatus.MISSING for check in checks)


def skipped(name: str) -> Check:
    """Return the result of a check that needs valid settings."""
    found = "not checked: the settings are not valid"
    return Check(name=name, verdict=CheckStatus.SKIPPED, found=found, is_needed=False)


def _missing(name: str, found: str, advice: str, *, is_needed: bool) -> Check:
    return Check(name=name, verdict=CheckStatus.MISSING, found=found, advice=advice, is_needed=is_needed)


def _check(name: str, found: str, advice: str, *, is_good: bool, is_needed: bool = True) -> Check:
    """Return the result for something that exists and is either usable or not."""
    verdict = CheckStatus.OK if is_good else CheckStatus.WRONG
    return Check(name=name, verdict=verdict, found=found, advice="" if is_good else advice, is_needed=is_needed)


# --- the machine ------------------------------------------------------------------------------------------------------


def check_fetching(problem: str) -> Check:
    advice = "run pip install --force-reinstall curl-cffi; it needs a Linux with glibc"
    return _check("fetching", problem or "curl_cffi can impersonate Chrome", advice, is_good=not problem)


def check_clock(wall_seconds: float) -> Check:
    found = f"{datetime.fromtimestamp(wall_seconds, UTC):%Y-%m-%d %H:%M} UTC"
    advice = "this date is in the past: set the clock, and keep it right with chrony"
    return _check("clock", found, advice, is_good=wall_seconds >= EARLIEST_SECONDS)


def check_memory(available_bytes: int) -> Check:
    found = f"{available_bytes / 1e6:,.0f} MB available"
    advice = f"free {MIN_MEMORY_BYTES / 1e6:,.0f} MB: stop other programs, or use a larger machine"
    return _check("memory", found, advice, is_good=available_bytes >= MIN_MEMORY_BYTES)


def check_open_files(limit: int, concurrency_cap: int) -> Check:
    needed = FILES_BESIDE_CONNECTIONS + 2 * concurrency_cap
    found = f"the limit is {limit}, {needed} are needed"
    return _check("open files", found, f"run ulimit -n {needed} before the start", is_good=limit >= needed)


def check_space(place: str, free_bytes: int) -> Check:
    found = f"{free_bytes / 1e9:,.1f} GB free at {place}"
    advice = f"free {MIN_SPACE_BYTES / 1e9:,.0f} GB, or choose another directory with --data or LONGSTOP_DATA"
    return _check("disk space", found, advice, is_good=free_bytes >= MIN_SPACE_BYTES)


def check_browser_packages(missing: Sequence[str], *, is_needed: bool) -> Check:
    """Check whether the extra [browser] is installed. HTTP alone does not need it."""
    name = "browser, packages"
    if not missing:
        return _check(name, ", ".join(PACKAGES), "", is_good=True, is_needed=is_needed)
    found = f"{', '.join(missing)} missing; needed for sites that are scraped with a browser"
    return _missing(name, found, f"run {sys.executable} -m {INSTALL}", is_needed=is_needed)


def check_chromium(kind: BrowserKind, path: Path | None, problem: str, *, is_needed: bool) -> Check:
    """Check whether a kind of browser starts; `problem` says why it does not. HTTP alone does not need one."""
    name = f"browser, {kind}"
    if path is None:
        found = "not installed; needed for sites that deliver their data to a browser only"
        advice = f"{install_advice(BROWSER_PACKAGES[kind])}, or {sys.executable} -m playwright install chromium"
        return _missing(name, found, advice, is_needed=is_needed)
    sandbox = ", as root without its sandbox" if os.geteuid() == 0 else ""
    found = f"{path} does not start: {problem}" if problem else f"{path} starts{sandbox}"
    advice = "run the program in a terminal to see why, or set BROWSER_EXECUTABLE to another Chromium"
    return _check(name, found, advice, is_good=not problem, is_needed=is_needed)


def check_display(path: str | None, *, is_needed: bool) -> Check:
    if path is not None:
        return _check(DISPLAY_PROGRAM, path, "", is_good=True, is_needed=is_needed)
    found = "not installed; used for headed browsers on a machine without a display"
    return _missing(DISPLAY_PROGRAM, found, install_advice(DISPLAY_PACKAGE), is_needed=is_needed)


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
        if isinstance(error.__cause__, FileNotFoundError):
            return [_missing("sources", f"{path} not found", _one_line(error), is_needed=True)]
        return [_check("sources", f"{path} is not valid", _one_line(error), is_good=False)]
    enabled = [config for config in configs if config.enabled]
    if enabled:
        return [_check_source(config) for config in enabled]
    known = ", ".join(config.domain_id for config in configs) or "none"
    found = f"no site is enabled in {path} (known: {known})"
    advice = "name who permitted scraping under permission and set enabled: true; longstop demo needs no site"
    return [_missing(NO_SITE, found, advice, is_needed=False)]


def _check_source(config: SourceConfig) -> Check:
    name = f"source {config.domain_id}"
    try:
        check_hosts(make_source(config), config)
    except SettingsError as error:
        return _check(name, "cannot be used", _one_line(error), is_good=False)
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
    """Check whether `up` can use or create the directory; this creates nothing."""
    existing = nearest_existing(path)
    other = "choose another directory with --data or LONGSTOP_DATA"
    if not existing.is_dir():
        return _check("data directory", f"{existing} is a file, not a directory", other, is_good=False)
    # Not the live view: it is rebuilt.
    files = {path / f"{database}.db": database for database in (Database.MATCHES, Database.OPS)}
    for each in (existing, *(file for file in files if os.access(file, os.F_OK))):
        if not os.access(each, os.R_OK | os.W_OK | (os.X_OK if each.is_dir() else 0)):
            found = f"{each} is not readable and writable"
            return _check("data directory", found, f"run as its owner, fix its mode, or {other}", is_good=False)
    try:
        if existing == path:
            is_private(path)
            for file, database in files.items():
                check_readable(file, database)
    except StorageError as error:
        return _check("data directory", f"{path} cannot be used", str(error), is_good=False)
    state = f"{path} is writable" if existing == path else f"{path} will be created"
    used = f", in use by the scraper {holder}" if holder else ""
    return _check("data directory", state + used, "", is_good=True)


def check_port(name: str, port: int, variable: str, holder: Holder | None, data: Path, *, is_needed: bool) -> Check:
    """Check a port. One that this node or a demo uses is fine: the demo frees it at its end."""
    is_own = holder is not None and holder.data == data.resolve()
    if port == 0:
        found = "any free port will be used"
    elif holder is None:
        found = f"{port} is free"
    elif holder.is_demo:
        found = f"{port} is in use by the running demo (pid {holder.pid}), which frees it when it ends"
    else:
        found = f"{port} is in use by {holder}" + (": this node is running" if is_own else "")
    is_good = port == 0 or holder is None or holder.is_demo or is_own
    advice = f"stop that process, or choose another port with {variable}"
    return _check(name, found, advice, is_good=is_good, is_needed=is_needed)


def nearest_existing(path: Path) -> Path:
    """Return the path itself, or its nearest parent directory that exists."""
    return next(each for each in (path, *path.absolute().parents) if os.access(each, os.F_OK))


def _one_line(error: SettingsError) -> str:
    return "; ".join(str(error).splitlines())
