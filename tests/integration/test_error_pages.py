"""Kept pages on a real disk: safe names, bounded room."""

import re
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from longstop.storage import error_pages_and_screenshots
from longstop.storage.error_pages_and_screenshots import (
    MAX_SCREENSHOTS,
    ErrorPages,
    ErrorScreenshots,
    NoPages,
    file_name,
)
from tests.readers import NOW


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "storage" / "error_pages"


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_page_is_kept_where_the_answer_says_and_only_its_owner_can_read_it(folder: Path) -> None:
    kept = ErrorPages(folder).keep("crex_11HD", b"<html>\xff", NOW)

    assert kept == "storage/error_pages/20261115T120000000Z_crex-11HD.html"
    path = folder.parents[1] / kept
    assert path.read_bytes() == b"<html>\xff"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "hint",
    ["../../etc/passwd", "/etc/passwd", "a/b\\c", "x\0y", "..", "", "é\u202e", "<script>", "a" * 10_000, "%2e%2e%2f"],
)
def test_no_name_leads_out_of_the_folder(folder: Path, hint: str) -> None:
    kept = ErrorPages(folder).keep(hint, b"x", NOW)

    assert kept is not None
    [name] = names(folder)
    assert re.fullmatch(r"20261115T120000000Z_[A-Za-z0-9-]{1,80}\.html", name)
    assert (folder.parents[1] / kept).resolve().parent == folder.resolve()


def test_names_sort_by_time() -> None:
    moments = [NOW + timedelta(milliseconds=number) for number in (0, 1, 999, 1000, 61_000)]

    made = [file_name("x", moment) for moment in moments]

    assert made == sorted(made)


def test_the_oldest_make_room_when_there_are_too_many(folder: Path) -> None:
    pages = ErrorPages(folder, max_pages=3)

    for number in range(5):
        pages.keep(str(number), b"x", NOW + timedelta(seconds=number))

    assert [name.partition("_")[2] for name in names(folder)] == ["2.html", "3.html", "4.html"]


def test_the_oldest_make_room_when_there_is_too_much(folder: Path) -> None:
    pages = ErrorPages(folder, max_total_bytes=100)

    for number, size in enumerate((40, 40, 10, 30)):
        pages.keep(str(number), b"x" * size, NOW + timedelta(seconds=number))

    assert [name.partition("_")[2] for name in names(folder)] == ["1.html", "2.html", "3.html"]


def test_a_huge_body_is_cut(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_pages_and_screenshots, "MAX_BODY_BYTES", 10)

    ErrorPages(folder).keep("x", b"x" * 1_000, NOW)

    assert [file.stat().st_size for file in folder.iterdir()] == [10]


def test_a_folder_that_cannot_be_made_is_no_error(folder: Path) -> None:
    folder.parent.write_text("in the way")

    assert ErrorPages(folder).keep("x", b"x", NOW) is None


def test_other_files_stay(folder: Path) -> None:
    pages = ErrorPages(folder, max_pages=1)
    pages.keep("x", b"x", NOW)
    (folder / "notes.txt").write_text("mine")

    pages.keep("y", b"y", NOW)

    assert names(folder) == ["20261115T120000000Z_y.html", "notes.txt"]


@pytest.mark.req("FR-019")
def test_a_picture_is_kept_in_the_folder_of_its_source(tmp_path: Path) -> None:
    pictures = ErrorScreenshots(tmp_path / "storage" / "errors", "crex")

    kept = pictures.keep("crex-live", b"\x89PNG", NOW)

    assert kept == "storage/errors/crex/20261115T120000000Z_crex-live.png"
    assert (tmp_path / kept).read_bytes() == b"\x89PNG"


def test_pictures_of_one_source_are_bounded_and_leave_those_of_another_alone(tmp_path: Path) -> None:
    pictures = ErrorScreenshots(tmp_path / "storage" / "errors", "crex")
    others = ErrorScreenshots(tmp_path / "storage" / "errors", "sofascore")
    others.keep("sofascore-live", b"x", NOW)

    for number in range(MAX_SCREENSHOTS + 5):
        pictures.keep("crex-live", b"x", NOW + timedelta(seconds=number))

    assert len(names(tmp_path / "storage" / "errors" / "crex")) == MAX_SCREENSHOTS
    assert len(names(tmp_path / "storage" / "errors" / "sofascore")) == 1


def test_a_picture_that_is_too_large_is_not_kept_in_half(tmp_path: Path) -> None:
    pictures = ErrorScreenshots(tmp_path / "storage" / "errors", "crex")

    assert pictures.keep("crex-live", bytes(error_pages_and_screenshots.MAX_BODY_BYTES + 1), NOW) is None


def test_where_nothing_shall_be_kept_nothing_is() -> None:
    assert NoPages().keep("crex-live", b"x", NOW) is None
