"""The checkup: measures this machine and runs every check, in the order in which problems are best fixed."""

import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from longstop.doctor import checks, holders
from longstop.doctor.checks import NO_SITE, Check, skipped
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.fetching.browser.chromium_path_and_arguments import find_chromium, launch_arguments, missing_packages
from longstop.settings import Settings

#: Checks that need valid settings.
_NEED_SETTINGS = ("open files", NO_SITE, "data directory", "disk space", "API port", "metrics port", "browsers")
_START_SECONDS = 15.0


def examine(environ: Mapping[str, str]) -> list[Check]:
    """Return the results of all checks. Takes a few seconds at most and changes nothing."""
    settings, settings_check = checks.check_settings(environ)
    machine = [
        checks.check_fetching(fetching_problem()),
        checks.check_clock(time.time()),
        checks.check_memory(psutil.virtual_memory().available),
    ]
    if settings is None:
        return [*machine, settings_check, *map(skipped, _NEED_SETTINGS)]
    return [
        *machine,
        checks.check_open_files(open_files_limit(), settings.scraper.fetching.concurrency_cap),
        settings_check,
        *checks.check_sources(settings.sources),
        *_data(settings),
        *_ports(settings),
        *_browsers(settings, environ),
    ]


def _data(settings: Settings) -> list[Check]:
    existing = checks.nearest_existing(settings.data)
    return [
        checks.check_data_directory(settings.data, holders.lock_holder(settings.data / "scraper.lock")),
        checks.check_space(str(existing.absolute()), shutil.disk_usage(existing).free),
    ]


def _browsers(settings: Settings, environ: Mapping[str, str]) -> list[Check]:
    wanted, executable = checks.browsers_wanted(settings), settings.scraper.browser.executable
    paths = {
        kind: Path(executable) if executable else find_chromium(kind, "", environ) for kind in checks.BROWSER_PACKAGES
    }
    # All at once: each may take seconds.
    with ThreadPoolExecutor() as threads:
        problems = dict(zip(paths, threads.map(lambda path: start_problem(path, environ), paths.values()), strict=True))
    needs_display = BrowserKind.HEADED in wanted and not environ.get("DISPLAY")
    return [
        checks.check_browser_packages(missing_packages(), is_needed=bool(wanted)),
        *(checks.check_chromium(kind, path, problems[kind], is_needed=kind in wanted) for kind, path in paths.items()),
        checks.check_display(shutil.which(checks.DISPLAY_PROGRAM), is_needed=needs_display),
    ]


def _ports(settings: Settings) -> list[Check]:
    api, metrics, data = settings.api, settings.scraper.monitoring.prometheus, settings.data
    holder = holders.listener_on(api.host, api.port)
    found = [checks.check_port("API port", api.port, "LONGSTOP_API_PORT", holder, data, is_needed=True)]
    if metrics.enabled:
        holder = holders.listener_on(metrics.host, metrics.port)
        found.append(checks.check_port("metrics port", metrics.port, "PROMETHEUS_PORT", holder, data, is_needed=False))
    return found


# --- measurements --------------------------------------------------------------------------------------------------


def fetching_problem() -> str:
    """Return why the HTTP library cannot be used; empty if it can. It loads a C library of its own."""
    try:
        from curl_cffi.requests import Session

        Session(impersonate="chrome").close()
    except Exception as error:  # whatever a broken library raises is the result
        return f"curl_cffi fails: {error}"
    return ""


def start_problem(path: Path | None, environ: Mapping[str, str]) -> str:
    """Return why a browser does not start with an empty page: missing libraries only show at the start."""
    if path is None or not os.access(path, os.X_OK):
        return "no such program"
    with TemporaryDirectory(prefix="longstop-", ignore_cleanup_errors=True) as profile:
        program = subprocess.Popen(  # noqa: S603, the operator's own browser
            [
                str(path),
                *launch_arguments(),
                *("--headless", f"--user-data-dir={profile}", "--dump-dom", "about:blank"),
            ],
            env={**environ, "HOME": profile},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            output, errors = program.communicate(timeout=_START_SECONDS)
        except subprocess.TimeoutExpired:
            return f"no output for {_START_SECONDS:g} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()
    return "" if b"<html>" in output else _last_error(errors, program.returncode)


def _last_error(errors: bytes, status: int) -> str:
    lines = errors.decode(errors="replace").strip().splitlines()
    fatal = [line for line in lines if "FATAL" in line or "error while loading" in line]
    return (fatal or lines or [""])[-1][:200] or f"it exits with {status}"


def open_files_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 2**31
