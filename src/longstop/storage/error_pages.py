"""Pages that could not be read, and pictures of them, kept for a person to look at.

What a site sends is hostile until proven otherwise: its names become no paths, its bodies fill no disk, and nothing
serves them. Open them as text; in a browser their scripts would run.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

MAX_PAGES = 100
MAX_TOTAL_BYTES = 50_000_000
#: Of each source.
MAX_PICTURES = 20
MAX_TOTAL_PICTURE_BYTES = 20_000_000
#: Longer bodies are cut.
MAX_BODY_BYTES = 5_000_000
MAX_HINT_CHARACTERS = 80

_UNSAFE = re.compile(r"[^A-Za-z0-9-]+")


class _Kept(NamedTuple):
    name: str
    size: int


class ErrorPages:
    """A folder of at most 100 pages and 50 MB; the oldest make room for the newest."""

    def __init__(
        self,
        folder: Path,
        *,
        suffix: str = "html",
        root: Path | None = None,
        max_pages: int = MAX_PAGES,
        max_total_bytes: int = MAX_TOTAL_BYTES,
    ) -> None:
        self._folder = folder
        self._suffix = suffix
        self._name = re.compile(rf"\d{{8}}T\d{{9}}Z_[A-Za-z0-9-]+\.{suffix}")
        #: The data directory, below which the way to a kept page is told.
        self._root = root or folder.parents[1]
        self._max_pages = max_pages
        self._max_total_bytes = max_total_bytes

    def keep(self, name: str, body: bytes, now: datetime) -> str | None:
        """Keep a page, whole or not at all; return where, below the data directory, or `None`. Never raises."""
        path = self._folder / file_name(name, now, self._suffix)
        cut = body[:MAX_BODY_BYTES]
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._make_room(len(cut))
            _write(path, cut)
        except OSError:  # a page is good to have; the error that it belongs to is told anyway
            return None
        return path.relative_to(self._root).as_posix()

    def _make_room(self, size: int) -> None:
        kept = sorted(self._pages())
        total = size + sum(page.size for page in kept)
        while kept and (len(kept) >= self._max_pages or total > self._max_total_bytes):
            oldest = kept.pop(0)
            (self._folder / oldest.name).unlink(missing_ok=True)
            total -= oldest.size

    def _pages(self) -> Iterator[_Kept]:
        """Yield what is kept, and clear away what a crash left half-written. Other people's files are left alone."""
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.endswith(".part"):
                    Path(entry.path).unlink(missing_ok=True)
                elif self._name.fullmatch(entry.name):
                    yield _Kept(entry.name, entry.stat(follow_symlinks=False).st_size)


class NoPages:
    """Keeps nothing, where the operator wants nothing kept."""

    def keep(self, name: str, body: bytes, now: datetime) -> str | None:
        return None


class ErrorPictures:
    """Keeps at most 20 pictures and 20 MB of each source; the oldest make room for the newest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, source: str, name: str, picture: bytes, now: datetime) -> str | None:
        """Keep a picture, whole or not at all; return where, below the data directory, or `None`. Never raises."""
        if len(picture) > MAX_BODY_BYTES:
            return None
        album = ErrorPages(
            self._folder / source,
            suffix="png",
            root=self._folder.parents[1],
            max_pages=MAX_PICTURES,
            max_total_bytes=MAX_TOTAL_PICTURE_BYTES,
        )
        return album.keep(name, picture, now)


def file_name(hint: str, now: datetime, suffix: str = "html") -> str:
    """Return a name that sorts by time and that no site can choose."""
    moment = now.astimezone(UTC)
    safe = _UNSAFE.sub("-", hint[:MAX_HINT_CHARACTERS]).strip("-") or "page"
    return f"{moment:%Y%m%dT%H%M%S}{moment.microsecond // 1000:03d}Z_{safe}.{suffix}"


def _write(path: Path, body: bytes) -> None:
    draft = path.with_name(f"{uuid4().hex}.part")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(body)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
