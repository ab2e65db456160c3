"""A match in this process: its durable base, which its feeds share, and one change at a time.

A feed is one source's view of a match. Ownership and epoch belong to the match; polling state belongs to the feed. Only
the polls of the leading feed are stored. The other feeds are polled for their live state alone, and take over when the
leader fails.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from math import inf

import msgspec

from longstop.errors import EpochLost, ObservationError, SourceError, StorageError
from longstop.matches.map_ids_and_keys_between_feeds import as_seen
from longstop.matches.pipeline import Pipeline, PollResult
from longstop.matches.source_client_and_poll_attempt import PollAttempt
from longstop.matches.trust import Trust
from longstop.model.match import MatchRef, MatchRow
from longstop.model.source_queries_and_answers import Keys, ListingEntry
from longstop.sports.base import MatchState
from longstop.sports.registry import sport_named
from longstop.storage.base import MatchBase, MatchStore


class Feed:
    """One source's view of a match. Only `LiveMatch` changes its state."""

    def __init__(self, ref: MatchRef, pipeline: Pipeline, precedence: int, state: MatchState) -> None:
        self.ref = ref
        self.pipeline = pipeline
        self.precedence = precedence
        #: The durable base as this feed sees it, with the feed's in-memory state.
        self.state = state
        #: What its answers are worth; a restart of the watch keeps it.
        self.trust = Trust(is_known=False)
        #: Until this monotonic time, its last good poll keeps feeds of lower precedence from leading.
        self.fresh_until = -inf


class LiveMatch:
    """One match with its feeds. All stored changes go through here, one at a time."""

    def __init__(self, base: MatchBase, store: MatchStore, node: str) -> None:
        self._store = store
        self._node = node
        #: As last loaded. With a single feed, that feed's state is newer.
        self._base = base
        #: The epoch of our claim. A match with another epoch belongs to another node.
        self._epoch = base.match.epoch
        self._feeds: dict[MatchRef, Feed] = {}
        self._changing = asyncio.Lock()
        #: `False` after a failed commit, which may be durable all the same: then the base must be loaded again.
        self.is_base_known = True
        #: The number of polls that stored something. An observation that started before the last one may be outdated.
        self._commits = 0
        #: The feed that stored last.
        self.leader: MatchRef | None = None

    @classmethod
    async def take(cls, store: MatchStore, match_id: int, node: str) -> "LiveMatch":
        """Claim a match and load its durable base; it is RECOVERING until its first full poll."""
        await store.claim(match_id, node)
        return cls(await store.load(match_id), store, node)

    @property
    def row(self) -> MatchRow:
        return next((feed.state.row for feed in self._feeds.values()), self._base.match)

    @property
    def refs(self) -> tuple[MatchRef, ...]:
        """Return the refs of all feeds, including those that are not polled."""
        return self._base.feeds

    @property
    def feeds(self) -> Collection[Feed]:
        return self._feeds.values()

    # --- feeds -----------------------------------------------------------------------------------------------

    async def join(self, ref: MatchRef, pipeline: Pipeline, precedence: int = 0) -> Feed:
        """Add a feed; raise when its source is of another sport."""
        if pipeline.sport != self.row.sport:
            raise StorageError(
                f"match {self.row.match_id} is {self.row.sport}, but source {ref.source} is {pipeline.sport}"
            )
        async with self._changing:
            if self._feeds:
                await self._load()
            feed = self._feeds[ref] = Feed(ref, pipeline, precedence, self._state_for(ref))
            feed.trust = Trust(is_known=feed.state.snapshot is not None)
            return feed

    def leave(self, feed: Feed) -> None:
        self._feeds.pop(feed.ref, None)
        if self.leader == feed.ref:
            self.leader = None

    def leads(self, feed: Feed, now: float) -> bool:
        """Return whether a feed leads, or may lead after its next good poll.

        The fresh feed of the highest precedence leads; among equals the current leader, so that the lead does not
        alternate.
        """
        others = (each for each in self._feeds.values() if each is not feed and each.fresh_until > now)
        return all(self._rank(each) < self._rank(feed) for each in others)

    def _rank(self, feed: Feed) -> tuple[int, bool, MatchRef]:
        return feed.precedence, feed.ref == self.leader, feed.ref

    # --- changes ---------------------------------------------------------------------------------------------

    async def poll(
        self, feed: Feed, *, is_full: bool, attempt: PollAttempt, listed: ListingEntry | None = None
    ) -> PollResult | None:
        """Poll the leading feed and store what changed; `None` when another feed stored something meanwhile.

        `listed` is the match's entry in the listing, which confirms its identity.
        """
        try:
            polled = await self._poll(feed, is_full=is_full, attempt=attempt, listed=listed)
        except ObservationError as error:
            feed.trust = feed.trust.refused(error.reason)
            raise
        if polled is not None and polled.refused is not None:
            raise polled.refused
        return polled

    async def _poll(
        self, feed: Feed, *, is_full: bool, attempt: PollAttempt, listed: ListingEntry | None
    ) -> PollResult | None:
        led_by, commits = self.leader, self._commits
        observation = await feed.pipeline.observe(
            feed.state, is_full=is_full, attempt=attempt, is_doubted=bool(feed.trust.doubt)
        )
        async with self._changing:
            if self._commits != commits or self.leader not in (led_by, feed.ref):
                return None
            try:
                polled = await feed.pipeline.apply(feed.state, observation, attempt, trust=feed.trust, listed=listed)
            except BaseException as error:
                # Also on cancellation: a write in progress may still become durable.
                if not isinstance(error, SourceError) or isinstance(error, StorageError):
                    self.is_base_known = False
                raise
            feed.trust = polled.trust
            if polled.refused is not None:
                return polled
            feed.state = polled.state
            self._commits += polled.receipt is not None
            if self._is_shared(feed):
                await self._share(feed, is_stored=polled.receipt is not None)
            self.leader = feed.ref
            return polled

    async def check_alive(self, feed: Feed, attempt: PollAttempt) -> None:
        """Read the live state of a feed that does not lead, to check that the feed works; nothing is stored."""
        await feed.pipeline.entry(feed.state, attempt)

    async def change(self, feed: Feed, work: Callable[[MatchState], Awaitable[MatchState]]) -> None:
        """Store a change of our own, not the site's."""
        async with self._changing:
            await self._reload()
            feed.state = await work(feed.state)
            if self._is_shared(feed):
                await self._load()

    async def reload(self) -> None:
        """Load the base again if the outcome of a commit is unknown; raise when another node owns the match."""
        async with self._changing:
            await self._reload()

    async def restart(self, feed: Feed) -> None:
        """Claim the match again, and reset the in-memory state of this feed."""
        async with self._changing:
            self.is_base_known = False
            self._epoch = (await self._store.claim(self.row.match_id, self._node)).epoch
            await self._reload()
            feed.state = self._state_for(feed.ref)

    def _is_shared(self, feed: Feed) -> bool:
        """Return whether another feed is affected by what this one stores, or stored ids differ from the feed's."""
        return len(self._feeds) > 1 or feed.state.stored is not None

    async def _reload(self) -> None:
        if not self.is_base_known:
            await self._load(forget=True)
            self.is_base_known = True

    async def _share(self, feed: Feed, *, is_stored: bool) -> None:
        """Update the other feeds after a commit. A former leader starts with a full poll when it returns."""
        if self.leader not in (None, feed.ref) and self.leader in self._feeds:
            former = self._feeds[self.leader]
            former.state = self._state_for(former.ref)
        if is_stored:
            await self._load()

    async def _load(self, *, forget: bool = False) -> None:
        """Load the durable base into all feeds; raise when another node owns the match.

        The base of another owner is never used: its epoch would allow us to write.
        """
        base = await self._store.load(self.row.match_id)
        if base.match.epoch != self._epoch:
            owner = base.match.owner
            raise EpochLost(f"match {base.match.match_id} is at epoch {base.match.epoch}, owned by {owner}")
        self._base = base
        for feed in self._feeds.values():
            feed.state = self._state_for(feed.ref, None if forget else feed.state)

    def _state_for(self, ref: MatchRef, remembered: MatchState | None = None) -> MatchState:
        """Return the durable base as a feed sees it, with the in-memory state of the feed."""
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
            keys=self._base.keys.get(ref.source, Keys()),
            stored=None if events is stored.events else stored.events,
        )


class LiveMatches:
    """The matches that this process owns, by id. Feeds of all sources share them."""

    def __init__(self, store: MatchStore, node: str) -> None:
        self.store = store
        self.node = node
        self._matches: dict[int, LiveMatch] = {}
        #: Two sources that discover one match at the same time must not claim it from each other.
        self._taking = asyncio.Lock()

    async def take(self, match_id: int) -> LiveMatch:
        """Return a match, claimed if necessary."""
        async with self._taking:
            if match_id not in self._matches:
                self._matches[match_id] = await LiveMatch.take(self.store, match_id, self.node)
            return self._matches[match_id]

    async def join(
        self, match: LiveMatch, ref: MatchRef, pipeline: Pipeline, precedence: int
    ) -> tuple[LiveMatch, Feed]:
        """Add a feed; return the match too, which may have been dropped and claimed again."""
        async with self._taking:
            match = self._matches.setdefault(match.row.match_id, match)
            feed = await match.join(ref, pipeline, precedence)
            self._matches[match.row.match_id] = match
            return match, feed

    def drop(self, match: LiveMatch, feed: Feed | None = None) -> None:
        """Remove a feed; a match without feeds is dropped."""
        if feed is not None:
            match.leave(feed)
        if not match.feeds and self._matches.get(match.row.match_id) is match:
            del self._matches[match.row.match_id]

    async def take_over(
        self, sources: Collection[str], on_failure: Callable[[MatchRef, Exception], None]
    ) -> AsyncIterator[LiveMatch]:
        """Claim the unfinished matches of these sources.

        The lock of the data directory guarantees a single scraper. The epoch protects against a predecessor that was
        suspended, not dead: it can no longer write, and drops the match when it notices. A match that cannot be loaded
        is passed to `on_failure`; the others go on.
        """
        for match_id, feeds in (await self.store.unfinished()).items():
            try:
                if any(ref.source in sources for ref in feeds):
                    yield await self.take(match_id)
            except Exception as error:  # a third-party sport may raise anything
                on_failure(feeds[0], error)
