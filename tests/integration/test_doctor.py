"""The check-up on this real machine: real sockets, real locks, the real command."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from longstop.doctor.checks import Check, CheckStatus
from longstop.doctor.holders import listener_on, lock_holder
from longstop.doctor.measure_and_check import examine, fetching_problem, open_files_limit, start_problem
from longstop.storage.directory import DataDirectory

ROOT = Path(__file__).parents[2]
#: No site is enabled, and no browser is there to be tried: tests/browser does that.
QUIET = {"LONGSTOP_SOURCES": str(ROOT / "config" / "sources.yaml"), "BROWSER_EXECUTABLE": "/nowhere/chromium"}


def run_doctor(tmp_path: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "longstop", "doctor", *arguments],
        cwd=tmp_path,
        env={**os.environ, **QUIET, "LONGSTOP_API_PORT": "0", "PROMETHEUS_PORT": "0", **environ},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_the_fetcher_of_this_machine_can_be_used() -> None:
    assert fetching_problem() == ""


def test_the_process_on_a_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        holder = listener_on("127.0.0.1", port)
    free = listener_on("127.0.0.1", port)

    assert holder is not None
    assert holder.pid == os.getpid()
    assert free is None


@pytest.mark.parametrize("given_by", ["an option", "its environment", "its settings", "nothing"])
def test_a_longstop_process_on_a_port_shows_its_data_directory(tmp_path: Path, given_by: str) -> None:
    data = tmp_path / "data"
    (tmp_path / "settings.yaml").write_text("data: ./data\n")
    (tmp_path / "longstop").write_text(_LISTENER)
    option = ["--data", "data"] if given_by == "an option" else []
    environ = {"its environment": {"LONGSTOP_DATA": str(data)}, "its settings": {"LONGSTOP_CONFIG": "settings.yaml"}}

    with subprocess.Popen(
        [sys.executable, "longstop", "api", *option],
        cwd=tmp_path,
        env={**os.environ, **environ.get(given_by, {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        holder = listener_on("127.0.0.1", int(port))
        own, other = (
            _api_port(examine({**QUIET, "LONGSTOP_API_PORT": port, "LONGSTOP_DATA": str(each)}))
            for each in (data, tmp_path / "other")
        )
        process.kill()

    assert holder is not None
    assert (holder.pid, holder.data) == (process.pid, data)
    assert own.verdict is CheckStatus.OK
    assert other.is_problem
    assert str(data) in other.found
    assert "LONGSTOP_API_PORT" in other.advice


_LISTENER = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    sys.stdin.read()
"""


def test_the_port_of_a_running_demo_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "longstop").write_text(_LISTENER)
    (tmp_path / "demo.py").write_text(_DEMO)

    with subprocess.Popen(
        [sys.executable, "demo.py", "longstop", "demo"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        check = _api_port(examine({**QUIET, "LONGSTOP_API_PORT": port, "LONGSTOP_DATA": str(tmp_path / "mine")}))
        process.communicate()

    assert check.verdict is CheckStatus.OK
    assert f"{port} is in use by the running demo (pid " in check.found


#: Starts an API in another directory, and waits for it.
_DEMO = """
import subprocess, sys
subprocess.run([sys.executable, "longstop", "api", "--data", "demo-data"])
"""


def _api_port(checks: list[Check]) -> Check:
    return next(check for check in checks if check.name == "API port")


def test_an_address_of_another_machine_is_reported() -> None:
    holder = listener_on("203.0.113.1", 8700)

    assert holder is not None
    assert "203.0.113.1 is not usable" in str(holder)


def test_the_holder_of_a_data_directory_is_named_without_touching_its_lock(tmp_path: Path) -> None:
    directory = DataDirectory.open(tmp_path / "data")
    lock = directory.path / "scraper.lock"

    before = lock_holder(lock)
    with directory.lock():
        during = lock_holder(lock)
    after = lock_holder(lock)

    assert (before, after) == (None, None)
    assert during is not None
    assert during.pid == os.getpid()


def test_a_browser_that_does_not_start_shows_its_own_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    broken, silent, good = (tmp_path / name for name in ("broken", "silent", "good"))
    broken.write_text("#!/bin/sh\necho 'libnss3.so: error while loading shared libraries' >&2\nexit 127\n")
    silent.write_text("#!/bin/sh\nexit 5\n")
    good.write_text("#!/bin/sh\necho '<html><head></head><body></body></html>'\n")
    for program in (broken, silent, good):
        program.chmod(0o755)

    paths = (broken, silent, tmp_path / "nowhere", good, None)

    assert [start_problem(path, os.environ) for path in paths] == [
        "libnss3.so: error while loading shared libraries",
        "it exits with 5",
        "no such program",
        "",
        "no such program",
    ]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_the_limit_of_open_files_is_a_number() -> None:
    assert open_files_limit() > 0


def test_the_checkup_checks_everything_once_and_creates_nothing(tmp_path: Path) -> None:
    environ = {**QUIET, "LONGSTOP_DATA": str(tmp_path / "data")}

    names = [check.name for check in examine(environ)]
    without_metrics = [check.name for check in examine(environ | {"ENABLE_PROMETHEUS_METRICS": "false"})]

    assert len(set(names)) == len(names)
    assert {"fetching", "clock", "memory", "open files", "disk space", "API port"} <= set(names)
    assert set(names) - set(without_metrics) == {"metrics port"}
    assert list(tmp_path.iterdir()) == []


def test_the_command_ends_with_0_on_a_machine_that_can_run_longstop(tmp_path: Path) -> None:
    text, document = run_doctor(tmp_path), run_doctor(tmp_path, "--json")

    assert text.returncode == 0, text.stdout
    assert "This machine is ready, so the exit code is 0: `longstop demo` can run now." in text.stdout
    assert "Longstop has everything it needs" not in text.stdout
    document = json.loads(document.stdout)
    assert document["ok"] is True
    assert {"name", "verdict", "found", "advice", "is_needed"} == set(document["checks"][0])
    assert list(tmp_path.iterdir()) == []


def test_the_command_ends_with_1_and_says_what_to_do_when_something_is_in_the_way(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run = run_doctor(tmp_path, "--json", LONGSTOP_API_PORT=str(taken.getsockname()[1]))

    checks = json.loads(run.stdout)["checks"]
    wrong = [check for check in checks if check["verdict"] == "wrong" and check["is_needed"]]
    assert run.returncode == 1
    assert [check["name"] for check in wrong] == ["API port"]
    assert f"pid {os.getpid()}" in wrong[0]["found"]
    assert "LONGSTOP_API_PORT" in wrong[0]["advice"]


def test_wrong_settings_are_a_finding_and_no_end_of_the_check_up(tmp_path: Path) -> None:
    run = run_doctor(tmp_path, "--json", LONGSTOP_API_PORT="x")

    checks = {check["name"]: check for check in json.loads(run.stdout)["checks"]}
    assert run.returncode == 1
    assert "LONGSTOP_API_PORT is 'x'" in checks["settings"]["advice"]
    assert checks["memory"]["verdict"] == "ok"
    assert checks["API port"]["verdict"] == checks["browsers"]["verdict"] == "skipped"
    assert checks["data directory"]["found"] == "not checked: the settings are not valid"
