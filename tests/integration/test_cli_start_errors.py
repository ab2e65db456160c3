"""What the command line says before anything is started: on ports, options, and Ctrl-C."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longstop.cli.main import command_line
from longstop.clock import SystemClock
from longstop.errors import UsageError
from longstop.settings import Settings
from longstop.storage.directory import DataDirectory
from longstop.storage.restore import restore
from longstop.supervision.exit_codes import Exit
from tests.chaos.unreachable_site import unreachable_site
from tests.integration.test_backup import a_node

#: Ends the import of the command line as Ctrl-C would.
_INTERRUPTED = """
import runpy, sys
from importlib.abc import MetaPathFinder
class Interrupting(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "longstop.cli.main":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
runpy.run_module("longstop", run_name="__main__")
"""


@pytest.mark.parametrize("option", ["--port", "--espn-port", "--sofascore-port"])
def test_simulate_names_the_process_on_its_port_and_the_option_for_another(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(command_line(), ["simulate", "--port", "0", option, str(port)])

    assert isinstance(done.exception, UsageError)
    assert f"port {port} is taken by " in str(done.exception)
    assert f"pid {os.getpid()}" in str(done.exception)
    assert str(done.exception).endswith(f"stop that process, or choose another port with {option}")


@pytest.mark.parametrize("value", ["nan", "inf"])
@pytest.mark.parametrize(
    ("verb", "option"),
    [("demo", "--speed"), *(("simulate", option) for option in ("--speed", "--ball-gap", "--poll", "--drop"))],
)
def test_a_number_that_is_not_finite_is_refused(verb: str, option: str, value: str) -> None:
    done = CliRunner().invoke(command_line(), [verb, option, value])

    assert done.exit_code == 2
    assert f"{value} is not a finite number" in done.stderr


def test_demo_checks_its_port_before_it_prints_anything() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = CliRunner().invoke(command_line(), ["demo", "--port", str(taken.getsockname()[1])])

    assert isinstance(done.exception, UsageError)
    assert "is in use by" in str(done.exception)
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("--keep", "file", "file is a file, not a directory"),
        ("--truth", "missing/truth.jsonl", "name a file in an existing directory"),
        ("--truth", ".", "name a file in an existing directory"),
    ],
)
def test_demo_checks_its_paths_before_it_prints_anything(tmp_path: Path, option: str, value: str, error: str) -> None:
    (tmp_path / "file").write_text("")

    done = CliRunner().invoke(command_line(), ["demo", option, str(tmp_path / value)])

    assert isinstance(done.exception, UsageError)
    assert error in str(done.exception)
    assert done.stdout == ""


def test_up_names_the_process_on_the_port_of_the_api_and_creates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in unreachable_site(tmp_path).items():
        monkeypatch.setenv(name, value)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("LONGSTOP_API_PORT", str(port := taken.getsockname()[1]))
        done = CliRunner().invoke(command_line(), ["up"])

    assert done.exit_code == Exit.USAGE
    assert f"port {port} is taken by " in done.stderr
    assert f"pid {os.getpid()}" in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_port_that_does_not_exist_is_an_error_of_the_option(tmp_path: Path) -> None:
    done = CliRunner().invoke(command_line(), ["api", "--data", str(tmp_path), "--port", "99999"])

    assert done.exit_code == 2
    assert "--port" in done.stderr
    assert "LONGSTOP_API_PORT" not in done.stderr


def test_a_wrong_choice_is_a_plain_message() -> None:
    done = CliRunner().invoke(command_line(), ["demo", "--site", "cricbuzz"])

    assert done.exit_code == 2
    assert "'cricbuzz' is not one of" in done.stderr
    assert "Value error" not in done.stderr


def test_ctrl_c_while_the_command_line_is_loaded_ends_quietly() -> None:
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED], capture_output=True, text=True, timeout=50, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")


def test_a_backup_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the backup .*nosuch does not exist"):
        restore(tmp_path / "nosuch", tmp_path / "data", SystemClock())


def test_a_restore_into_a_stopped_directory_with_files_says_that_it_is_not_empty(tmp_path: Path) -> None:
    node = a_node(tmp_path / "data")
    CliRunner().invoke(
        command_line(), ["backup", str(tmp_path / "backup"), "--data", str(node.path)], catch_exceptions=False
    )

    with pytest.raises(UsageError, match="is not empty: choose an empty directory, or pass --force"):
        restore(tmp_path / "backup", DataDirectory.open(node.path).path, SystemClock())


def test_a_terminal_that_cannot_show_a_character_gets_another_one() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "longstop", "doctor"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=60,
    )

    assert b"Traceback" not in done.stderr
    assert done.stdout.isascii()


@pytest.mark.parametrize(("host", "url"), [("::1", "http://[::1]:8700"), ("127.0.0.1", "http://127.0.0.1:8700")])
def test_api_prints_an_address_that_can_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, url: str
) -> None:
    async def serve(_settings: Settings, *, on_ready: Callable[[int], None]) -> None:
        on_ready(8700)

    monkeypatch.setattr("longstop.app.api.run_api", serve)
    monkeypatch.setenv("LONGSTOP_API_HOST", host)

    assert CliRunner().invoke(command_line(), ["api", "--data", str(tmp_path)]).stderr == f"API on {url}\n"
