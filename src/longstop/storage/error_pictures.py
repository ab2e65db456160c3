"""Pictures of pages that could not be read: a folder for each source, bounded like the pages themselves."""

from datetime import datetime
from pathlib import Path

from longstop.storage.error_pages import MAX_BODY_BYTES, ErrorPages

MAX_PICTURES = 20
MAX_TOTAL_BYTES = 20_000_000


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
            max_total_bytes=MAX_TOTAL_BYTES,
        )
        return album.keep(name, picture, now)
