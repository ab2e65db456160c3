"""The checkup: measures this machine and runs every check, in the order in which problems are best fixed."""

import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from longstop.doctor import checks, holders
from longstop.doctor.checks import NO_SITE, BrowserStart, Check, ClockPair, InstallAdvice, skipped
from longstop.fetching.browser.base import BrowserKind
from longstop.fetching.browser.chromium import find_chromium, launch_arguments, missing_packages
from longstop.settings import Settings

#: Checks that need valid settings.
_NEED_SETTINGS = ("open files", NO_SITE, "data directory", "disk space", "API port", "metrics port", "browsers")
_RESPONSE_SECONDS = 5.0
_START_SECONDS = 15.0


def examine(environ: Mapping[str, str]) -> list[Check]:
    """Return the results of all checks. Takes a few seconds at most and changes nothing."""
    settings, settings_check = checks.check_settings(environ)
    install = InstallAdvice(os.geteuid() == 0, shutil.which("apt-get") is not None, sys.executable)
    if settings is None:
        return [*_machine(), settings_check, *map(skipped, _NEED_SETTINGS), *_programs(install, needs_display=False)]
    wanted = checks.browsers_wanted(settings)
    return [
        *_machine(),
        checks.check_open_files(open_files_limit(), settings.scraper.fetching.concurrency_cap),
        settings_check,
        *checks.check_sources(settings.sources),
        *_data(settings),
        *_ports(settings),
        *_browsers(settings, wanted, environ, install),
        *_programs(install, needs_display=BrowserKind.HEADED in wanted and not environ.get("DISPLAY")),
    ]


def _machine() -> list[Check]:
    return [
        checks.check_python(sys.version_info[:3]),
        checks.check_sqlite(*sqlite()),
        checks.check_fetching(*user_agent()),
        checks.check_clock(*clocks_apart()),
        checks.check_memory(psutil.virtual_memory().available),
    ]


def _data(settings: Settings) -> list[Check]:
    existing = checks.nearest_existing(settings.data)
    return [
        checks.check_data_directory(settings.data, holders.lock_holder(settings.data / "scraper.lock")),
        checks.check_space(str(existing.absolute()), free_bytes(existing)),
    ]


def _browsers(
    settings: Settings, wanted: Collection[BrowserKind], environ: Mapping[str, str], install: InstallAdvice
) -> list[Check]:
    executable = settings.scraper.browser.executable
    paths = {
        kind: Path(executable) if executable else find_chromium(kind, "", environ) for kind in checks.BROWSER_PACKAGES
    }
    starts = browser_starts(paths, environ)
    return [
        checks.check_browser_packages(missing_packages(), install, is_needed=bool(wanted)),
        *(
            checks.check_chromium(kind, starts[kind], install, is_needed=kind in wanted, is_root=install.is_root)
            for kind in checks.BROWSER_PACKAGES
        ),
    ]


def _programs(install: InstallAdvice, *, needs_display: bool) -> list[Check]:
    return [
        checks.check_program(
            program,
            shutil.which(program.name),
            install,
            is_needed=needs_display and program.name == checks.DISPLAY_PROGRAM,
        )
        for program in checks.PROGRAMS
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


def clocks() -> ClockPair:
    return ClockPair(time.time(), time.monotonic())


def clocks_apart(seconds: float = 0.1) -> tuple[ClockPair, ClockPair]:
    """Return both clocks now and a little later."""
    before = clocks()
    time.sleep(seconds)
    return before, clocks()


def sqlite() -> tuple[str | None, bool]:
    """Return the version of the store's SQLite and whether it is safe; `None` if it cannot be imported."""
    try:
        import apsw

        from longstop.storage.sqlite.connection import is_safe_sqlite
    except ImportError:
        return None, False
    version = apsw.sqlite_lib_version()
    return version, is_safe_sqlite(version)


def user_agent() -> tuple[str | None, str]:
    """Return the user agent that the HTTP library sends to a local server; else why it failed."""
    try:
        from curl_cffi import CurlOpt
        from curl_cffi.requests import Session

        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(_RESPONSE_SECONDS)
            threading.Thread(target=_echo_user_agent, args=(listener,), daemon=True).start()
            with Session(impersonate="chrome", trust_env=False, curl_options={CurlOpt.PROXY: ""}) as session:
                response = session.get(f"http://127.0.0.1:{listener.getsockname()[1]}/", timeout=_RESPONSE_SECONDS)
            return str(response.text), ""
    except Exception as error:  # whatever a broken library raises is the result
        return None, f"curl_cffi fails: {error}"


def browser_starts(
    paths: Mapping[BrowserKind, Path | None], environ: Mapping[str, str]
) -> dict[BrowserKind, BrowserStart | None]:
    """Return the outcome of starting each browser, all at once; `None` where there is none."""
    with ThreadPoolExecutor() as threads:
        started = {kind: threads.submit(_start, path, environ) for kind, path in paths.items() if path}
    return {kind: started[kind].result() if kind in started else None for kind in paths}


def _start(path: Path, environ: Mapping[str, str]) -> BrowserStart:
    """Start a browser with an empty page, as the scraper does: missing libraries only show at the start."""
    if not os.access(path, os.X_OK):
        return BrowserStart(str(path), "no such program")
    with TemporaryDirectory(prefix="longstop-", ignore_cleanup_errors=True) as profile:
        program = subprocess.Popen(  # noqa: S603, the operator's own browser
            [
                str(path),
                *launch_arguments(is_root=os.geteuid() == 0),
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
            return BrowserStart(str(path), f"no output for {_START_SECONDS:g} s")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()
    return BrowserStart(str(path), "" if b"<html>" in output else _last_error(errors, program.returncode))


def _last_error(errors: bytes, status: int) -> str:
    lines = errors.decode(errors="replace").strip().splitlines()
    fatal = [line for line in lines if "FATAL" in line or "error while loading" in line]
    shown = "".join(letter for letter in (fatal or lines or [""])[-1] if letter.isprintable())
    return shown[:200] or f"it exits with {status}"


def _echo_user_agent(listener: socket.socket) -> None:
    """Respond to one request with its user agent."""
    with suppress(OSError):
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(_RESPONSE_SECONDS)
            request = b""
            while b"\r\n\r\n" not in request and (more := connection.recv(65536)):
                request += more
            agents = [line for line in request.split(b"\r\n") if line.lower().startswith(b"user-agent:")]
            agent = agents[0].partition(b":")[2].strip() if agents else b""
            connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(agent), agent))


def open_files_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 2**31


def free_bytes(path: Path) -> int:
    """Return the free space there for this user."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize
