"""Failed tests of the system tiers are repeated once, alone, and nothing that went wrong is lost over it."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from time import monotonic, sleep

import pytest
from msgspec import Struct

ROOT = Path(__file__).parents[2]
#: Every test notes that it runs, so that the suite can say how often it has.
SUITE = """\
import os, pathlib, signal, time, pytest

RUNS = pathlib.Path(__file__).parent / "runs"

def note(name):
    with RUNS.open("a") as lines:
        lines.write(f"{name} {os.environ.get('PYTEST_XDIST_WORKER', 'alone')}\\n")
    return [line.split()[0] for line in RUNS.read_text().splitlines()].count(name)

def test_good():
    note("good")
"""
FLAKY = """
@pytest.mark.parametrize("word", ["a b[::]"])
def test_flaky(word):
    assert note("flaky") > 1
"""
BAD = """
def test_bad():
    note("bad")
    assert False
"""
BAD_END = """
@pytest.fixture
def thing():
    yield
    assert note("bad_end") > 9

def test_bad_end(thing):
    pass
"""
KILLED = """
def test_killed():
    if note("killed") == 1:
        os.kill(os.getpid(), signal.SIGKILL)
"""
TIMED_OUT = """
@pytest.mark.timeout(0.2, method="thread")
def test_timed_out():
    note("timed_out")
    time.sleep(30)
"""
STOPPED = """
def test_stopped():
    pytest.exit("enough")
"""
UNREADABLE = """
def test_unreadable(:
    pass
"""


class Ended(Struct, frozen=True):
    """How a run went: exit code, output, tests listed as flaky, and how often each test ran where."""

    code: int
    printed: str
    flaky: list[str]
    runs: Counter[str]


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    (folder / "pytest.ini").touch()
    command = [sys.executable, "-m", "tests.repeat_failed", str(folder / "flaky"), *arguments]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # A background job of a shell ignores SIGINT, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def run(folder: Path, *arguments: str, **files: str) -> Ended:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(SUITE + text)
    started = start(folder, *arguments)
    printed, _ = started.communicate(timeout=50)
    flaky = folder / "flaky"
    runs = folder / "runs"
    return Ended(
        code=started.returncode,
        printed=printed,
        flaky=flaky.read_text().splitlines() if flaky.exists() else [],
        runs=Counter(runs.read_text().splitlines() if runs.exists() else []),
    )


def test_a_test_that_passes_when_repeated_alone_counts_as_passed_and_is_printed_as_flaky(tmp_path: Path) -> None:
    ended = run(tmp_path, "-n", "1", test_one=FLAKY)

    assert ended.code == 0, ended.printed
    assert ended.flaky == ["test_one.py::test_flaky[a b[::]]"]
    assert "flaky: test_one.py::test_flaky[a b[::]]\n" in ended.printed
    assert "1 failed, 1 passed in" in ended.printed
    assert ended.runs == {"good gw0": 1, "flaky gw0": 1, "flaky alone": 1}


def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path) -> None:
    ended = run(tmp_path, "-n", "1", test_one=FLAKY + BAD + BAD_END)

    assert ended.code == 1
    assert ended.flaky == ["test_one.py::test_flaky[a b[::]]"]
    assert ended.printed.endswith("failed twice: test_one.py::test_bad\nfailed twice: test_one.py::test_bad_end\n")
    assert (ended.runs["bad gw0"], ended.runs["bad alone"], ended.runs["bad_end alone"]) == (1, 1, 1)


def test_a_run_without_a_failure_repeats_nothing(tmp_path: Path) -> None:
    ended = run(tmp_path, test_one="")

    assert (ended.code, ended.flaky, ended.runs) == (0, [], {"good alone": 1})


def test_a_test_whose_worker_was_killed_is_repeated(tmp_path: Path) -> None:
    ended = run(tmp_path, "-n", "1", test_one=KILLED)

    assert ended.code == 0, ended.printed
    assert ended.flaky == ["test_one.py::test_killed"]


@pytest.mark.parametrize("arguments", [(), ("-n", "1")])
@pytest.mark.parametrize("more", ["", FLAKY], ids=["good", "flaky"])
def test_a_file_that_cannot_be_collected_fails_the_run(tmp_path: Path, arguments: tuple[str, ...], more: str) -> None:
    ended = run(tmp_path, *arguments, test_one=more, test_two=UNREADABLE)

    assert ended.code != 0
    assert ended.flaky == []
    assert ended.runs["flaky alone"] == 0


@pytest.mark.parametrize("fault", [KILLED, TIMED_OUT, STOPPED], ids=["killed", "timed out", "stopped"])
def test_a_pytest_that_does_not_come_to_its_end_fails_the_run(tmp_path: Path, fault: str) -> None:
    ended = run(tmp_path, test_one=FLAKY + fault)

    assert ended.code != 0
    assert ended.flaky == []
    assert ended.runs["flaky alone"] == 1


def test_no_test_at_all_fails_the_run(tmp_path: Path) -> None:
    assert run(tmp_path).code == pytest.ExitCode.NO_TESTS_COLLECTED


def test_ctrl_c_while_a_test_is_repeated_starts_nothing_more(tmp_path: Path) -> None:
    slow = "\ndef test_slow():\n    if note('slow') > 1:\n        time.sleep(30)\n    assert False\n"
    (tmp_path / "test_one.py").write_text(SUITE + slow + BAD)

    started = start(tmp_path)
    until = monotonic() + 30
    while not (tmp_path / "runs").exists() or (tmp_path / "runs").read_text().count("slow") < 2:
        assert monotonic() < until
        sleep(0.05)
    os.killpg(started.pid, signal.SIGINT)
    printed, _ = started.communicate(timeout=20)

    assert started.returncode == 128 + signal.SIGINT, printed
    assert (tmp_path / "runs").read_text().count("bad") == 1
