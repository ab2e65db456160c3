"""A match in the hands of a test: claimed, loaded, and polled by one feed."""

from longstop.clock import Clock
from longstop.matches.live_match import LiveMatches
from longstop.matches.pipeline import Pipeline
from longstop.sports.base import MatchState
from longstop.sports.registry import sport_named
from longstop.storage.base import HotWriter, MatchStore
from longstop.telemetry.bus import Bus
from longstop.watching.feed_watch import FeedWatch, WatchContext


async def take(store: MatchStore, match_id: int, node: str) -> MatchState:
    """Claim one match and return its durable base."""
    row = await store.claim(match_id, node)
    state: MatchState = sport_named(row.sport).state.from_base(await store.load(match_id))
    return state


async def watch(
    match_id: int, pipeline: Pipeline, store: MatchStore, hot: HotWriter, bus: Bus, clock: Clock
) -> FeedWatch:
    """Claim one match and return the watch of its own feed."""
    context = WatchContext(pipeline=pipeline, matches=LiveMatches(store, "node-a"), hot=hot, bus=bus, clock=clock)
    match = await context.matches.take(match_id)
    return FeedWatch(match, await match.join(match.row.ref, pipeline), context)
