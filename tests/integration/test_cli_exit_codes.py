"""How verbs end when a data directory, a file or a match cannot be used: one sentence with advice, and an exit code."""

import errno
import os
import shutil
import sys
from pathlib import Path

import pytest

from longstop import __version__
from longstop.cli.main import main
from longstop.clock import SystemClock
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.operations_tables import SqliteAudit
from longstop.supervision.exit_codes import Exit
from tests.integration.test_backup import a_node
from tests.readers import apart

OLD_DIRECTORIES = Path(__file__).parents[1] / "golden/recorded/data_directories"


@pytest.fixture
def node(tmp_path: Path) -> DataDirectory:
    return a_node(tmp_path / "data")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the whole command line and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["longstop", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.fixture
def unreadable(node: DataDirectory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory of another user; simulated, since root may read everything."""
    stat, access = Path.stat, os.access

    def denied_stat(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if node.path in self.parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))
        return stat(self, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", denied_stat)
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(node.path) and access(path, mode))
    return node.path


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        (("health",), 3),
        (("health", "--history"), 3),
        *((each, Exit.STORAGE) for each in (("matches",), ("events", "1"), ("errors",), ("recoveries",))),
        *((each, Exit.STORAGE) for each in (("top", "--once"), ("pause", "crex"), ("token",), ("api",))),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_an_unreadable_data_directory_is_a_sentence_with_its_own_exit_code(
    unreadable: Path,
    verb: tuple[str, ...],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, *verb, "--data", str(unreadable)) == code

    error = capsys.readouterr().err
    assert error.startswith("longstop: ")
    assert str(unreadable) in error
    assert "Permission denied" in error


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        (("health",), 3),
        *((each, Exit.STORAGE) for each in (("matches",), ("events", "1"), ("errors",), ("recoveries",), ("token",))),
        *((each, Exit.STORAGE) for each in (("top", "--once"), ("pause", "crex"), ("api",), ("backup", "copy"))),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_file_in_the_place_of_the_data_directory_is_named_as_one(
    tmp_path: Path,
    verb: tuple[str, ...],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "data").write_text("")

    assert run(monkeypatch, *verb, "--data", str(tmp_path / "data")) == code

    error = capsys.readouterr().err
    assert f"{tmp_path / 'data'} is a file, not a directory" in error
    assert "--data or LONGSTOP_DATA" in error


@pytest.mark.parametrize(
    "verb",
    [
        ("events", "999"),
        ("pause", "999"),
        ("errors", "--match", "999"),
        ("health", "--history", "--match", "999"),
        ("health", "--match", "999", "--json"),
    ],
)
def test_an_unknown_match_is_a_usage_error(
    node: DataDirectory,
    verb: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, *verb, "--data", str(node.path)) == Exit.USAGE

    assert capsys.readouterr().err == "longstop: there is no match 999: `longstop matches` lists all\n"


SIMULATED = """\
sources:
  - domain_id: crex
    enabled: true
    precedence_weight: 100
    adapter_class: crex
    hosts: ["127.0.0.1:9"]
    allow_private_addresses: true
    metadata: {api_url: "http://127.0.0.1:9", content_url: "http://127.0.0.1:9", names_url: "http://127.0.0.1:9"}
"""


def fill_with_garbage(database: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        database.with_name(f"{database.name}{suffix}").unlink(missing_ok=True)
    database.write_text("no database at all, but long enough to be read as one" * 100)


@pytest.mark.parametrize("verb", ["matches", "up"])
def test_a_file_that_is_not_sqlite_is_named_with_advice(
    node: DataDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, verb: str
) -> None:
    (tmp_path / "sources.yaml").write_text(SIMULATED)
    monkeypatch.setenv("LONGSTOP_SOURCES", str(tmp_path / "sources.yaml"))
    monkeypatch.setenv("LONGSTOP_API_PORT", "0")
    fill_with_garbage(node.matches_db)

    assert run(monkeypatch, verb, "--data", str(node.path)) == Exit.STORAGE

    error = capsys.readouterr().err
    assert error.startswith(f"longstop: {node.matches_db}: ")
    assert "longstop restore" in error


@pytest.mark.parametrize(("verb", "code"), [(("health",), 2), (("top", "--once"), 0)], ids=["health", "top"])
def test_a_store_that_is_not_sqlite_is_the_reason_for_the_health(
    node: DataDirectory,
    verb: tuple[str, ...],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fill_with_garbage(node.matches_db)
    monkeypatch.setenv("COLUMNS", "400")

    assert run(monkeypatch, *verb, "--data", str(node.path)) == code

    words = " ".join(capsys.readouterr().out.split())
    assert "the store cannot be read: " in words
    assert "matches.db: not an SQLite file" in words
    assert f"run `longstop restore BACKUP --data {node.path} --force`" in words
    assert "no scraper has run here yet" not in words


def test_a_live_view_that_is_not_sqlite_is_rebuilt_not_restored(
    node: DataDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill_with_garbage(node.hot_db)

    assert run(monkeypatch, "health", "--data", str(node.path)) == 3

    error = capsys.readouterr().err
    assert f"{node.hot_db}: not an SQLite file" in error
    assert error.endswith("; the scraper rebuilds it\n")


@pytest.mark.parametrize("verb", [("matches",), ("events", "1"), ("errors",)], ids=" ".join)
def test_data_of_an_older_version_are_not_shown_as_empty(
    verb: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(OLD_DIRECTORIES / "matches2_hot2_ops5", tmp_path / "old")

    assert run(monkeypatch, *verb, "--data", str(tmp_path / "old")) == Exit.STORAGE

    assert "written by an older version: start `longstop up` once to migrate it" in capsys.readouterr().err


def test_a_directory_in_the_place_of_the_store_is_named_with_advice(
    node: DataDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node.matches_db.unlink()
    node.matches_db.mkdir()

    assert run(monkeypatch, "matches", "--data", str(node.path)) == Exit.STORAGE

    assert capsys.readouterr().err.startswith(
        f"longstop: {node.matches_db}: a directory, not a file; stop everything and run `longstop restore "
    )


@pytest.mark.parametrize("verb", ["token", "api"])
def test_a_mistyped_directory_is_refused_and_not_created(
    tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, verb, "--data", str(tmp_path / "typo")) == Exit.USAGE

    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"the data directory {tmp_path / 'typo'} does not exist: check the path, or " in printed.err
    assert not (tmp_path / "typo").exists()


def test_a_bad_kind_of_body_lists_the_valid_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "body").write_text("{}")

    assert run(monkeypatch, "parse", "crex", "nonsense", str(tmp_path / "body")) == Exit.USAGE

    assert "crex has no bodies of kind nonsense: the kinds are list, live, balls, " in capsys.readouterr().err


@pytest.mark.parametrize("verb", [("parse", "crex", "live"), ("verify",)], ids=["parse", "verify"])
def test_a_device_is_no_recording(
    verb: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *verb, "/dev/zero") == Exit.USAGE

    assert "/dev/zero" in (printed := capsys.readouterr().err)
    assert "it is not a regular file" in printed


def test_a_body_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "body").write_bytes(b" " * 5_000_001)

    assert run(monkeypatch, "parse", "crex", "live", str(tmp_path / "body")) == Exit.USAGE

    assert "it is larger than 5,000,000 bytes" in capsys.readouterr().err


def test_the_version_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--version") == 0

    assert capsys.readouterr().out == f"longstop {__version__}\n"


def test_health_reports_a_scraper_that_keeps_failing_at_start_and_why(
    node: DataDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recovery = Recovery(
        id="r1",
        kind=RecoveryKind.RESTART,
        trigger="a setting is invalid",
        subject="scraper",
        process="up",
        began_at=SystemClock().now(),
        outcome=RecoveryOutcome.NOT_RECOVERED,
        observed="it ended again",
    )
    audit = SqliteAudit(node.ops_db)
    apart(audit.write([recovery]))
    apart(audit.aclose())

    assert run(monkeypatch, "health", "--data", str(node.path)) == 2

    assert capsys.readouterr().out == (
        "down\n  the scraper keeps failing after its start: a setting is invalid (see its log)\n"
    )
