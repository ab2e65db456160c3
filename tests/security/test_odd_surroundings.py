"""Odd surroundings of a process: closed standard streams, pipes in place of files, no width."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from longstop.storage.directory import DataDirectory
from longstop.supervision.exit_codes import Exit


def longstop(arguments: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    command = f"exec {sys.executable} -m longstop {arguments}"
    return subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, timeout=60, check=False, env={**os.environ, **environ}
    )


@pytest.mark.parametrize("closed", [">&-", "<&- >&-", "<&-"])
def test_a_verb_runs_without_standard_streams(tmp_path: Path, closed: str) -> None:
    DataDirectory.open(tmp_path / "data")

    done = longstop(f"token --data {tmp_path / 'data'} {closed}")

    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def test_an_error_without_standard_streams_keeps_its_exit_code(tmp_path: Path) -> None:
    assert longstop(f"matches --data {tmp_path / 'none'} <&- >&- 2>&-").returncode == Exit.USAGE


@pytest.mark.parametrize(("name", "verb", "code"), [("token-secret", "token", Exit.USAGE), ("node-id", "backup b", 74)])
def test_a_pipe_in_place_of_a_file_ends_with_a_sentence(tmp_path: Path, name: str, verb: str, code: int) -> None:
    data = DataDirectory.open(tmp_path / "data").path
    (data / "matches.db").touch()
    (data / name).unlink(missing_ok=True)
    os.mkfifo(data / name, 0o600)

    done = longstop(f"{verb} --data {data}")

    assert done.returncode == code
    assert name.encode() in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("columns", ["0", "1"])
def test_a_terminal_without_width_still_shows_the_table(columns: str) -> None:
    assert b"clock" in longstop("doctor", COLUMNS=columns).stdout
