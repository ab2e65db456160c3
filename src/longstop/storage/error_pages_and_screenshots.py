"""Saves unreadable pages and their screenshots for diagnosis.

Content of a site is not trusted: its names never become paths, its size is limited, and nothing serves it. Open saved
pages as text; a browser would run their scripts.
"""

import os
import re
from datetime import UTC, datetime
from pathlib import Path

MAX_PAGES = 100
MAX_TOTAL_BYTES = 50_000_000
#: Per source.
MAX_SCREENSHOTS = 20
MAX_TOTAL_SCREENSHOT_BYTES = 20_000_000
#: Longer bodies are truncated.
MAX_BODY_BYTES = 5_000_000
MAX_HINT_CHARACTERS = 80

_UNSAFE = re.compile(r"[^A-Za-z0-9-]+")


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
        """Save a page; return its path relative to the data directory, or `None`. Never raises."""
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
        """Delete the oldest pages. Files that are not ours are kept."""
        kept = sorted(path for path in self._folder.iterdir() if self._name.fullmatch(path.name))
        sizes = {path: path.lstat().st_size for path in kept}
        total = size + sum(sizes.values())
        while kept and (len(kept) >= self._max_pages or total > self._max_total_bytes):
            oldest = kept.pop(0)
            oldest.unlink(missing_ok=True)
            total -= sizes[oldest]


class NoPages:
    """Saves nothing: for operators who disable saving."""

    def keep(self, name: str, body: bytes, now: datetime) -> str | None:
        return None


class ErrorScreenshots(ErrorPages):
    """The screenshots of a source: at most 20 and 20 MB; the oldest are deleted first."""

    def __init__(self, folder: Path, source: str) -> None:
        super().__init__(
            folder / source,
            suffix="png",
            root=folder.parents[1],
            max_pages=MAX_SCREENSHOTS,
            max_total_bytes=MAX_TOTAL_SCREENSHOT_BYTES,
        )

    def keep(self, name: str, body: bytes, now: datetime) -> str | None:
        # A truncated picture is useless.
        return None if len(body) > MAX_BODY_BYTES else super().keep(name, body, now)


def file_name(hint: str, now: datetime, suffix: str = "html") -> str:
    """Return a name that sorts by time and that a site cannot choose."""
    moment = now.astimezone(UTC)
    safe = _UNSAFE.sub("-", hint[:MAX_HINT_CHARACTERS]).strip("-") or "page"
    return f"{moment:%Y%m%dT%H%M%S}{moment.microsecond // 1000:03d}Z_{safe}.{suffix}"


def _write(path: Path, body: bytes) -> None:
    # An older file of this name is replaced, and a link is not followed.
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(body)
