"""What a check needs to know, asked of the machine. Nothing here changes anything, or asks another machine."""

import os
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from longstop.doctor.machine import BrowserStart, Moment
from longstop.fetching.browser.base import BrowserKind
from longstop.fetching.browser.chromium import launch_arguments

_ANSWER_WITHIN = 5.0
_START_WITHIN = 15.0


def clocks() -> Moment:
    return Moment(time.time(), time.monotonic())


def clocks_apart(seconds: float = 0.1) -> tuple[Moment, Moment]:
    """Return what the clocks show now and a little later."""
    before = clocks()
    time.sleep(seconds)
    return before, clocks()


def sqlite() -> tuple[str | None, bool]:
    """Return the version of the SQLite that our store uses and whether it is safe; `None` if it cannot be loaded."""
    try:
        import apsw

        from longstop.storage.sqlite.connection import is_safe_sqlite
    except ImportError:
        return None, False
    version = apsw.sqlite_lib_version()
    return version, is_safe_sqlite(version)


def user_agent() -> tuple[str | None, str]:
    """Return how our fetching introduces itself to a server on this machine; else the reason why it does not."""
    try:
        from curl_cffi import CurlOpt
        from curl_cffi.requests import Session

        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(_ANSWER_WITHIN)
            threading.Thread(target=_say_what_you_hear, args=(listener,), daemon=True).start()
            with Session(impersonate="chrome", trust_env=False, curl_options={CurlOpt.PROXY: ""}) as session:
                answer = session.get(f"http://127.0.0.1:{listener.getsockname()[1]}/", timeout=_ANSWER_WITHIN)
            return str(answer.text), ""
    except Exception as error:  # whatever a broken library raises, it is the finding
        return None, f"curl_cffi fails: {error}"


def browser_starts(
    paths: Mapping[BrowserKind, Path | None], environ: Mapping[str, str]
) -> dict[BrowserKind, BrowserStart | None]:
    """Return how each browser starts, `None` where there is none; all are tried at once."""
    with ThreadPoolExecutor() as threads:
        started = {kind: threads.submit(_start, path, environ) for kind, path in paths.items() if path}
    return {kind: started[kind].result() if kind in started else None for kind in paths}


def _start(path: Path, environ: Mapping[str, str]) -> BrowserStart:
    """Start a browser as we would, with an empty page; whatever it needs of the machine shows only then."""
    if not os.access(path, os.X_OK):
        return BrowserStart(str(path), "there is no such program")
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
            said, complaints = program.communicate(timeout=_START_WITHIN)
        except subprocess.TimeoutExpired:
            return BrowserStart(str(path), f"it says nothing for {_START_WITHIN:g} s")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()
    return BrowserStart(str(path), "" if b"<html>" in said else _last_words(complaints, program.returncode))


def _last_words(complaints: bytes, status: int) -> str:
    lines = complaints.decode(errors="replace").strip().splitlines()
    grave = [line for line in lines if "FATAL" in line or "error while loading" in line]
    said = "".join(letter for letter in (grave or lines or [""])[-1] if letter.isprintable())
    return said[:200] or f"it ends with {status}"


def _say_what_you_hear(listener: socket.socket) -> None:
    """Answer one request with its own user agent."""
    with suppress(OSError):
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(_ANSWER_WITHIN)
            heard = b""
            while b"\r\n\r\n" not in heard and (more := connection.recv(65536)):
                heard += more
            names = [line for line in heard.split(b"\r\n") if line.lower().startswith(b"user-agent:")]
            said = names[0].partition(b":")[2].strip() if names else b""
            connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(said), said))


def open_files_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 2**31


def free_bytes(path: Path) -> int:
    """Return what we may still write there."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize
