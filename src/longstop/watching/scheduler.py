"""One source's loop: ask the listing, sort it out, look closer where something changed, restart what is stuck."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from uuid import uuid4

from longstop.errors import CircuitOpen, PageNotFound, SourceError, SourceRefused, StorageError
from longstop.model.match import MatchRef, MonitoringRecord, Phase, Priority, priority_of
from longstop.pipeline.ask import Asker
from longstop.pipeline.held import HeldMatch
from longstop.sources.base import Line, Listing
from longstop.storage.base import Finding
from longstop.telemetry.events import (
    ListingFailed,
    ListingRead,
    MatchClaimed,
    MatchDiscovered,
    StoreFailed,
    TaskFailed,
)
from longstop.watching.cadence import listing_interval
from longstop.watching.discovery import sort_out
from longstop.watching.dispatcher import Dispatcher, Work
from longstop.watching.ownership import take
from longstop.watching.pace import Pace
from longstop.watching.requests import ResourceType, ScrapeRequest
from longstop.watching.restarts import RestartReason
from longstop.watching.watcher import Surroundings, Watcher

#: How often a match is asked for by itself while its listing cannot be read, in multiples of the usual interval.
UNLISTED_FACTOR = 4.0
#: After a silence all matches want to be looked at: their looks begin spread over this many seconds.
SPREAD_SECONDS = 2.0
#: All matches depend on the listing: while it is read well after a bad spell, it is asked at most so many times more
#: rarely.
SLOWEST_GOOD_LISTING = 2.0

Renew = Callable[[], Awaitable[None]]


async def _nothing() -> None: ...


class Scheduler:
    """Keeps all matches of one source fresh. One listing decides who needs a closer look."""

    def __init__(
        self, source: str, *, asker: Asker, around: Surroundings, dispatcher: Dispatcher, renew: Renew = _nothing
    ) -> None:
        self._source = source
        self._asker = asker
        self._around = around
        self._bus, self._clock = around.bus, around.clock
        self._cadence = around.rules.cadence
        self._dispatcher = dispatcher
        #: Makes what is asked with afresh: connections, and what the operator says of the site.
        self._renew = renew
        self._watchers: dict[str, Watcher] = {}
        #: Matches that a site goes on listing, and that are archived or another node's.
        self._done: set[str] = set()
        self._listed_at: datetime | None = None
        self._pace = Pace()
        #: The listing that is asked for at this moment.
        self._asking: asyncio.Task[Listing] | None = None
        #: When it was asked for: an age counts from the question, however late the answer is.
        self._asked_at = around.clock.now()
        #: Not asked for before this moment, since it was not found.
        self._list_again_at = 0.0
        #: Whether the last listing was not read, so that everybody is waiting for the next.
        self._was_silent = True

    def adopt(self, state: HeldMatch) -> Watcher:
        """Begin to watch a match from its durable base."""
        watcher = Watcher(state, self._around)
        self._watchers[state.row.ref.source_id] = watcher
        # What the hot view says is of a former life: from here on it is RECOVERING until it has been compared.
        watcher.show()
        row = state.row
        self._bus.emit(MatchClaimed(match_id=row.match_id, ref=str(row.ref), epoch=row.epoch))
        return watcher

    @property
    def records(self) -> list[MonitoringRecord]:
        """Return how the watching of each match goes."""
        return [watcher.record for watcher in self._watchers.values()]

    @property
    def findings(self) -> list[Finding]:
        """Return what is open in all matches together."""
        return [finding for watcher in self._watchers.values() for finding in watcher.state.findings]

    @property
    def listed_at(self) -> datetime | None:
        """Return when the listing was last read."""
        return self._listed_at

    async def run(self) -> None:
        """Go on until cancelled; nothing that a site does ends this loop."""
        try:
            await self._run()
        finally:
            if self._asking is not None:
                self._asking.cancel()

    async def _run(self) -> None:
        while True:
            started = self._clock.monotonic()
            try:
                pause = await self._turn()
            except Exception as error:  # a bug here must not stop the watching; it is shown with its trace
                self._bus.emit(TaskFailed.by(error, task=f"scheduler {self._source}"))
                pause = self._cadence.live
            await asyncio.sleep(max(0.0, started + pause - self._clock.monotonic()))

    async def _turn(self) -> float:
        """Do what a tick has to do; return the seconds to the next one."""
        self._mend()
        try:
            listing = await self._listing()
        except SourceError as error:
            self._was_silent = True
            if not isinstance(error, SourceRefused):
                self._look_without_listing()
            return self._after_silence(error)
        if listing is None:
            self._look_without_listing()
            return self._cadence.live
        await self._sort(listing, self._asked_at)
        self._mend()
        self._was_silent = False
        self._pace = self._pace.after(self._clock.monotonic(), errors=0, calm_after=self._cadence.calm_after)
        slowed = self._cadence.live * min(self._pace.factor, SLOWEST_GOOD_LISTING)
        return max(slowed, self._quiet()) if self._pace.factor > 1 else self._quiet()

    def _quiet(self) -> float:
        resting = (Phase.PAUSED, Phase.ARCHIVED)
        tempos = (each.tempo for each in self._watchers.values() if each.state.row.phase not in resting)
        return listing_interval(tempos, self._cadence)

    def _after_silence(self, error: SourceError) -> float:
        """Return the pause after a listing that was not read; having heard nothing is no quiet day."""
        if isinstance(error, CircuitOpen):
            return self._cadence.live
        self._bus.emit(
            ListingFailed(
                source=self._source, error_type=type(error).__name__, error_message=str(error), page=error.page
            )
        )
        if error.is_canary:
            return self._cadence.live
        self._pace = self._pace.after(
            self._clock.monotonic(), errors=1 + error.retries, calm_after=self._cadence.calm_after
        )
        if isinstance(error, PageNotFound):
            self._list_again_at = self._clock.monotonic() + self._cadence.not_found
        return self._cadence.live * self._pace.factor

    async def _listing(self) -> Listing | None:
        """Return the listing; `None` while it is not asked for, or takes so long that the matches must not wait."""
        if self._clock.monotonic() < self._list_again_at:
            return None
        if self._asking is None:
            self._asked_at = self._clock.now()
            self._asking = asyncio.create_task(self._asker.listing(), name=f"listing of {self._source}")
        done, _ = await asyncio.wait({self._asking}, timeout=self._cadence.live * UNLISTED_FACTOR)
        if not done:
            return None
        asked, self._asking = self._asking, None
        return asked.result()

    async def _sort(self, listing: Listing, asked_at: datetime) -> None:
        """Take a listing in: accept, discover, look, let go."""
        self._listed_at = asked_at
        plan = sort_out(
            listing,
            watched=self._watchers,
            ignored=self._done,
            is_news=lambda board: self._watchers[board.source_id].listed(board),
        )
        for board in plan.unchanged:
            self._watchers[board.source_id].accept(asked_at)
        due = [each for board in plan.changed if (each := self._watchers[board.source_id]).is_due(is_news=True)]
        due += [watcher for board in plan.new if (watcher := await self._discover(board))]
        due += [watcher for key in plan.missing if self._is_due_unlisted(watcher := self._watchers[key])]
        self._bus.emit(
            ListingRead(
                source=self._source,
                matches=len(listing.boards),
                changed=len(due),
                unreadable=len(listing.unreadable),
            )
        )
        self._start(due)
        await self._let_go()

    def _is_due_unlisted(self, watcher: Watcher) -> bool:
        watcher.unlisted()
        return watcher.is_due()

    def _look_without_listing(self) -> None:
        """Ask for the matches one by one: perhaps only the listing is broken. If not, the breakers know."""
        slower = self._cadence.live * UNLISTED_FACTOR
        for watcher in self._watchers.values():
            watcher.unheard()
        self._start([each for each in self._watchers.values() if each.is_due(at_least=slower)])

    def _start(self, due: Iterable[Watcher]) -> None:
        """Have the matches looked at, the most urgent first; after a silence not all at once."""
        ordered = sorted(due, key=self._urgency)
        step = SPREAD_SECONDS / len(ordered) if self._was_silent and ordered else 0.0
        for place, watcher in enumerate(ordered):
            self._submit(watcher, watcher.look, self._clock.monotonic() + place * step)

    def _submit(self, watcher: Watcher, work: Work, at: float) -> None:
        row = watcher.state.row
        priority, _ = self._urgency(watcher)
        request = ScrapeRequest(
            priority=priority,
            ref=row.ref,
            resource=ResourceType.SCORECARD,
            scheduled_at=at,
            request_id=uuid4().hex,
            attempt=watcher.record.consecutive_failures,
        )
        self._dispatcher.submit(request, work)

    def _mend(self) -> None:
        """Begin those watches anew that are stuck, too old, or rested."""
        for watcher in self._watchers.values():
            watcher.mind_staleness()
            reason = watcher.restart_reason()
            if reason is RestartReason.STALE and watcher.is_looking:
                watcher.abandon()
            elif reason is not None and not watcher.is_looking:
                self._submit(watcher, self._restart(watcher, reason), self._clock.monotonic())

    def _restart(self, watcher: Watcher, reason: RestartReason) -> Work:
        async def restart() -> None:
            if reason is not RestartReason.LIFETIME:
                await self._renew()
            await watcher.restart(reason)
            await watcher.look()

        return restart

    async def _discover(self, board: Line) -> Watcher | None:
        ref = MatchRef(self._source, board.source_id)
        store = self._around.store
        try:
            row = await store.register(ref, str(ref), board.start_at, self._clock.now(), sport=self._asker.sport)
            if row.phase is Phase.ARCHIVED:
                self._done.add(board.source_id)
                return None
            self._bus.emit(MatchDiscovered(match_id=row.match_id, ref=str(ref)))
            watcher = self.adopt(await take(store, row.match_id, self._around.node))
        except StorageError as error:  # this match waits for the next listing; the others go on
            self._bus.emit(StoreFailed(ref=str(ref), error_type=type(error).__name__, error_message=str(error)))
            return None
        watcher.listed(board)
        return watcher

    async def _let_go(self) -> None:
        """Drop the matches that another node has taken, and archive those that have been over for a day."""
        for key, watcher in list(self._watchers.items()):
            if watcher.may_be_archived():
                await watcher.archive()
            if watcher.is_lost or watcher.state.row.phase is Phase.ARCHIVED:
                self._done.add(key)
                del self._watchers[key]

    def _urgency(self, watcher: Watcher) -> tuple[int, float]:
        """Sort live matches first, important ones before others, and among equals the one longest not looked at."""
        record = watcher.record
        priority = priority_of(record.status, record.start_at, self._clock.now())
        seen = record.last_poll_at.timestamp() if record.last_poll_at else 0.0
        return (len(Priority) if priority is None else priority), (0.0 if record.is_important else seen)
