"""A match in this process: its durable base, shared by its feeds, and one change at a time.

Ownership and epoch belong to the match; how a feed is polled, and what was learnt from it, belong to the feed.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from math import inf

import msgspec

from longstop.errors import EpochLost, SourceError, StorageError
from longstop.matches.client import PollAttempt
from longstop.matches.pipeline import Pipeline, PollResult
from longstop.matches.reconcile import Candidate, as_seen, leads
from longstop.model.match import MatchRef
from longstop.model.observation import Keys
from longstop.sports.base import MatchState
from longstop.sports.registry import sport_named
from longstop.storage.base import MatchBase, MatchRow, MatchStore


class Feed:
    """One source's view of a match. Its state is changed by `LiveMatch` alone."""

    def __init__(self, ref: MatchRef, pipeline: Pipeline, precedence: int, state: MatchState) -> None:
        self.ref = ref
        self.pipeline = pipeline
        self.precedence = precedence
        #: The durable base as this feed sees it, and what this run has learnt from the feed.
        self.state = state
        #: Until when, monotonic, its last good poll counts: while it does, no feed of a lower precedence leads.
        self.fresh_until = -inf

    @property
    def candidate(self) -> Candidate:
        return Candidate(ref=self.ref, precedence=self.precedence, fresh_until=self.fresh_until)


class LiveMatch:
    """One match with its feeds. Every change of what is stored goes through here, one after the other."""

    def __init__(self, base: MatchBase, store: MatchStore, node: str) -> None:
        self._store = store
        self._node = node
        #: As loaded last. With a single feed, that feed's state is newer.
        self._base = base
        #: The one under which we may write; what is at another one is not ours any more.
        self._epoch = base.match.epoch
        self._feeds: dict[MatchRef, Feed] = {}
        self._changing = asyncio.Lock()
        #: Whether the feeds go on from what is stored: a commit reported as failed may be durable all the same.
        self.is_base_known = True
        #: How many polls have stored something: an observation that began before the last one may be older than it.
        self._commits = 0
        #: The feed that what is stored comes from.
        self.leader: MatchRef | None = None

    @classmethod
    async def take(cls, store: MatchStore, match_id: int, node: str) -> "LiveMatch":
        """Claim a match and load its durable base; it is RECOVERING until a feed has compared it."""
        await store.claim(match_id, node)
        return cls(await store.load(match_id), store, node)

    @property
    def row(self) -> MatchRow:
        return next((feed.state.row for feed in self._feeds.values()), self._base.match)

    @property
    def refs(self) -> tuple[MatchRef, ...]:
        """Return how the sources call the match, those that are not polled included."""
        return self._base.feeds

    @property
    def feeds(self) -> Collection[Feed]:
        return self._feeds.values()

    # --- feeds -----------------------------------------------------------------------------------------------

    async def join(self, ref: MatchRef, pipeline: Pipeline, precedence: int = 0) -> Feed:
        """Poll the match from one more source; raise when that source is of another sport."""
        if pipeline.sport != self.row.sport:
            raise StorageError(
                f"match {self.row.match_id} is {self.row.sport}, but {ref.source} reads {pipeline.sport}"
            )
        async with self._changing:
            if self._feeds:
                await self._load()
            feed = self._feeds[ref] = Feed(ref, pipeline, precedence, self._state_for(ref))
            return feed

    def leave(self, feed: Feed) -> None:
        """Poll the match from this source no more."""
        self._feeds.pop(feed.ref, None)
        if self.leader == feed.ref:
            self.leader = None

    def leads(self, feed: Feed, now: float) -> bool:
        """Return whether a feed leads, or may take the lead with its next good poll."""
        if len(self._feeds) < 2:
            return True
        return leads(feed.ref, [each.candidate for each in self._feeds.values()], self.leader, now)

    # --- changes ---------------------------------------------------------------------------------------------

    async def poll(self, feed: Feed, *, is_full: bool, attempt: PollAttempt) -> PollResult | None:
        """Poll the feed that leads, and store what it changed; `None` when another feed has stored more meanwhile."""
        led_by, commits = self.leader, self._commits
        observation = await feed.pipeline.observe(feed.state, is_full=is_full, attempt=attempt)
        async with self._changing:
            if self._commits != commits or self.leader not in (led_by, feed.ref):
                return None
            try:
                polled = await feed.pipeline.apply(feed.state, observation, attempt)
            except BaseException as error:
                # Also when it is cancelled: what was on its way to the disk may get there.
                if not isinstance(error, SourceError) or isinstance(error, StorageError):
                    self.is_base_known = False
                raise
            feed.state = polled.state
            self._commits += polled.receipt is not None
            if self._is_shared(feed):
                await self._share(feed, is_stored=polled.receipt is not None)
            self.leader = feed.ref
            return polled

    async def check_alive(self, feed: Feed, attempt: PollAttempt) -> None:
        """Poll a feed that does not lead, for a sign of life: its live state is read, and not kept."""
        await feed.pipeline.entry(feed.state, attempt)

    async def change(self, feed: Feed, work: Callable[[MatchState], Awaitable[MatchState]]) -> None:
        """Store a change that is ours, not the site's."""
        async with self._changing:
            await self._reload()
            feed.state = await work(feed.state)
            if self._is_shared(feed):
                await self._load()

    async def reload(self) -> None:
        """Go on from what is stored, where the outcome of a commit is not known; raise when it is not ours any more."""
        async with self._changing:
            await self._reload()

    async def restart(self, feed: Feed) -> None:
        """Claim the match again, and let this feed forget what it only remembers."""
        async with self._changing:
            self.is_base_known = False
            self._epoch = (await self._store.claim(self.row.match_id, self._node)).epoch
            await self._reload()
            feed.state = self._state_for(feed.ref)

    def _is_shared(self, feed: Feed) -> bool:
        """Return whether what one feed stores concerns another, or is not as this one sees it."""
        return len(self._feeds) > 1 or feed.state.stored is not None

    async def _reload(self) -> None:
        if not self.is_base_known:
            await self._load(forget=True)
            self.is_base_known = True

    async def _share(self, feed: Feed, *, is_stored: bool) -> None:
        """Show the other feeds what one has stored; one that led before it begins with a full sync when it is back."""
        if self.leader not in (None, feed.ref) and self.leader in self._feeds:
            former = self._feeds[self.leader]
            former.state = self._state_for(former.ref)
        if is_stored:
            await self._load()

    async def _load(self, *, forget: bool = False) -> None:
        """Load the durable base, and let all feeds go on from it; raise when it is not ours any more.

        Nothing of another owner's base is taken over: its epoch would let us write.
        """
        base = await self._store.load(self.row.match_id)
        if base.match.epoch != self._epoch:
            owner = base.match.owner
            raise EpochLost(f"match {base.match.match_id} is at epoch {base.match.epoch}, owned by {owner}")
        self._base = base
        for feed in self._feeds.values():
            feed.state = self._state_for(feed.ref, None if forget else feed.state)

    def _state_for(self, ref: MatchRef, remembered: MatchState | None = None) -> MatchState:
        """Return the durable base as a feed sees it, with what this run has learnt from the feed."""
        own = self._base.match.ref
        stored: MatchState = sport_named(self._base.match.sport).state.from_base(self._base)
        ids = self._base.ids.get(ref.source, {})
        events = as_seen(stored.events, ref.source, own.source, ids)
        return msgspec.structs.replace(
            remembered or stored,
            row=stored.row,
            events=events,
            snapshot=stored.snapshot,
            findings=stored.findings,
            players=stored.players,
            teams=stored.teams,
            ref=None if ref == own else ref,
            ids=ids,
            keys=self._base.keys.get(ref.source, Keys()),
            stored=None if events is stored.events else stored.events,
        )


class LiveMatches:
    """The matches that this process owns, by their numbers: the feeds of one share it, whatever source they are of."""

    def __init__(self, store: MatchStore, node: str) -> None:
        self.store = store
        self.node = node
        self._matches: dict[int, LiveMatch] = {}
        #: Two sources that find one match at the same moment must not claim it from each other.
        self._taking = asyncio.Lock()

    async def take(self, match_id: int) -> LiveMatch:
        """Return a match that is ours, claimed now if it was not."""
        async with self._taking:
            if match_id not in self._matches:
                self._matches[match_id] = await LiveMatch.take(self.store, match_id, self.node)
            return self._matches[match_id]

    async def join(
        self, match: LiveMatch, ref: MatchRef, pipeline: Pipeline, precedence: int
    ) -> tuple[LiveMatch, Feed]:
        """Poll a match from one more source; return the match too, which may have been let go and taken again."""
        async with self._taking:
            match = self._matches.setdefault(match.row.match_id, match)
            feed = await match.join(ref, pipeline, precedence)
            self._matches[match.row.match_id] = match
            return match, feed

    def drop(self, match: LiveMatch, feed: Feed | None = None) -> None:
        """Poll a feed no more; a match without feeds is let go."""
        if feed is not None:
            match.leave(feed)
        if not match.feeds and self._matches.get(match.row.match_id) is match:
            del self._matches[match.row.match_id]

    async def take_over(
        self, sources: Collection[str], on_failure: Callable[[MatchRef, Exception], None]
    ) -> AsyncIterator[LiveMatch]:
        """Claim the unfinished matches that these sources can be asked for.

        One data directory has one scraper, which its lock guarantees; an epoch guards the rest: a predecessor that was
        only paused, not dead, can then write nothing any more, and drops the match when it finds out. A match that
        cannot be read is handed to `on_failure`, and the others go on.
        """
        for row in await self.store.unfinished():
            try:
                if any(ref.source in sources for ref in await self.store.feeds(row.match_id)):
                    yield await self.take(row.match_id)
            except Exception as error:  # a sport of a third party may raise anything for one match
                on_failure(row.ref, error)
