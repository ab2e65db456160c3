"""How a demo ends: refused before it starts, or stopped by a signal."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from longstop.supervision.exit_codes import Exit
from tests.acceptance.conftest import Longstop

pytestmark = pytest.mark.timeout(180)


def test_a_demo_by_a_browser_that_is_not_there_says_so_at_once(
    longstop: Longstop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER_EXECUTABLE", "/nowhere/chromium")

    run = longstop("demo", "--browser", "shell")

    assert run.returncode == Exit.USAGE
    assert run.stderr.strip() == "longstop: no Chromium was found for browser kind shell: run longstop doctor"


def test_a_port_that_was_named_and_is_taken_is_refused_with_its_holder(longstop: Longstop) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = longstop("demo", "--for", "1", "--port", str(port))

    assert run.returncode == Exit.USAGE
    assert f"longstop: port {port} is in use by " in run.stderr
    assert f"pid {os.getpid()}: choose another with --port" in run.stderr


@pytest.mark.parametrize(
    ("sign", "code", "account"),
    [
        ("starting simulator", 143, False),
        # The foot of the table: from there on there is something to account for.
        ("Ctrl-C stops and checks", 0, True),
    ],
)
def test_sigterm_ends_a_demo_as_ctrl_c_does_and_leaves_nothing(
    tmp_path: Path, sign: str, code: int, account: bool
) -> None:
    temporary, said = tmp_path / "temporary", tmp_path / "said.txt"
    temporary.mkdir()
    demo = _a_demo(temporary, said)
    while sign not in said.read_text() or not any(temporary.glob("longstop-*/simulator.log")):
        assert demo.poll() is None
        time.sleep(0.05)

    demo.terminate()
    ended = demo.wait(timeout=100)

    assert ended == code, said.read_text()
    assert ("no event lost, duplicated or invented" in said.read_text()) is account
    assert list(temporary.iterdir()) == []


def _a_demo(temporary: Path, said: Path) -> subprocess.Popen[bytes]:
    # It takes the file for a terminal, and so shows its table while it runs.
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "120", "TMPDIR": str(temporary)}
    with said.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "longstop", "demo", "--matches", "2", "--speed", "20", "--port", "0"],
            env={**os.environ, **terminal},
            stdout=out,
            stderr=out,
        )
