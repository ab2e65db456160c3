"""The temporary files of our browsers: in a place of their own, and gone with them."""

from pathlib import Path

from longstop.fetching.browser.scratch import clear_scratch, open_scratch


def test_a_node_takes_its_own_directory_again(tmp_path: Path) -> None:
    first = open_scratch(tmp_path, "node-0123456789abcdef")

    assert open_scratch(tmp_path, "node-0123456789abcdef") == first
    assert first.name == "longstop-0123456789ab"
    assert first.stat().st_mode & 0o777 == 0o700


def test_what_somebody_else_has_put_in_its_place_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "longstop-abcd").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "longstop-efgh").write_text("")

    opened = [open_scratch(tmp_path, node) for node in ("abcd", "efgh")]

    assert all(path.is_dir() and not path.is_symlink() for path in opened)
    assert not {"longstop-abcd", "longstop-efgh"} & {path.name for path in opened}


def test_all_that_is_old_enough_is_taken_away_and_nothing_outside(tmp_path: Path) -> None:
    scratch = open_scratch(tmp_path, "abcd")
    (tmp_path / "kept").mkdir()
    (scratch / "playwright-artifacts-x" / "deep").mkdir(parents=True)
    (scratch / "file").write_text("")
    (scratch / "link").symlink_to(tmp_path / "kept")
    changed = (scratch / "link").lstat().st_ctime

    assert clear_scratch(scratch, changed, older_than_seconds=60) == 0
    assert clear_scratch(scratch, changed + 61, older_than_seconds=60) == 3
    assert list(scratch.iterdir()) == []
    assert (tmp_path / "kept").is_dir()


def test_a_directory_that_is_gone_is_clear(tmp_path: Path) -> None:
    assert clear_scratch(tmp_path / "gone", 0.0) == 0
