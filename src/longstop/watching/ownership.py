"""Whose match it is. One data directory has one scraper, which its lock guarantees; an epoch guards the rest.

Who holds the lock retakes its matches at once and raises their epochs: a predecessor that was only paused, not dead,
can then write nothing any more, and drops the match when it finds out.
"""

from collections.abc import AsyncIterator, Callable, Collection

from longstop.errors import StorageError
from longstop.model.match import MatchRef
from longstop.pipeline.held import HeldMatch
from longstop.storage.base import MatchStore


async def take_over(
    store: MatchStore, node: str, sources: Collection[str], on_failure: Callable[[MatchRef, StorageError], None]
) -> AsyncIterator[HeldMatch]:
    """Claim the unfinished matches of these sources and yield their durable bases; all of them begin as RECOVERING.

    A match that cannot be read is told to `on_failure`, and the others go on.
    """
    for row in await store.unfinished():
        if row.ref.source in sources:
            try:
                yield await take(store, row.match_id, node)
            except StorageError as error:
                on_failure(row.ref, error)


async def take(store: MatchStore, match_id: int, node: str) -> HeldMatch:
    """Claim one match and return its durable base."""
    await store.claim(match_id, node)
    return HeldMatch.from_base(await store.load(match_id))
