"""One source's loop: ask the listing, sort it out, look closer where something changed."""

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from longstop.clock import Clock
from longstop.errors import PageNotFound, ParseError, SourceError, SourceFailed, StorageError
from longstop.model.match import MatchRef, MonitoringRecord, Phase, Priority, priority_of
from longstop.pipeline.ask import Asker
from longstop.pipeline.run import Road
from longstop.pipeline.state import MatchState
from longstop.sources.base import Board
from longstop.storage.base import Finding, HotWriter, MatchStore
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import (
    ListingFailed,
    ListingRead,
    MatchClaimed,
    MatchDiscovered,
    StoreFailed,
    TaskFailed,
)
from longstop.watching.cadence import Cadence, is_due, listing_interval, may_be_archived, may_look, wait_after
from longstop.watching.discovery import sort_out
from longstop.watching.ownership import take
from longstop.watching.watcher import Watcher

#: How often a match is asked for by itself while its listing cannot be read.
UNLISTED_SECONDS = 10.0


class Scheduler:
    """Keeps all matches of one source fresh. One listing decides who needs a closer look."""

    def __init__(
        self,
        source: str,
        *,
        asker: Asker,
        road: Road,
        store: MatchStore,
        hot: HotWriter,
        bus: Bus,
        clock: Clock,
        cadence: Cadence,
        slots: asyncio.Semaphore,
        node: str,
    ) -> None:
        self._source = source
        self._asker = asker
        self._road = road
        self._store = store
        self._hot = hot
        self._bus = bus
        self._clock = clock
        self._cadence = cadence
        #: Looks in flight, over all sources; a semaphore serves in the order of asking, so priority is kept.
        self._slots = slots
        self._node = node
        self._watchers: dict[str, Watcher] = {}
        #: Those whose look waits for a slot.
        self._waiting: set[Watcher] = set()
        #: Matches that a site goes on listing, and that are archived or another node's.
        self._done: set[str] = set()
        self._listed_at: datetime | None = None

    def adopt(self, state: MatchState) -> Watcher:
        """Begin to watch a match from its durable base."""
        watcher = Watcher(
            state, road=self._road, hot=self._hot, bus=self._bus, clock=self._clock, scraper_id=self._node
        )
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
    def waiting(self) -> list[MonitoringRecord]:
        """Return the matches whose look waits for a slot."""
        return [watcher.record for watcher in self._waiting]

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
        async with asyncio.TaskGroup() as looks:
            while True:
                started, at_least = self._clock.monotonic(), 0.0
                try:
                    await self._tick(looks)
                    quiet = listing_interval(self.records, self._clock.now(), self._cadence)
                except SourceError as error:
                    self._tell_listing_failed(error)
                    self._look_without_listing(error, looks)
                    # Who has heard nothing knows of no new match, and must not take that for a quiet day.
                    quiet, at_least = self._cadence.live, wait_after(error)
                except Exception as error:  # a bug here must not stop the watching; it is shown with its trace
                    self._bus.emit(TaskFailed.by(error, task=f"scheduler {self._source}"))
                    quiet = self._cadence.live
                pause = max(quiet, at_least)
                await asyncio.sleep(max(0.0, started + pause - self._clock.monotonic()))

    def _look_without_listing(self, error: SourceError, looks: asyncio.TaskGroup) -> None:
        """Ask for the matches one by one when only the listing is broken; a site that refuses is left alone."""
        if isinstance(error, PageNotFound | SourceFailed | ParseError):
            slower = msgspec.structs.replace(self._cadence, live=max(self._cadence.live, UNLISTED_SECONDS))
            now = self._clock.now()
            self._start([each for each in self._watchers.values() if is_due(each.record, now, slower)], looks)

    async def _tick(self, looks: asyncio.TaskGroup) -> None:
        asked_at = self._clock.now()
        listing = await self._asker.listing()
        self._listed_at = asked_at
        plan = sort_out(
            listing,
            watched=self._watchers,
            ignored=self._done,
            is_news=lambda board: self._watchers[board.source_id].needs_look(board, asked_at),
        )
        for board in plan.unchanged:
            self._watchers[board.source_id].accept(asked_at)
        due = [self._watchers[board.source_id] for board in plan.changed]
        due += [watcher for board in plan.new if (watcher := await self._discover(board))]
        due += [watcher for key in plan.missing if self._is_due(watcher := self._watchers[key])]
        self._bus.emit(
            ListingRead(
                source=self._source,
                matches=len(listing.boards),
                changed=len(due),
                unreadable=len(listing.unreadable),
            )
        )
        self._start(due, looks)
        await self._let_go()

    def _start(self, due: Iterable[Watcher], looks: asyncio.TaskGroup) -> None:
        """Begin the looks that are due, the most urgent first, one at a time for each match."""
        now = self._clock.now()
        for watcher in sorted(due, key=self._urgency):
            if not watcher.is_looking and may_look(watcher.record, now):
                watcher.is_looking = True
                self._waiting.add(watcher)
                looks.create_task(self._look(watcher), name=f"look at {watcher.state.row.ref}")

    async def _look(self, watcher: Watcher) -> None:
        async with self._slots:
            self._waiting.remove(watcher)
            await watcher.look()

    async def _discover(self, board: Board) -> Watcher | None:
        ref = MatchRef(self._source, board.source_id)
        try:
            row = await self._store.register(ref, str(ref), board.start_at, self._clock.now())
            if row.phase is Phase.ARCHIVED:
                self._done.add(board.source_id)
                return None
            self._bus.emit(MatchDiscovered(match_id=row.match_id, ref=str(ref)))
            return self.adopt(await take(self._store, row.match_id, self._node))
        except StorageError as error:  # this match waits for the next listing; the others go on
            self._bus.emit(StoreFailed(ref=str(ref), error_type=type(error).__name__, error_message=str(error)))
            return None

    def _is_due(self, watcher: Watcher) -> bool:
        # Looks begin with a tick: one that falls due before the next tick would otherwise wait for the one after it.
        soon = self._clock.now() + timedelta(seconds=self._cadence.live / 2)
        return is_due(watcher.record, soon, self._cadence)

    async def _let_go(self) -> None:
        """Drop the matches that another node has taken, and archive those that have been over for a day."""
        now = self._clock.now()
        for key, watcher in list(self._watchers.items()):
            row = watcher.state.row
            if not watcher.is_looking and may_be_archived(row.phase, row.completed_at, now):
                await watcher.archive()
            if watcher.is_lost or watcher.state.row.phase is Phase.ARCHIVED:
                self._done.add(key)
                del self._watchers[key]

    def _urgency(self, watcher: Watcher) -> tuple[int, float]:
        """Sort live matches first, and among equals the one not looked at for longest."""
        record = watcher.record
        priority = priority_of(record.status, record.start_at, self._clock.now())
        seen = record.last_poll_at.timestamp() if record.last_poll_at else 0.0
        return (len(Priority) if priority is None else priority), seen

    def _tell_listing_failed(self, error: SourceError) -> None:
        self._bus.emit(ListingFailed(source=self._source, error_type=type(error).__name__, error_message=str(error)))
