"""Nothing outlives the one who started it, however that one ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.timeout(120)

GONE_WITHIN = 40.0


def processes_of(data: Path) -> list[psutil.Process]:
    """Return every process that works on a data directory, or writes its truth log."""
    found = []
    for process in psutil.process_iter():
        try:
            places = (process.environ().get("LONGSTOP_DATA"), *process.cmdline())
        except psutil.Error:
            continue
        if any(place and str(data) in place for place in places) and process.pid != os.getpid():
            found.append(process)
    return found


def hear_of_the_terminal() -> None:
    """Let it be heard that the terminal is gone, also when these tests are run so that it is not."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_a_demo_that_is_killed_leaves_no_process_behind(tmp_path: Path, number: signal.Signals) -> None:
    data = tmp_path / "data"
    demo = subprocess.Popen(
        [sys.executable, "-m", "longstop", "demo", "--keep", str(data), "--matches", "2", "--port", "0", "--json"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        preexec_fn=hear_of_the_terminal,
    )
    deadline = time.monotonic() + 60
    while not ((data / "hot.db").exists() and len(processes_of(data)) >= 4) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(processes_of(data)) >= 4

    demo.send_signal(number)
    demo.wait(timeout=30)

    deadline = time.monotonic() + GONE_WITHIN
    while (left := processes_of(data)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert [process.cmdline() for process in left] == []
