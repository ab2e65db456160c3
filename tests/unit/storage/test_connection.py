from pathlib import Path

import apsw
import pytest

from longstop.errors import StorageError
from longstop.storage.sqlite.connection import is_safe_sqlite
from longstop.storage.sqlite.files_and_errors import as_storage_error, file_identity, translated


@pytest.mark.parametrize(
    ("version", "is_safe"),
    [
        ("3.7.0", False),
        ("3.40.1", False),
        ("3.51.2", False),
        ("3.51.3", True),
        ("3.54.1", True),
        ("3.100.0", True),
        ("4.0.0", True),
    ],
)
def test_a_sqlite_is_safe_once_it_cannot_damage_a_log_any_more(version: str, is_safe: bool) -> None:
    assert is_safe_sqlite(version) is is_safe


def test_whatever_sqlite_raises_names_the_file_and_the_reason() -> None:
    error = as_storage_error(apsw.FullError("database or disk is full"), Path("somewhere/matches.db"))

    assert str(error) == "somewhere/matches.db: the disk is full (FullError: database or disk is full)"


@pytest.mark.parametrize("kind", apsw.Error.__subclasses__())
def test_no_error_of_sqlite_gets_through_untranslated(kind: type[apsw.Error]) -> None:
    with pytest.raises(StorageError), translated(Path("matches.db")):
        raise kind("why")


def test_a_file_is_another_one_when_it_was_put_in_the_place_of_the_first(tmp_path: Path) -> None:
    path, other = tmp_path / "ops.db", tmp_path / "other"
    path.write_bytes(b"one")
    other.write_bytes(b"two")

    first = file_identity(path)
    path.write_bytes(b"more")
    grown = file_identity(path)
    other.rename(path)

    assert first == grown != file_identity(path)
    assert file_identity(other) is None


def test_an_empty_file_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "ops.db").touch()

    assert file_identity(tmp_path / "ops.db") is None


def test_an_inaccessible_place_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StorageError, match="cannot access the file"):
        file_identity(tmp_path / "file" / "ops.db")
