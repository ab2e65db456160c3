"""Helpers that claim, watch and finish a match in tests."""

from longstop.clock import Clock
from longstop.matches.live_match_and_feeds import LiveMatches
from longstop.matches.pipeline import Pipeline, PollResult
from longstop.matches.source_client_and_poll_attempt import PollAttempt
from longstop.matches.trust import Trust
from longstop.sports.base import MatchState
from longstop.sports.registry import sport_named
from longstop.storage.base import HotWriter, MatchStore
from longstop.telemetry.bus import Bus
from longstop.watching.feed_polling import FeedWatch, WatchContext

#: Which match it is counts as confirmed.
CONFIRMED = Trust(is_known=True)


async def take(store: MatchStore, match_id: int, node: str) -> MatchState:
    """Claim one match and return its durable base."""
    row = await store.claim(match_id, node)
    state: MatchState = sport_named(row.sport).state.from_base(await store.load(match_id))
    return state


async def watch(
    match_id: int, pipeline: Pipeline, store: MatchStore, hot: HotWriter, bus: Bus, clock: Clock
) -> FeedWatch:
    """Claim one match and return the watch of its own feed. Which match it is counts as confirmed."""
    context = WatchContext(pipeline=pipeline, matches=LiveMatches(store, "node-a"), hot=hot, bus=bus, clock=clock)
    match = await context.matches.take(match_id)
    feed = await match.join(match.row.ref, pipeline)
    feed.trust = CONFIRMED
    return FeedWatch(match, feed, context)


async def poll(
    pipeline: Pipeline, state: MatchState, *, is_full: bool = False, attempt: PollAttempt | None = None
) -> PollResult:
    """Poll once and store what changed."""
    attempt = attempt or PollAttempt()
    observation = await pipeline.observe(state, is_full=is_full, attempt=attempt)
    polled = await pipeline.apply(state, observation, attempt, trust=CONFIRMED)
    if polled.refused is not None:
        raise polled.refused
    return polled


async def finished(pipeline: Pipeline, state: MatchState) -> MatchState:
    """Finish a match whose page was removed."""
    attempt = PollAttempt()
    return await pipeline.finish(state, await pipeline.read_last(state, attempt), attempt)
