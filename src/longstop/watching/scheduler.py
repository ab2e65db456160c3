"""One source's loop: ask the listing, sort it out, look closer where something changed, restart what is stuck."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from datetime import datetime
from math import inf
from uuid import uuid4

from longstop.clock import Moment
from longstop.matches.client import SourceClient
from longstop.matches.live_match import LiveMatch
from longstop.model.match import IN_PLAY, MatchRef, MonitoringRecord, Phase, Priority, priority_of
from longstop.model.observation import Listing, ListingEntry
from longstop.storage.base import Finding
from longstop.telemetry.bus import failure_of
from longstop.telemetry.events.matches import MatchClaimed, MatchDiscovered, WatchStopped
from longstop.telemetry.events.processes import StoreFailed
from longstop.telemetry.events.sources import ListingRead
from longstop.watching.admission import MatchAdmission
from longstop.watching.cadence import RestartReason, listing_interval
from longstop.watching.dispatcher import Dispatcher, ResourceType, ScrapeRequest, Work
from longstop.watching.feed_watch import FeedWatch, Hold, WatchContext
from longstop.watching.listings import UNLISTED_FACTOR, Finished, Listings, sort_out

#: After a silence all matches want to be looked at: their looks begin spread over this many seconds.
SPREAD_SECONDS = 2.0

#: Reasons to begin anew that say nothing against what is asked with.
_WITHOUT_RENEWAL = frozenset({RestartReason.LIFETIME, RestartReason.ASKED, RestartReason.RECYCLED})

#: Makes what is asked with afresh; told whether somebody wants it now, whatever it costs.
Renew = Callable[[bool], Awaitable[None]]


async def _nothing(_is_wanted: bool) -> None: ...


class Scheduler:
    """Keeps all matches of one source fresh. One listing decides who needs a closer look."""

    def __init__(
        self,
        source: str,
        *,
        client: SourceClient,
        context: WatchContext,
        dispatcher: Dispatcher,
        renew: Renew = _nothing,
        match_admission: MatchAdmission | None = None,
    ) -> None:
        self._source = source
        self._client = client
        self._context = context
        self._bus, self._clock = context.bus, context.clock
        self._cadence = context.rules.cadence
        self._dispatcher = dispatcher
        #: Makes what is asked with afresh: connections, and what the operator says of the site.
        self._renew = renew
        #: Asked before new matches are taken up; `None` lets all in.
        self._match_admission = match_admission
        self._watchers: dict[str, FeedWatch] = {}
        #: Archived, or another node's.
        self._finished = Finished()
        #: Matches that somebody wants to be left alone for good, and for a while; by the names that the matches have.
        self._unwatched: set[MatchRef] = set()
        self._paused: set[MatchRef] = set()
        #: Whether somebody wants the whole source to be left alone.
        self._is_resting = False
        self._nudged = asyncio.Event()
        #: One at a time makes a watcher: two for one match would take it from each other.
        self._adopting = asyncio.Lock()
        self._listings = Listings(source, client=client, bus=context.bus, clock=context.clock, cadence=self._cadence)

    async def adopt(self, match: LiveMatch, ref: MatchRef) -> FeedWatch | None:
        """Begin to poll a feed of a match; `None` when somebody wants the match to be left alone."""
        matches, row = self._context.matches, match.row
        if row.ref in self._unwatched or self.is_left_alone(ref.source_id):
            matches.drop(match)
            return None
        match, feed = await matches.join(match, ref, self._context.pipeline, self._context.precedence)
        if row.ref in self._unwatched:  # by somebody's wish, just now
            matches.drop(match, feed)
            return None
        watcher = self._watchers[ref.source_id] = FeedWatch(match, feed, self._context)
        if row.ref in self._paused:
            watcher.hold(Hold.MATCH)
        if self._is_resting:
            watcher.hold(Hold.SOURCE)
        # What the hot view says is of a former life: from here on it is RECOVERING until it has been compared.
        watcher.show()
        self._bus.emit(MatchClaimed(match_id=row.match_id, ref=str(row.ref), epoch=row.epoch))
        return watcher

    @property
    def records(self) -> list[MonitoringRecord]:
        """Return how the watching of each match goes."""
        return [watcher.record for watcher in self._watchers.values() if watcher.is_shown]

    @property
    def findings(self) -> list[Finding]:
        """Return what is open in all matches together."""
        shown = (watcher for watcher in self._watchers.values() if watcher.is_shown)
        return [finding for watcher in shown for finding in watcher.state.findings]

    @property
    def listed_at(self) -> datetime | None:
        """Return when the listing was last read."""
        return self._listings.read_at

    @property
    def unlisted_seconds(self) -> float:
        """Return how long ago that was; before the first time, for how long it has been waited for."""
        return self._listings.unread_seconds

    def hear_of(self, page: str) -> None:
        """Look at once at the match whose open page was told of a change: a sign of it, never the change itself."""
        for source_id, watcher in self._watchers.items():
            if self._client.page_of(source_id) == page and (at := watcher.hurried_at()) is not None:
                self._submit(watcher, watcher.look, at)

    async def recycle(self, match_ids: Collection[int] | None = None) -> bool:
        """Begin watches anew with fresh connections: those of these matches, or all; return whether there were any."""
        chosen = [each for each in self._watchers.values() if match_ids is None or each.state.row.match_id in match_ids]
        if chosen:
            await self._renew(True)
        for watcher in chosen:
            watcher.recycle()
        self._nudged.set()
        return bool(chosen)

    # --- what people ask for ---------------------------------------------------------------------------------

    @property
    def client(self) -> SourceClient:
        return self._client

    @property
    def is_resting(self) -> bool:
        return self._is_resting

    def find(self, source_id: str) -> FeedWatch | None:
        """Return the watcher of a match; `None` when it is not watched."""
        return self._watchers.get(source_id)

    def is_left_alone(self, source_id: str) -> bool:
        """Return whether a match is not to be watched, although it is stored or listed."""
        return source_id in self._finished or MatchRef(self._source, source_id) in self._unwatched

    def obey(self, *, unwatched: Iterable[MatchRef], paused: Iterable[MatchRef], is_resting: bool) -> None:
        """Put the standing orders in force."""
        for ref in unwatched:
            self.unwatch(ref)
        for ref in paused:
            self.pause(ref)
        if is_resting:
            self.rest()

    async def watch(self, source_id: str) -> FeedWatch | None:
        """Watch a match from now on, listed or not; `None` for one that is archived."""
        self._finished.discard(source_id)
        self._unwatched.discard(MatchRef(self._source, source_id))
        watcher = await self._take_up(source_id, None)
        if watcher is not None and watcher.is_due():
            self._start([watcher])
        return watcher

    def unwatch(self, ref: MatchRef) -> bool:
        """Let go of a match, however often it is listed, and paused as it may be; return whether it was watched."""
        self._unwatched.add(ref)
        self._paused.discard(ref)
        found = [key for key, watcher in self._watchers.items() if watcher.match.row.ref == ref]
        for key in found:
            self._let_go_of(self._watchers.pop(key))
        return bool(found)

    def _let_go_of(self, watcher: FeedWatch) -> None:
        watcher.end()
        if not watcher.match.feeds:
            self._context.hot.forget(watcher.state.row.match_id)

    def pause(self, ref: MatchRef) -> None:
        """Leave a match alone until it is resumed."""
        self._paused.add(ref)
        for watcher in self.of_match(ref):
            watcher.hold(Hold.MATCH)

    def resume(self, ref: MatchRef) -> None:
        self._paused.discard(ref)
        for watcher in self.of_match(ref):
            watcher.release(Hold.MATCH)
        self._nudged.set()

    def of_match(self, ref: MatchRef) -> list[FeedWatch]:
        """Return the watches of a match, by the name that the match has."""
        return [watcher for watcher in self._watchers.values() if watcher.match.row.ref == ref]

    def rest(self) -> None:
        """Ask the site nothing more, from this moment on."""
        self._is_resting = True
        self._listings.drop()
        for watcher in self._watchers.values():
            watcher.hold(Hold.SOURCE)

    async def renew(self) -> None:
        """Make afresh what is asked with; what was open is closed."""
        await self._renew(True)

    def wake(self) -> None:
        """Go on with the site; all its matches begin anew, spread over a while."""
        self._is_resting, self._listings.is_awaited = False, True
        for watcher in self._watchers.values():
            watcher.release(Hold.SOURCE)
        self._nudged.set()

    async def run(self) -> None:
        """Go on until cancelled; nothing that a site does ends this loop."""
        try:
            await self._run()
        finally:
            self._listings.drop()

    async def _run(self) -> None:
        while True:
            started = self._clock.monotonic()
            try:
                pause = await self._turn()
            except Exception as error:  # a bug here must not stop the watching; it is shown with its trace
                self._bus.emit(failure_of(error, f"scheduler {self._source}"))
                pause = self._cadence.live
            await self._nap(started + pause - self._clock.monotonic())

    async def _nap(self, seconds: float) -> None:
        """Wait for the next tick, or until somebody wants something."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._nudged.wait()
        self._nudged.clear()

    async def _turn(self) -> float:
        """Do what a tick has to do; return the seconds to the next one."""
        if self._is_resting:
            return self._cadence.discovery
        self._mend()
        listing = await self._listings.next()
        if listing is None:
            self._go_without_listing()
            return self._cadence.live
        await self._sort(listing, self._listings.asked)
        self._mend()
        self._listings.settle()
        return self._listings.distance(self._usual_distance())

    def _usual_distance(self) -> float:
        resting = (Phase.PAUSED, Phase.ARCHIVED)
        tempos = (each.tempo for each in self._watchers.values() if each.state.row.phase not in resting)
        return listing_interval(tempos, self._cadence)

    async def _sort(self, listing: Listing, asked: Moment) -> None:
        """Take a listing in: accept, discover, look, let go."""
        plan = sort_out(
            listing,
            watched=self._watchers,
            ignored={board.source_id for board in listing.boards if self.is_left_alone(board.source_id)},
            is_news=lambda board: self._watchers[board.source_id].listed(board),
        )
        for board in plan.unchanged:
            self._watchers[board.source_id].accept(asked)
        due = [each for board in plan.changed if (each := self._watchers[board.source_id]).is_due(is_news=True)]
        new = (
            plan.new
            if not plan.new or self._match_admission is None or self._match_admission.admits(len(plan.new))
            else ()
        )
        due += [watcher for board in new if (watcher := await self._discover(board))]
        missing = [self._watchers[key] for key in plan.missing if key in self._watchers]
        due += [watcher for watcher in missing if self._is_due_unlisted(watcher)]
        self._bus.emit(
            ListingRead(
                source=self._source,
                matches=len(listing.boards),
                changed=len(due),
                unreadable=len(listing.unreadable),
            )
        )
        self._start(due)
        self._finished.hear((board.source_id for board in listing.boards), self._clock.monotonic())
        await self._let_go()

    def _is_due_unlisted(self, watcher: FeedWatch) -> bool:
        watcher.unlisted()
        return watcher.is_due()

    def _go_without_listing(self) -> None:
        """Ask for the matches one by one: perhaps only the listing is broken. If not, the breakers know."""
        if self._listings.is_refused:
            for watcher in self._watchers.values():
                watcher.turned_away()
            return
        slower = self._cadence.live * UNLISTED_FACTOR
        for watcher in self._watchers.values():
            watcher.unheard()
        self._start([each for each in self._watchers.values() if each.is_due(at_least=slower)])

    def _start(self, due: Iterable[FeedWatch]) -> None:
        """Have the matches looked at, the most urgent first; after a silence not all at once."""
        ordered = sorted(due, key=self._urgency)
        step = SPREAD_SECONDS / len(ordered) if self._listings.is_awaited and ordered else 0.0
        for place, watcher in enumerate(ordered):
            self._submit(watcher, watcher.look, self._clock.monotonic() + place * step)

    def _submit(self, watcher: FeedWatch, work: Work, at: float) -> None:
        priority, _ = self._urgency(watcher)
        request = ScrapeRequest(
            priority=priority,
            ref=watcher.feed.ref,
            resource=ResourceType.SCORECARD,
            scheduled_at=at,
            request_id=uuid4().hex,
            attempt=watcher.failures,
        )
        self._dispatcher.submit(request, work)

    def _mend(self) -> None:
        """Begin those watches anew that are stuck, too old, or rested; when they are many, not all at once."""
        restarts: list[tuple[FeedWatch, RestartReason]] = []
        for watcher in self._watchers.values():
            watcher.mind_staleness()
            reason = watcher.restart_reason()
            if reason is RestartReason.STALE and watcher.is_polling:
                watcher.abandon()
            elif reason is not None and not watcher.is_polling:
                restarts.append((watcher, reason))
        for place, (watcher, reason) in enumerate(restarts):
            at = self._clock.monotonic() + place * SPREAD_SECONDS / len(restarts)
            self._submit(watcher, self._restart(watcher, reason), at)

    def _restart(self, watcher: FeedWatch, reason: RestartReason) -> Work:
        async def restart() -> None:
            if reason not in _WITHOUT_RENEWAL:
                await self._renew(False)
            if await watcher.restart(reason):
                await watcher.look()

        return restart

    async def _discover(self, board: ListingEntry) -> FeedWatch | None:
        ref = MatchRef(self._source, board.source_id)
        try:
            watcher = await self._take_up(board.source_id, board.start_at)
        except Exception as error:  # this match waits for the next listing; the others go on
            self._bus.emit(StoreFailed(ref=str(ref), error_type=type(error).__name__, error_message=str(error)))
            return None
        if watcher is not None:
            watcher.listed(board)
        return watcher

    async def _take_up(self, source_id: str, start_at: datetime | None) -> FeedWatch | None:
        """Register and claim a match; `None` for one that is to be left alone, by its age or by somebody's wish."""
        ref, matches = MatchRef(self._source, source_id), self._context.matches
        async with self._adopting:
            if source_id in self._watchers or self.is_left_alone(source_id):
                return self._watchers.get(source_id)
            sport = self._client.source.sport
            row = await matches.store.register(ref, str(ref), start_at, self._clock.now(), sport=sport)
            if row.phase is Phase.ARCHIVED:
                self._finished.add(source_id, self._clock.monotonic())
            if self.is_left_alone(source_id) or row.ref in self._unwatched:  # also by somebody's wish, just now
                return None
            self._bus.emit(MatchDiscovered(match_id=row.match_id, ref=str(ref)))
            return await self.adopt(await matches.take(row.match_id), ref)

    async def _let_go(self) -> None:
        """Drop the matches that another node has taken, and archive those that have been over for a day."""
        for key, watcher in list(self._watchers.items()):
            if watcher.may_be_archived():
                await watcher.archive()
            if watcher.is_lost or watcher.state.row.phase is Phase.ARCHIVED:
                self._finished.add(key, self._clock.monotonic())
                self._watchers.pop(key, None)
                watcher.end()
        self._show_out()

    def _show_out(self) -> None:
        """Let go of matches that nothing has moved for long, while memory is short; never of one in play."""
        if self._match_admission is None or self._clock.monotonic() >= self._match_admission.low_until:
            return
        resting = {key: each for key, each in self._watchers.items() if each.state.row.status not in IN_PLAY}
        for key in self._match_admission.idle({key: each.active_at for key, each in resting.items()}):
            watcher, row = self._watchers.pop(key), resting[key].state.row
            self._let_go_of(watcher)
            idle = round(self._clock.monotonic() - watcher.active_at, 1)
            self._bus.emit(WatchStopped(match_id=row.match_id, ref=str(row.ref), idle_seconds=idle))

    def _urgency(self, watcher: FeedWatch) -> tuple[int, float]:
        """Sort live matches first, important ones before others, and among equals the one longest not looked at."""
        row, age = watcher.state.row, watcher.age
        priority = priority_of(row.status, row.start_at, self._clock.now())
        seen = -inf if age is None else -age
        return (len(Priority) if priority is None else priority), (-inf if watcher.is_important else seen)
