"""Matches that a site may go on listing, and that are over for us. Pure: who is listed, and when, comes in."""

from collections.abc import Iterable

#: Who was not listed for so long is forgotten: should it come back, the store still knows that it is archived.
FORGOTTEN_AFTER_SECONDS = 24 * 3600.0


class Finished:
    """Remembers them for as long as they are listed, and a day longer; moments are monotonic."""

    def __init__(self) -> None:
        self._listed_at: dict[str, float] = {}

    def __contains__(self, source_id: object) -> bool:
        return source_id in self._listed_at

    def add(self, source_id: str, now: float) -> None:
        self._listed_at[source_id] = now

    def discard(self, source_id: str) -> None:
        self._listed_at.pop(source_id, None)

    def hear(self, listed: Iterable[str], now: float) -> None:
        """Take note of a listing, and forget those who have been gone for long."""
        heard = {source_id: now for source_id in listed if source_id in self._listed_at}
        kept = {key: at for key, at in self._listed_at.items() if now - at < FORGOTTEN_AFTER_SECONDS}
        self._listed_at = kept | heard
