"""Whose match it is. One data directory has one scraper, which its lock guarantees; an epoch guards the rest.

Who holds the lock retakes every match at once and raises its epoch: a predecessor that was only paused, not dead, can
then write nothing any more.
"""

from longstop.pipeline.state import MatchState
from longstop.storage.base import MatchStore


async def take_over(store: MatchStore, node: str) -> list[MatchState]:
    """Claim every unfinished match and return its durable base; all of them begin as RECOVERING."""
    return [await take(store, row.match_id, node) for row in await store.unfinished()]


async def take(store: MatchStore, match_id: int, node: str) -> MatchState:
    """Claim one match and return its durable base."""
    await store.claim(match_id, node)
    return MatchState.from_base(await store.load(match_id))
