"""The data directory on a real disk, with real processes."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from longstop.errors import DataDirectoryInUse, StorageError
from longstop.storage.directory import DataDirectory

_HOLDER = """
import sys
from pathlib import Path
from longstop.storage.directory import DataDirectory

with DataDirectory.open(Path(sys.argv[1])).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_directory_is_for_its_owner_only(tmp_path: Path) -> None:
    directory = DataDirectory.open(tmp_path / "deep" / "data")

    assert mode_of(directory.path) == mode_of(directory.storage) == 0o700
    assert directory.matches_db == directory.path / "matches.db"
    assert directory.hot_db == directory.path / "hot.db"


def test_an_empty_directory_is_taken_and_closed_to_others(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    DataDirectory.open(tmp_path)

    assert mode_of(tmp_path) == 0o700


def test_a_directory_with_foreign_readable_files_is_refused_and_unchanged(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "letter.txt").write_text("dear sir")

    with pytest.raises(StorageError, match="choose an empty directory"):
        DataDirectory.open(tmp_path)

    assert mode_of(tmp_path) == 0o755
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]


def test_a_path_that_is_a_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    with pytest.raises(StorageError, match="is a file, not a directory"):
        DataDirectory.open(tmp_path / "data")


def test_a_node_keeps_its_name_over_restarts_and_shares_it_with_no_other(tmp_path: Path) -> None:
    first = DataDirectory.open(tmp_path / "one")
    again = DataDirectory.open(tmp_path / "one")
    other = DataDirectory.open(tmp_path / "other")

    assert first.node_id == again.node_id
    assert first.node_id != other.node_id
    assert sorted(file.name for file in first.path.iterdir()) == ["node-id", "storage"]


def test_a_directory_that_another_process_holds_is_refused_until_that_one_dies(tmp_path: Path) -> None:
    directory = DataDirectory.open(tmp_path / "data")
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(directory.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"

        in_use = rf"{directory.path} is in use by .* pid {holder.pid}\b"
        with pytest.raises(DataDirectoryInUse, match=in_use), directory.lock():
            pytest.fail("two scrapers hold one directory")
        holder.send_signal(signal.SIGKILL)

    with directory.lock():
        assert (directory.path / "scraper.lock").read_text() == str(os.getpid())


def test_a_lock_is_let_go_at_the_end(tmp_path: Path) -> None:
    directory = DataDirectory.open(tmp_path)
    with directory.lock(), pytest.raises(DataDirectoryInUse), directory.lock():
        pytest.fail("the lock was taken twice")

    with directory.lock():
        held_again = True

    assert held_again


def test_a_damaged_node_id_is_a_sentence_that_names_the_file(tmp_path: Path) -> None:
    DataDirectory.open(tmp_path)
    (tmp_path / "node-id").write_bytes(b"\xff\xfe")

    with pytest.raises(StorageError, match=r"node-id is damaged: restore a backup, or .* delete this file"):
        DataDirectory.open(tmp_path)


def test_a_damaged_lock_file_does_not_hide_that_the_directory_is_in_use(tmp_path: Path) -> None:
    directory = DataDirectory.open(tmp_path)
    with directory.lock():
        (tmp_path / "scraper.lock").write_bytes(b"\xff\xfe")

        with pytest.raises(DataDirectoryInUse), directory.lock():
            pytest.fail("the lock was taken twice")
