"""One poll of a match, from top to bottom. Read this first.

observe     ask the source for what it shows, as far back as needed        sports/*/read.py, client.py
            where the data cannot be had, read the drawn page              dom_fallback.py
validate    is it this match, can it be true                               sports/*/validate.py
diff        what is new, changed or gone, against what we hold             sports/*/align.py, versions.py
            what is missing or does not add up                             sports/*/totals.py
            the payload that is served                                     sports/*/payload.py
commit      one transaction; only when it is durable does it count         commit.py, storage/

A poll whose bodies say what they said at the last one ends after the first step: unchanged is free.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from longstop.clock import Clock
from longstop.errors import SourceError, StorageError
from longstop.matches.client import PollAttempt, PollClient, SourceClient
from longstop.matches.commit import Committer
from longstop.matches.dom_fallback import DomFallback
from longstop.matches.reconcile import learn_keys
from longstop.model.match import MatchStatus, Phase, SyncState
from longstop.model.observation import LIVE, Coverage, Keys, ListingEntry, Observation, Query
from longstop.resilience.taxonomy import AttemptState
from longstop.sports.base import MatchState, Sport
from longstop.storage.base import Finding, FindingKind, MatchStore, Receipt
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import ResourceFailed


class Polled(Struct, frozen=True, kw_only=True):
    """What came of one poll."""

    state: MatchState
    #: Proof of what was stored; `None` when there was nothing to store.
    receipt: Receipt | None


class Pipeline:
    """Everything one poll of a source's matches needs."""

    def __init__(
        self,
        sport: Sport[Any],
        *,
        client: SourceClient,
        store: MatchStore,
        bus: Bus,
        clock: Clock,
        scraper_id: str,
    ) -> None:
        self._sport = sport
        self._client = client
        self._bus = bus
        self._clock = clock
        self._dom = DomFallback(sport, bus)
        self._committer = Committer(store=store, clock=clock, scraper_id=scraper_id)

    @property
    def sport(self) -> str:
        return self._sport.name

    async def poll(
        self,
        state: MatchState,
        *,
        is_full: bool = False,
        attempt: PollAttempt | None = None,
        stand_in: ListingEntry | None = None,
    ) -> Polled:
        """Poll once, the whole event list if asked to, and store what changed; when it fails, raise and change nothing.

        `attempt` learns what the poll costs; `stand_in` is the line to go by when the site shows none any more.
        """
        attempt = attempt or PollAttempt()
        observation = await self.observe(state, is_full=is_full, attempt=attempt, stand_in=stand_in)
        return await self.apply(state, observation, attempt)

    async def observe(
        self, state: MatchState, *, is_full: bool, attempt: PollAttempt, stand_in: ListingEntry | None = None
    ) -> Observation:
        """Return what the source shows now."""
        ref = state.feed
        client = PollClient(
            self._client,
            attempt=attempt,
            priority=state.priority(self._clock.now()),
            # An equal second answer is what a suspect waits for.
            known=state.digests if _is_settled(state) and not is_full else {},
            clock=self._clock,
            rekey=self._rekey(state.keys),
        )
        try:
            known = keys = await self._introduced(client, state)
            observation = await self._sport.read(client, state, is_full=is_full, stand_in=stand_in)
            if _has_other_keys(state) and observation.view is not None:
                keys = self._learnt(state, keys, self._sport.names(observation.view))
            if keys != known:
                client.read_again(partial(self._sport.rekey, keys=keys))
                observation = await self._sport.read(client, state, is_full=is_full, stand_in=stand_in)
        except SourceError as error:
            error.name(ref.source, f"look at {ref.source_id}")
            return await self._dom.read(client, state, error, can_draw=self._client.can_draw)
        if state.row.match_id in self._dom.troubled:
            self._dom.settle(state)
        for resource, failure in observation.absent.items():
            self._note_failure(state, resource, failure)
        return msgspec.structs.replace(observation, digests=client.digests, keys=keys)

    def _rekey(self, keys: Keys) -> Callable[[Any], Any] | None:
        return partial(self._sport.rekey, keys=keys) if keys else None

    async def _introduced(self, client: PollClient, state: MatchState) -> Keys:
        """Return how this feed's keys map; before its first poll, both sides are found by their names."""
        if not _has_other_keys(state) or state.keys.teams:
            return state.keys
        keys = self._learnt(state, state.keys, await self._sport.introduce(client, state))
        client.read_again(partial(self._sport.rekey, keys=keys))
        return keys

    def _learnt(self, state: MatchState, keys: Keys, shown: Keys) -> Keys:
        """Return the same with newly shown names."""
        return learn_keys(keys, shown, state.feed.source, Keys(players=state.players, teams=state.teams))

    async def apply(self, state: MatchState, observation: Observation, attempt: PollAttempt) -> Polled:
        """Store what an observation changed; raise an `ObservationError` when it cannot be true."""
        attempt.reach(AttemptState.CAPTURED)
        if observation.view is None:
            attempt.reach(AttemptState.VALIDATED)
            attempt.reach(AttemptState.DONE)
            return Polled(state=state, receipt=None)
        try:
            if observation.coverage is Coverage.DOM:
                draft = self._sport.diff_dom(state, observation.view)
            else:
                draft = self._sport.diff(state, observation)
        except SourceError as error:
            error.name(state.feed.source, f"look at {state.feed.source_id}")
            raise
        if not (draft.state.board is None or isinstance(draft.state.board, ListingEntry)):
            raise TypeError(
                f"sport {self._sport.name} leaves a board that is no ListingEntry: {type(draft.state.board).__name__}"
            )
        attempt.reach(AttemptState.VALIDATED)
        receipt = await self._committer.commit(state, draft, observation)
        if receipt is not None:
            attempt.reach(AttemptState.PERSISTED)
        attempt.reach(AttemptState.DONE)
        after = msgspec.structs.replace(
            draft.state, digests=observation.digests, keys=observation.keys, ids={**state.ids, **draft.ids}
        )
        return Polled(state=after.after(receipt) if receipt else after, receipt=receipt)

    async def entry(self, state: MatchState, attempt: PollAttempt) -> ListingEntry:
        """Return what the source shows of a match at a glance."""
        client = PollClient(
            self._client, attempt=attempt, priority=state.priority(self._clock.now()), clock=self._clock
        )
        query = Query(resource=LIVE, source_id=state.feed.source_id)
        return await client.ask(query, ListingEntry)

    async def finish(self, state: MatchState, attempt: PollAttempt) -> MatchState:
        """Read what is left of a match whose page is gone, and store that it is over."""
        try:
            stand_in = self._sport.stand_in(state)
            if stand_in is not None:
                state = (await self.poll(state, is_full=True, attempt=attempt, stand_in=stand_in)).state
        except StorageError:
            raise
        except Exception as error:  # the match is over, whatever its last bodies do to a parser
            self._note_failure(state, "final sync", error)
        if state.result is None:
            unknown = Finding(kind=FindingKind.GAP, place="result", detail="the page is gone, and showed no result")
            state = msgspec.structs.replace(state, findings=(*state.findings, unknown))
        return await self._committer.move(state, Phase.COMPLETED, MatchStatus.COMPLETED)

    async def pause(self, state: MatchState) -> MatchState:
        """Store that a match is paused."""
        return await self._committer.move(state, Phase.PAUSED, state.row.status)

    async def archive(self, state: MatchState) -> MatchState:
        """Store that a finished match is polled no more."""
        return await self._committer.move(state, Phase.ARCHIVED, state.row.status)

    def _note_failure(self, state: MatchState, resource: str, error: Exception) -> None:
        self._bus.emit(
            ResourceFailed(
                match_id=state.row.match_id,
                ref=str(state.row.ref),
                resource=resource,
                error_type=type(error).__name__,
                error_message=str(error),
            )
        )


def _is_settled(state: MatchState) -> bool:
    """Return whether an answer that says the same as before leaves nothing to do: a paused match becomes active."""
    is_compared = state.sync is SyncState.IN_SYNC and not state.suspects
    return is_compared and state.row.phase in (Phase.ACTIVE, Phase.COMPLETED)


def _has_other_keys(state: MatchState) -> bool:
    """Return whether stored players and teams may have other keys than this feed's: another feed introduced them."""
    return state.ref is not None or state.stored is not None
