"""One poll of a match, from top to bottom. Read this first.

observe     query the source, as far back as needed                        sports/*/poll_requests.py
            one request after the other, past admission control            source_client_and_poll_attempt.py
            if its data cannot be read, read the rendered page             dom_fallback.py
validate    is it this match, is it possible                               sports/*/page_validation.py
            may it be believed                                             trust.py
diff        what is new, changed or gone, compared with the stored base    sports/*/align.py
            what counts only when two polls agree                          event_versions_and_confirmation.py
            what is missing or inconsistent                                sports/*/totals*.py
            the payload to serve                                           sports/*/payload.py
commit      one transaction; nothing counts before it is durable           storage/

A poll with the same bodies as the last one ends after the first step.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from longstop.clock import Clock
from longstop.errors import (
    LimitExceeded,
    ObservationError,
    ResourcesExhausted,
    SourceError,
    StorageError,
    without_frames,
)
from longstop.matches.dom_fallback import DomFallback, resource_failed
from longstop.matches.map_ids_and_keys_between_feeds import as_stored, learn_keys
from longstop.matches.source_client_and_poll_attempt import PollAttempt, PollClient, SourceClient
from longstop.matches.trust import Answers, Trust, judge_contradiction, judge_known, judge_new, judge_suspect
from longstop.model.data_finding import Finding, FindingKind
from longstop.model.event import Event, EventKey, Op
from longstop.model.match import MatchStatus, Phase, move
from longstop.model.polling_status import SyncState
from longstop.model.snapshot import Provenance, checksum
from longstop.model.source_queries_and_answers import Keys, ListingEntry, Observation
from longstop.resilience.poll_attempt_states import AttemptState
from longstop.sports.base import Draft, MatchState, Sport
from longstop.storage.base import MatchStore, MatchUpdate, Receipt, SnapshotDraft
from longstop.telemetry.bus import Bus

#: The comparison of a match with more events takes place outside the event loop.
LARGE_MATCH_EVENTS = 2_000
#: The confidence in a source while there is no other to compare with.
SINGLE_SOURCE = 1.0


class PollResult(Struct, frozen=True, kw_only=True):
    state: MatchState
    #: What was stored; `None` when there was nothing to store.
    receipt: Receipt | None
    trust: Trust
    #: Why the poll is not believed: then nothing was stored.
    refused: ObservationError | None = None


class Pipeline:
    """Polls matches of one source."""

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
        self._store = store
        self._bus = bus
        self._clock = clock
        self._scraper_id = scraper_id
        self._dom = DomFallback(sport, bus)

    @property
    def sport(self) -> str:
        return self._sport.name

    async def observe(
        self,
        state: MatchState,
        *,
        is_full: bool,
        attempt: PollAttempt,
        stand_in: ListingEntry | None = None,
        is_doubted: bool = False,
    ) -> Observation:
        """Return what the source shows now. With `is_full` the whole event list is read.

        `attempt` records the progress. `stand_in` replaces the live state when the site no longer shows it. What
        contradicts the stored match is read again as if nothing was stored; `is_doubted` if the last poll did.
        """
        ref = state.feed
        client = PollClient(
            self._client,
            attempt=attempt,
            priority=state.priority(self._clock.now()),
            # A suspect waits for a second, equal answer, a doubt for a good one: then even an unchanged page is parsed.
            known=state.digests if _is_settled(state) and not (is_full or is_doubted) else {},
            clock=self._clock,
            rekey=self._rekey(state.keys),
        )
        try:
            known = keys = await self._introduced(client, state)
            observation = await self._sport.read(client, state, is_full=is_full, stand_in=stand_in)
            if _has_other_keys(state) and observation.view is not None:
                keys = self._learnt(state, keys, self._sport.names(observation.view))
            if keys != known:
                client.use_keys(partial(self._sport.rekey, keys=keys))
                observation = await self._sport.read(client, state, is_full=is_full, stand_in=stand_in)
            if is_doubted and observation.view is not None:
                await self._draft(state, observation, attempt)  # raises what the diff to be stored would raise
        except ObservationError as error:
            error.name(ref.source, f"poll of {ref.source_id}")
            observation, keys = await self._from_scratch(client, state, error), state.keys
        except SourceError as error:
            error.name(ref.source, f"poll of {ref.source_id}")
            return await self._dom.read(client, state, error, can_render=self._client.can_render)
        self._dom.failures.pop(state.row.match_id, None)
        for resource, failure in observation.absent.items():
            self._bus.emit(resource_failed(state, resource, failure))
        return msgspec.structs.replace(observation, digests=client.digests, keys=keys, suspicions=client.suspicions)

    async def _from_scratch(self, client: PollClient, state: MatchState, error: ObservationError) -> Observation:
        """Return the answers that contradict the stored match, read as if nothing was stored; raise if impossible."""
        try:
            observation = await self._sport.read(client, _blank(state), is_full=True)
        except LimitExceeded:
            raise
        except SourceError as failure:
            raise error from failure
        return msgspec.structs.replace(observation, contradiction=without_frames(error))

    def _rekey(self, keys: Keys) -> Callable[[Any], Any] | None:
        return partial(self._sport.rekey, keys=keys) if keys else None

    async def _introduced(self, client: PollClient, state: MatchState) -> Keys:
        """Return the mapping of this feed's keys; before its first poll, both teams are matched by name."""
        if not _has_other_keys(state) or state.keys.teams:
            return state.keys
        keys = self._learnt(state, state.keys, await self._sport.introduce(client, state))
        client.use_keys(partial(self._sport.rekey, keys=keys))
        return keys

    def _learnt(self, state: MatchState, keys: Keys, shown: Keys) -> Keys:
        """Return the mapping extended by newly shown names."""
        return learn_keys(keys, shown, state.feed.source, Keys(players=state.players, teams=state.teams))

    async def apply(
        self,
        state: MatchState,
        observation: Observation,
        attempt: PollAttempt,
        *,
        trust: Trust,
        listed: ListingEntry | None = None,
    ) -> PollResult:
        """Store what an observation changed, if it is believed; raise an `ObservationError` when it is impossible."""
        attempt.reach(AttemptState.CAPTURED)
        if observation.view is None:
            attempt.reach(AttemptState.VALIDATED)
            attempt.reach(AttemptState.DONE)
            return PollResult(state=state, receipt=None, trust=trust)
        try:
            draft = await self._draft(state, observation, attempt)
        except SourceError as error:
            error.name(state.feed.source, f"poll of {state.feed.source_id}")
            raise
        if observation.replaced is None:
            # The listing has the source's keys, answers have the stored ones.
            listed = self._sport.rekey(listed, observation.keys) if observation.keys else listed
            trust, refused = self._judge(state, observation, draft, trust, listed)
            if refused is not None:
                refused.name(state.feed.source, f"poll of {state.feed.source_id}")
                return PollResult(state=state, receipt=None, trust=trust, refused=refused)
        if not (draft.state.board is None or isinstance(draft.state.board, ListingEntry)):
            raise TypeError(
                f"sport {self._sport.name} returned a {type(draft.state.board).__name__} as board, not a ListingEntry"
            )
        attempt.reach(AttemptState.VALIDATED)
        receipt: Receipt | None = None
        update = _update_after(state, draft, observation, self._scraper_id, self._clock.now())
        if update is not None:
            receipt = await self._store.save_update(update)
            attempt.reach(AttemptState.PERSISTED)
        attempt.reach(AttemptState.DONE)
        after = msgspec.structs.replace(draft.state, digests=observation.digests, keys=observation.keys)
        return PollResult(state=after.after(receipt) if receipt else after, receipt=receipt, trust=trust)

    async def _draft(self, state: MatchState, observation: Observation, attempt: PollAttempt) -> Draft:
        """Return what to store; raise if the match shows more than the limits, or takes too long to compare."""
        limits = self._client.limits
        extent = {} if observation.replaced else self._sport.extent(observation.view)
        limits.check_extent(extent)
        size = len(state.events) + extent.get("events", 0)
        call = partial(self._compare, state, observation)
        if size > LARGE_MATCH_EVENTS:
            draft = await self._client.run_apart(call, f"comparing {size:,} events", attempt, self._clock)
        else:
            with attempt.working(self._clock):
                draft = call()
        limits.check_draft(draft)
        return draft

    def _compare(self, state: MatchState, observation: Observation) -> Draft:
        if observation.replaced is not None:
            return self._dom.diff(state, observation)
        if observation.contradiction is not None:
            return _rebuilt(self._sport, state, observation, observation.contradiction.reason)
        return self._sport.diff(state, observation)

    def _judge(
        self, state: MatchState, observation: Observation, draft: Draft, trust: Trust, listed: ListingEntry | None
    ) -> tuple[Trust, ObservationError | None]:
        """Return the trust after a poll, and why it is not believed; `None` if it is."""
        now = self._clock.monotonic()
        answers = Answers(
            teams=self._sport.teams(observation.view),
            events=self._sport.shown(observation.view),
            agree=draft.agree,
            suspicions=observation.suspicions,
        )
        trust, suspect = judge_suspect(trust, answers, now)
        if suspect is not None:
            self._client.on_suspect()
            return trust, suspect
        known = state.known_teams
        stored = {*state.teams, *known}
        if observation.contradiction is not None:
            return judge_contradiction(trust, observation.contradiction, answers, listed, stored, now)
        if not trust.is_known and state.snapshot is None:
            return judge_new(trust, answers, listed, now)
        return judge_known(trust, answers, listed, stored, now, known)

    async def entry(self, state: MatchState, attempt: PollAttempt) -> ListingEntry:
        """Return the live state of a match, without its events."""
        return await self._client.entry(state.feed.source_id, attempt, state.priority(self._clock.now()))

    async def read_last(self, state: MatchState, attempt: PollAttempt) -> Observation | None:
        """Return what is left of a match whose page was removed; `None` if nothing can be read."""
        try:
            stand_in = self._sport.stand_in(state)
            if stand_in is None:
                return None
            return await self.observe(state, is_full=True, attempt=attempt, stand_in=stand_in)
        except ResourcesExhausted:
            raise
        except Exception as error:  # the match is finished, whatever its last bodies do to a parser
            self._bus.emit(resource_failed(state, "final sync", error))
            return None

    async def finish(self, state: MatchState, last: Observation | None, attempt: PollAttempt) -> MatchState:
        """Store the last observation of a match whose page was removed, and that the match is completed."""
        try:
            if last is not None:
                trust = Trust(is_known=state.snapshot is not None)
                state = (await self.apply(state, last, attempt, trust=trust)).state
        except StorageError:
            raise
        except Exception as error:
            self._bus.emit(resource_failed(state, "final sync", error))
        if state.result is None:
            unknown = Finding(kind=FindingKind.GAP, place="result", detail="the page is gone, and showed no result")
            state = msgspec.structs.replace(state, findings=(*state.findings, unknown))
        return await self._move(state, Phase.COMPLETED, MatchStatus.COMPLETED)

    async def pause(self, state: MatchState) -> MatchState:
        """Store that a match is paused."""
        return await self._move(state, Phase.PAUSED, state.row.status)

    async def archive(self, state: MatchState) -> MatchState:
        """Store that a finished match is no longer polled."""
        return await self._move(state, Phase.ARCHIVED, state.row.status)

    async def _move(self, state: MatchState, phase: Phase, status: MatchStatus) -> MatchState:
        update = _phase_update(state, phase, status, self._scraper_id, self._clock.now())
        return state.after(await self._store.save_update(update))


def _is_settled(state: MatchState) -> bool:
    """Return whether an unchanged answer needs no further work. A paused match would have to become active."""
    is_compared = state.sync is SyncState.IN_SYNC and not state.suspects
    return is_compared and state.row.phase in (Phase.ACTIVE, Phase.COMPLETED)


class _Everything(frozenset[str]):
    """The suspects of a rebuilt match: every step back counts as seen before."""

    def __contains__(self, token: object) -> bool:
        return True


def _blank(state: MatchState, events: Mapping[EventKey, Event] | None = None) -> MatchState:
    """Return the state of a match of which nothing is known but its references."""
    return type(state)(
        row=state.row,
        events=events or {},
        snapshot=None,
        findings=(),
        players={},
        teams={},
        ref=state.ref,
        keys=state.keys,
        stored=None if state.stored is None else (events or {}),
    )


def _rebuilt(sport: Sport[Any], state: MatchState, observation: Observation, reason: str) -> Draft:
    """Return the draft that replaces a stored match: what the source shows, and voids for everything else.

    All events count as void before the comparison. So an event that the source shows unchanged needs no version, one
    that it shows otherwise gets one, and the keys of the others are never used again.
    """
    voids = {key: msgspec.structs.replace(event, op=Op.VOID) for key, event in state.events.items()}
    blank = msgspec.structs.replace(_blank(state, voids), suspects=_Everything())
    draft = sport.diff(blank, observation)
    shown = {event.key: event for event in draft.events}
    gone = [
        msgspec.structs.replace(event, rev=event.rev + 1, op=Op.VOID, position=None)
        for key, event in state.events.items()
        if event.is_live and key not in shown
    ]
    changed = [event for event in draft.events if not _is_stored(event, state.events.get(event.key))]
    events = (*gone, *changed)
    finding = Finding(kind=FindingKind.REBUILT, place="match", detail=f"the source kept contradicting it: {reason}")
    after = msgspec.structs.replace(
        draft.state,
        events={**state.events, **{event.key: event for event in events}},
        findings=(*draft.state.findings, finding),
        snapshot=state.snapshot,
    )
    return msgspec.structs.replace(draft, state=after, events=events)


def _is_stored(event: Event, old: Event | None) -> bool:
    if old is None or not old.is_live:
        return False
    return (old.content, old.source_event_id, old.position) == (event.content, event.source_event_id, event.position)


def _has_other_keys(state: MatchState) -> bool:
    """Return whether another feed may have introduced the stored players and teams, under its own keys."""
    return state.ref is not None or state.stored is not None


# --- what a poll changes in the store. Pure --------------------------------------------------------------------------


def _update_after(
    before: MatchState, draft: Draft, observation: Observation, scraper_id: str, now: datetime
) -> MatchUpdate | None:
    """Return what is new after a poll; `None` when nothing changed."""
    row, source, stored = before.row, before.feed.source, before.stored
    update = MatchUpdate(
        match_id=row.match_id,
        epoch=row.epoch,
        scraper_id=scraper_id,
        captured_at=observation.captured_at,
        phase=move(row.phase, Phase.COMPLETED if draft.status is MatchStatus.COMPLETED else Phase.ACTIVE),
        status=draft.status,
        title=draft.title,
        start_at=draft.start_at,
        events=as_stored(draft.events, stored, source, row.ref.source) if stored is not None else draft.events,
        snapshot=_snapshot(before, draft, observation.captured_at, now),
        findings=draft.state.findings,
        players=_new_names(draft.state.players, before.players),
        teams=_new_names(draft.state.teams, before.teams),
        source=source,
        ids=draft.ids,
        keys=observation.keys,
    )
    is_news = (
        update.events
        or update.snapshot
        or set(update.findings) != set(before.findings)
        or (update.phase, update.status, update.title, update.start_at)
        != (row.phase, row.status, row.title, row.start_at)
        or update.players
        or update.teams
        or update.ids
    )
    return update if is_news else None


def _phase_update(state: MatchState, phase: Phase, status: MatchStatus, scraper_id: str, now: datetime) -> MatchUpdate:
    """Return an update of a match's phase, and nothing else."""
    row = state.row
    return MatchUpdate(
        match_id=row.match_id,
        epoch=row.epoch,
        scraper_id=scraper_id,
        captured_at=now,
        phase=move(row.phase, phase),
        status=status,
        title=row.title,
        start_at=row.start_at,
        findings=state.findings,
    )


def _snapshot(before: MatchState, draft: Draft, captured_at: datetime, now: datetime) -> SnapshotDraft | None:
    """Return the snapshot to store; `None` when the payload did not change."""
    if draft.payload is None:
        return None
    digest = checksum(draft.payload)
    if before.snapshot is not None and digest == before.snapshot.checksum:
        return None
    provenance = Provenance(source=before.feed.source, confidence=SINGLE_SOURCE, at=captured_at)
    return SnapshotDraft(
        checksum=digest,
        payload=draft.payload,
        provenance={"*": provenance},
        update_latency_ms=round((now - captured_at).total_seconds() * 1000),
    )


def _new_names(names: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Return the names that are new, or better than those known."""
    return {key: name for key, name in names.items() if known.get(key) != name}
