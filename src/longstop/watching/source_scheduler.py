"""One source's loop: read the listing, poll matches with changes, restart stuck watches."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from datetime import datetime
from functools import partial
from math import inf
from uuid import uuid4

from longstop.clock import Moment
from longstop.matches.live_match_and_feeds import LiveMatch
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.model.data_finding import Finding
from longstop.model.match import IN_PLAY, MatchRef, Phase, Priority, priority_of
from longstop.model.polling_status import MonitoringRecord
from longstop.model.source_queries_and_answers import Listing, ListingEntry
from longstop.supervision.memory_for_new_matches import MemoryCheck, idle_watches
from longstop.telemetry.bus import failure_of
from longstop.telemetry.events.matches import MatchClaimed, MatchDiscovered, WatchStopped
from longstop.telemetry.events.processes import MemoryInsufficient, StoreFailed
from longstop.telemetry.events.sources import ListingRead, MatchesRefused
from longstop.watching.feed_polling import FeedWatch, WatchContext
from longstop.watching.listing_requests_and_timing import UNLISTED_FACTOR, Listings, finished_after
from longstop.watching.poll_dispatcher import Dispatcher, ResourceType, ScrapeRequest, Work
from longstop.watching.poll_intervals_and_frozen_pages import RestartReason, listing_interval
from longstop.watching.polling_state_and_decisions import DOUBTED_SECONDS

#: New matches that may wait for their first poll, so that they do not delay known ones; and how many always may.
MANY_NEW, FEW_NEW = 100, 10
#: After an outage all matches are due at once: their polls start spread over this many seconds.
SPREAD_SECONDS = 2.0

#: Restarts for these reasons keep the source's connections.
_KEEPS_CONNECTIONS = frozenset({RestartReason.LIFETIME, RestartReason.ASKED, RestartReason.RECYCLED})

#: Restarts the source's connections; with `True` at once, otherwise at a limited rate.
Reconnect = Callable[[bool], Awaitable[None]]


async def _keep_connections(_is_forced: bool) -> None: ...


class Scheduler:
    """Keeps all matches of one source fresh. The listing decides which matches need a poll."""

    def __init__(
        self,
        source: str,
        *,
        client: SourceClient,
        context: WatchContext,
        dispatcher: Dispatcher,
        memory_check: MemoryCheck,
        reconnect: Reconnect = _keep_connections,
    ) -> None:
        self._source = source
        self.client = client
        self._context = context
        self._bus, self._clock = context.bus, context.clock
        self._cadence = context.rules.cadence
        self._dispatcher = dispatcher
        self.reconnect = reconnect
        self._memory_check = memory_check
        #: Until then memory is low, and is not measured again.
        self._memory_low_until = -inf
        self._watches: dict[str, FeedWatch] = {}
        #: Matches that are archived, or owned by another node, by when they were last listed.
        self._finished: dict[str, float] = {}
        #: Matches that an operator removed or paused, by their own refs.
        self._unwatched: set[MatchRef] = set()
        self._paused: set[MatchRef] = set()
        #: Whether the listing has more new matches than may be watched: for now, or at all.
        self._is_new_waiting = self._is_full = False
        #: Whether an operator paused the whole source.
        self.is_paused = False
        self._wake = asyncio.Event()
        #: Two watches of one match would claim it from each other, so they are created one at a time.
        self._adopting = asyncio.Lock()
        self.listings = Listings(source, client=client, bus=context.bus, clock=context.clock, cadence=self._cadence)

    async def adopt(self, match: LiveMatch, ref: MatchRef) -> FeedWatch | None:
        """Start to poll a feed of a match; return `None` when the match is excluded."""
        matches, row = self._context.matches, match.row
        if row.ref in self._unwatched or self.is_excluded(ref.source_id):
            matches.drop(match)
            return None
        match, feed = await matches.join(match, ref, self._context.pipeline, self._context.precedence)
        if row.ref in self._unwatched:  # removed by an operator meanwhile
            matches.drop(match, feed)
            return None
        watch = self._watches[ref.source_id] = FeedWatch(match, feed, self._context)
        watch.set_paused(self._is_held(watch))
        # The hot view still has the record of an earlier run. From here on the match is RECOVERING.
        watch.publish()
        self._bus.emit(MatchClaimed(match_id=row.match_id, ref=str(row.ref), epoch=row.epoch))
        return watch

    @property
    def records(self) -> list[MonitoringRecord]:
        return [watch.record for watch in self._watches.values() if watch.is_published]

    @property
    def findings(self) -> list[Finding]:
        published = (watch for watch in self._watches.values() if watch.is_published)
        return [finding for watch in published for finding in watch.state.findings]

    def on_page_signal(self, page: str) -> None:
        """Poll the match whose open page received an update. The update itself is not read."""
        for source_id, watch in self._watches.items():
            if self.client.page_of(source_id) == page and (at := watch.signalled_poll_at()) is not None:
                self._submit(watch, watch.poll, at)

    async def recycle(self, match_ids: Collection[int]) -> bool:
        """Restart connections and the watches of these matches; return whether there were any."""
        chosen = [each for each in self._watches.values() if each.state.row.match_id in match_ids]
        if chosen:
            await self.reconnect(True)
        for watch in chosen:
            watch.recycle()
        self._wake.set()
        return bool(chosen)

    # --- commands of an operator -----------------------------------------------------------------------------

    async def retry_now(self) -> bool:
        """Restart connections and all watches, and poll although circuits are open; return whether any was."""
        await self.reconnect(True)
        self.listings.retry_now()
        was_open = [self.client.admission.retry_now(), *[watch.retry_now() for watch in self._watches.values()]]
        self._wake.set()
        return any(was_open)

    def find(self, source_id: str) -> FeedWatch | None:
        """Return the watch of a match; `None` when it is not watched."""
        return self._watches.get(source_id)

    def watches_of(self, ref: MatchRef) -> list[FeedWatch]:
        return [watch for watch in self._watches.values() if watch.match.row.ref == ref]

    def is_excluded(self, source_id: str) -> bool:
        """Return whether not to watch a match although it is stored or listed."""
        return source_id in self._finished or MatchRef(self._source, source_id) in self._unwatched

    async def watch(self, source_id: str) -> FeedWatch | None:
        """Watch a match, listed or not; return `None` for an archived one."""
        self._finished.pop(source_id, None)
        self._unwatched.discard(MatchRef(self._source, source_id))
        watch = await self._register(source_id, None)
        if watch is not None and watch.is_due():
            self._start([watch])
        return watch

    def unwatch(self, ref: MatchRef) -> bool:
        """Stop watching a match, listed or paused; return whether it was watched."""
        self._unwatched.add(ref)
        self._paused.discard(ref)
        found = [key for key, watch in self._watches.items() if watch.match.row.ref == ref]
        for key in found:
            self._drop(self._watches.pop(key))
        return bool(found)

    def _drop(self, watch: FeedWatch) -> None:
        watch.stop()
        if not watch.match.feeds:
            self._context.hot.forget(watch.state.row.match_id)

    def pause(self, ref: MatchRef) -> None:
        self._paused.add(ref)
        self._apply_pauses()

    def resume(self, ref: MatchRef) -> None:
        self._paused.discard(ref)
        self._apply_pauses()
        self._wake.set()

    def pause_source(self) -> None:
        """Send the site no more requests."""
        self.is_paused = True
        self.listings.cancel()
        self._apply_pauses()

    def resume_source(self) -> None:
        """Resume the site; the watches restart spread over a short time."""
        self.is_paused, self.listings.is_awaited = False, True
        self._apply_pauses()
        self._wake.set()

    def _apply_pauses(self) -> None:
        for watch in self._watches.values():
            watch.set_paused(self._is_held(watch))

    def _is_held(self, watch: FeedWatch) -> bool:
        """Return whether an operator paused the match or the whole source."""
        return self.is_paused or watch.match.row.ref in self._paused

    # --- the loop --------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until cancelled; no error of a site ends this loop."""
        try:
            while True:
                started = self._clock.monotonic()
                try:
                    pause = await self._tick()
                except Exception as error:  # a bug here must not stop the loop
                    self._bus.emit(failure_of(error, f"scheduler {self._source}"))
                    pause = self._cadence.live
                await self._sleep(started + pause - self._clock.monotonic())
        finally:
            self.listings.cancel()

    async def _sleep(self, seconds: float) -> None:
        """Wait for the next tick, or for a command."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._wake.wait()
        self._wake.clear()

    async def _tick(self) -> float:
        """Do the work of one tick; return the seconds to the next one."""
        if self.is_paused:
            return self._cadence.discovery
        self._restart_stuck()
        listing = await self.listings.next()
        if listing is None:
            self._poll_without_listing()
            return self._cadence.live
        has_polled = await self._process(listing, self.listings.asked)
        self._restart_stuck()
        self.listings.settle()
        usual = self._cadence.live if self._is_new_waiting else self._usual_interval()
        # The outcome of these polls is not known yet: a doubt must not wait for the next tick of an idle source.
        is_idle = usual > self._cadence.in_break
        return self.listings.distance(DOUBTED_SECONDS if has_polled and is_idle else usual)

    def _usual_interval(self) -> float:
        inactive = (Phase.PAUSED, Phase.ARCHIVED)
        watches = [each for each in self._watches.values() if each.state.row.phase not in inactive]
        intervals = (each.polling.interval(each.state, self._context.now()) for each in watches)
        return listing_interval(intervals, self._cadence)

    async def _process(self, listing: Listing, asked: Moment) -> bool:
        """Accept unchanged matches, discover new ones, drop finished ones; return whether any is polled now."""
        entries = {entry.source_id: entry for entry in listing.boards}
        due = [watch for key, watch in self._watches.items() if watch.see_listing(entries.get(key), asked)]
        new = [entry for key, entry in entries.items() if key not in self._watches and not self.is_excluded(key)]
        self._start(due)
        found = await self._discover_some(new)
        self._start(found)
        due += found
        event = ListingRead(
            source=self._source, matches=len(listing.boards), changed=len(due), unreadable=len(listing.unreadable)
        )
        self._bus.emit(event)
        self._finished = finished_after(self._finished, entries, self._clock.monotonic(), self.client.limits.entries)
        await self._drop_finished()
        return bool(due)

    async def _discover_some(self, new: Collection[ListingEntry]) -> list[FeedWatch]:
        """Watch new matches, those in play first; return those to poll. The others wait for the next listing."""
        limit, watched = self.client.limits.matches, len(self._watches)
        room = max(0, limit - watched)
        if len(new) > room and not self._is_full:
            refused = len(new) - room
            self._bus.emit(MatchesRefused(source=self._source, watched=watched, refused=refused, limit=limit))
        self._is_full = len(new) > room
        at_once = min(room, max(FEW_NEW, MANY_NEW - self._dispatcher.waiting_of(self._source)))
        self._is_new_waiting = min(len(new), room) > at_once
        if not (new and at_once and self._has_memory_for(len(new))):
            return []
        chosen = sorted(new, key=lambda entry: entry.status not in IN_PLAY)[:at_once]
        return [found for entry in chosen if (found := await self._discover(entry))]

    def _has_memory_for(self, wanted: int) -> bool:
        """Return whether this many new matches may be watched now; they wait for memory."""
        now = self._clock.monotonic()
        if now < self._memory_low_until:
            return False
        shortage = self._memory_check.shortage()
        if shortage is None:
            return True
        self._memory_low_until = now + shortage.retry_after_seconds
        event = MemoryInsufficient(
            source=self._source,
            wanted=wanted,
            available_bytes=shortage.available_bytes,
            needed_bytes=shortage.needed_bytes,
            seconds=shortage.retry_after_seconds,
        )
        self._bus.emit(event)
        return False

    def _poll_without_listing(self) -> None:
        """Poll the matches one by one: perhaps only the listing fails. If not, the breakers open."""
        if self.listings.is_refused:
            for watch in self._watches.values():
                watch.see_refusal()
            return
        slower = self._cadence.live * UNLISTED_FACTOR
        for watch in self._watches.values():
            watch.see_no_listing()
        self._start([each for each in self._watches.values() if each.is_due(minimum=slower)])

    def _start(self, due: Iterable[FeedWatch]) -> None:
        """Queue polls, the most urgent first; after an outage spread over a short time."""
        ordered = sorted(due, key=self._urgency)
        step = SPREAD_SECONDS / len(ordered) if self.listings.is_awaited and ordered else 0.0
        for place, watch in enumerate(ordered):
            self._submit(watch, watch.poll, self._clock.monotonic() + place * step)

    def _submit(self, watch: FeedWatch, work: Work, at: float) -> None:
        priority, _ = self._urgency(watch)
        request = ScrapeRequest(
            priority=priority,
            ref=watch.feed.ref,
            resource=ResourceType.SCORECARD,
            scheduled_at=at,
            request_id=uuid4().hex,
            attempt=watch.polling.failures,
        )
        self._dispatcher.submit(request, work)

    def _restart_stuck(self) -> None:
        """Restart watches that are stuck, too old, or resumed; many are spread over a short time."""
        restarts: list[tuple[FeedWatch, RestartReason]] = []
        for watch in self._watches.values():
            watch.report_staleness()
            reason = watch.restart_reason()
            if reason is RestartReason.STALE and watch.is_polling:
                watch.cancel_poll()
            elif reason is not None and not watch.is_polling:
                restarts.append((watch, reason))
        for place, (watch, reason) in enumerate(restarts):
            at = self._clock.monotonic() + place * SPREAD_SECONDS / len(restarts)
            self._submit(watch, partial(self._restart, watch, reason), at)

    async def _restart(self, watch: FeedWatch, reason: RestartReason) -> None:
        if reason not in _KEEPS_CONNECTIONS:
            await self.reconnect(False)
        if await watch.restart(reason):
            await watch.poll()

    async def _discover(self, entry: ListingEntry) -> FeedWatch | None:
        ref = MatchRef(self._source, entry.source_id)
        try:
            watch = await self._register(entry.source_id, entry.start_at)
            if watch is not None:  # the entry confirms which match its pages are of
                watch.see_entry(entry)
            return watch
        except Exception as error:  # this match waits for the next listing; the others go on
            self._bus.emit(StoreFailed(ref=str(ref), error_type=type(error).__name__, error_message=str(error)))
            return None

    async def _register(self, source_id: str, start_at: datetime | None) -> FeedWatch | None:
        """Register and claim a match; return `None` for an archived or excluded one."""
        ref, matches = MatchRef(self._source, source_id), self._context.matches
        async with self._adopting:
            if source_id in self._watches or self.is_excluded(source_id):
                return self._watches.get(source_id)
            sport = self.client.source.sport
            row = await matches.store.register(ref, str(ref), start_at, self._clock.now(), sport=sport)
            if row.phase is Phase.ARCHIVED:
                self._finished[source_id] = self._clock.monotonic()
            if self.is_excluded(source_id) or row.ref in self._unwatched:  # possibly by an operator meanwhile
                return None
            self._bus.emit(MatchDiscovered(match_id=row.match_id, ref=str(ref)))
            return await self.adopt(await matches.take(row.match_id), ref)

    async def _drop_finished(self) -> None:
        """Archive matches that ended a day ago, and drop those that another node claimed."""
        for key, watch in list(self._watches.items()):
            if watch.may_be_archived():
                await watch.archive()
            if watch.is_lost or watch.state.row.phase is Phase.ARCHIVED:
                self._finished[key] = self._clock.monotonic()
                self._watches.pop(key, None)
                watch.stop()
        self._drop_idle()

    def _drop_idle(self) -> None:
        """While memory is low, drop matches without changes for a long time; never one in play."""
        now = self._clock.monotonic()
        if now >= self._memory_low_until:
            return
        not_in_play = {key: each for key, each in self._watches.items() if each.state.row.status not in IN_PLAY}
        changed_at = {key: each.polling.activity.changed_at for key, each in not_in_play.items()}
        for key in idle_watches(changed_at, now):
            watch, row = self._watches.pop(key), not_in_play[key].state.row
            self._drop(watch)
            idle = round(now - changed_at[key], 1)
            self._bus.emit(WatchStopped(match_id=row.match_id, ref=str(row.ref), idle_seconds=idle))

    def _urgency(self, watch: FeedWatch) -> tuple[int, float]:
        """Sort live matches first, important ones before others, then by age."""
        row, polling = watch.state.row, watch.polling
        priority = priority_of(row.status, row.start_at, self._clock.now())
        is_first = polling.tried_at is None or self._context.rules.is_important(row.title)
        return (len(Priority) if priority is None else priority), (-inf if is_first else polling.accepted_at)
