"""Saves unreadable pages and their screenshots for diagnosis.

Content of a site is not trusted: its names never become paths, its size is limited, and nothing serves it. Open saved
pages as text; a browser would run their scripts.
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
#: Per source.
MAX_SCREENSHOTS = 20
MAX_TOTAL_SCREENSHOT_BYTES = 20_000_000
#: Longer bodies are truncated.
MAX_BODY_BYTES = 5_000_000
MAX_HINT_CHARACTERS = 80

_UNSAFE = re.compile(r"[^A-Za-z0-9-]+")


class _Kept(NamedTuple):
    name: str
    size: int


class ErrorPages:
    """A folder of at most 100 pages and 50 MB; the oldest are deleted first."""

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
        #: The data directory; returned paths are relative to it.
        self._root = root or folder.parents[1]
        self._max_pages = max_pages
        self._max_total_bytes = max_total_bytes

    def keep(self, name: str, body: bytes, now: datetime) -> str | None:
        """Save a page atomically; return its path relative to the data directory, or `None`. Never raises."""
        path = self._folder / file_name(name, now, self._suffix)
        cut = body[:MAX_BODY_BYTES]
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._make_room(len(cut))
            _write(path, cut)
        except OSError:  # saving is optional; the error itself is reported anyway
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
        """Yield the saved pages, and delete partial files of a crash. Files that are not ours are kept."""
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.endswith(".part"):
                    Path(entry.path).unlink(missing_ok=True)
                elif self._name.fullmatch(entry.name):
                    yield _Kept(entry.name, entry.stat(follow_symlinks=False).st_size)


class NoPages:
    """Saves nothing: for operators who disable saving."""

    def keep(self, name: str, body: bytes, now: datetime) -> str | None:
        return None


class ErrorScreenshots:
    """Saves at most 20 screenshots and 20 MB per source; the oldest are deleted first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, source: str, name: str, screenshot: bytes, now: datetime) -> str | None:
        """Save a screenshot atomically; return its path relative to the data directory, or `None`. Never raises."""
        if len(screenshot) > MAX_BODY_BYTES:
            return None
        pages = ErrorPages(
            self._folder / source,
            suffix="png",
            root=self._folder.parents[1],
            max_pages=MAX_SCREENSHOTS,
            max_total_bytes=MAX_TOTAL_SCREENSHOT_BYTES,
        )
        return pages.keep(name, screenshot, now)


def file_name(hint: str, now: datetime, suffix: str = "html") -> str:
    """Return a name that sorts by time and that a site cannot choose."""
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
