"""The road of football, once: look → believe → compare → keep.

look        ask the site for the match's incidents and its event                     walk.py
validate    is it this match, can it be true                                         validate.py
diff        what is new, changed or gone, against what we hold                       diff.py
find        what does not add up                                                     compared.py
normalise   the payload that is served                                               normalise.py
keep        one transaction; only when it is durable does the update count           pipeline/keeping.py

Where the data cannot be had, the score is read from the drawn page (last_resort.py, drawn.py).

Line-ups and statistics are parts of the payload and no events: they are asked for now and then, and their lack is no
stop.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import TypeVar

import msgspec
from msgspec import Struct

from longstop.clock import Clock
from longstop.errors import SourceError, belonging_to
from longstop.model.match import MatchStatus, Phase
from longstop.model.snapshot import canonical
from longstop.pipeline.ask import Asker
from longstop.pipeline.effort import Effort
from longstop.pipeline.football.compared import FootballCompared, FootballLook, compared
from longstop.pipeline.football.drawn import laid_over
from longstop.pipeline.football.normalise import normalise, status_of, title_of
from longstop.pipeline.football.state import FootballState, squad_keys
from longstop.pipeline.football.validate import (
    is_known_squad,
    validate_again,
    validate_lineups,
    validate_statistics,
    wants_witness,
)
from longstop.pipeline.football.walk import look
from longstop.pipeline.held import HeldMatch
from longstop.pipeline.keeping import Proposal, Scribe
from longstop.pipeline.last_resort import LastResort
from longstop.resilience.taxonomy import AttemptState
from longstop.sources.base import DrawnFootballBoard, FootballBoard, Lineups, Statistics
from longstop.storage.base import Finding, FindingKind, MatchStore, Receipt
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import ResourceFailed

#: Line-ups and statistics are asked for this often; a site's "not found" may be pinned for longer by asking too early.
PARTS_EVERY_SECONDS = 60.0

Part = TypeVar("Part")


class FootballOutcome(Struct, frozen=True, kw_only=True):
    """What came of one look."""

    state: FootballState
    #: Proof of what was stored; `None` when there was nothing to store.
    receipt: Receipt | None


class FootballRoad:
    """Everything one look at a football match needs."""

    def __init__(self, *, asker: Asker, store: MatchStore, bus: Bus, clock: Clock, scraper_id: str) -> None:
        self._asker = asker
        self._bus = bus
        self._clock = clock
        self._last_resort = LastResort(bus)
        self._scribe = Scribe(store=store, clock=clock, scraper_id=scraper_id)

    async def run(
        self,
        state: HeldMatch,
        *,
        is_whole: bool = False,
        effort: Effort | None = None,
        board: FootballBoard | None = None,
    ) -> FootballOutcome:
        """Take one look, its rarer parts too if a whole one is asked for, and keep what it changed.

        When it fails, raise and change nothing. `board` is what to go by when the site has no event any more.
        """
        held, ref, effort = FootballState.of(state), state.row.ref, effort or Effort()
        with belonging_to(ref.source, f"look at {ref.source_id}"):
            asker = self._asker.keeping(effort, state.priority(self._clock.now()))
            try:
                seen = await look(asker, held, board)
            except SourceError as error:
                lay_over = partial(laid_over, held)
                after = await self._last_resort.read(asker, held, error, DrawnFootballBoard, lay_over)
                seen_at = self._clock.now()
            else:
                self._last_resort.settle(held)
                seen_at = self._clock.now()
                after = compared(await self._with_parts(asker, held, seen, is_whole=is_whole), seen)
            effort.reach(AttemptState.CAPTURED)
        effort.reach(AttemptState.VALIDATED)

        receipt = await self._scribe.write(held, _proposed(after, seen_at))
        if receipt is not None:
            effort.reach(AttemptState.PERSISTED)
        effort.reach(AttemptState.DONE)
        return FootballOutcome(state=after.state.after(receipt) if receipt else after.state, receipt=receipt)

    async def reload(self, state: HeldMatch) -> FootballState:
        """Return the durable base of a match that is still ours."""
        return FootballState.from_base(await self._scribe.base(state))

    async def finish(self, state: HeldMatch, effort: Effort) -> FootballState:
        """Read what is left of a match whose page is gone, and store that it is over."""
        held = FootballState.of(state)
        if held.board is not None:
            try:
                held = (await self.run(held, is_whole=True, effort=effort, board=held.board)).state
            except SourceError as error:
                self._note_failure(held, "final sync", error)
        if held.result is None:
            unknown = Finding(kind=FindingKind.GAP, place="result", detail="the page is gone, and showed no result")
            held = msgspec.structs.replace(held, findings=(*held.findings, unknown))
        return await self._scribe.put(held, Phase.COMPLETED, MatchStatus.COMPLETED)

    async def pause(self, state: HeldMatch) -> FootballState:
        """Store that a match rests."""
        return await self._scribe.put(FootballState.of(state), Phase.PAUSED, state.row.status)

    async def archive(self, state: HeldMatch) -> FootballState:
        """Store that a finished match needs no more looks."""
        return await self._scribe.put(FootballState.of(state), Phase.ARCHIVED, state.row.status)

    async def _with_parts(
        self, asker: Asker, state: FootballState, seen: FootballLook, *, is_whole: bool
    ) -> FootballState:
        """Return the state with line-ups and statistics read afresh, where it is time for that."""
        now, asked_at = self._clock.monotonic(), state.parts_asked_at
        is_turn = state.board is None or state.board.headline != seen.board.headline
        is_due = is_whole or is_turn or asked_at is None or now - asked_at >= PARTS_EVERY_SECONDS
        if is_due or wants_witness(state, seen.incidents):
            state = msgspec.structs.replace(state, lineups=await self._lineups(asker, state) or state.lineups)
        if not is_due:
            return state
        statistics = await self._statistics(asker, state, seen)
        return msgspec.structs.replace(state, statistics=statistics or state.statistics, parts_asked_at=now)

    async def _lineups(self, asker: Asker, state: FootballState) -> Lineups | None:
        """Return the line-ups. They do not say which match they are of: people of whom we know nothing are asked for
        twice, since they are going to vouch for others."""
        source_id = state.row.ref.source_id

        def check(lineups: Lineups) -> None:
            validate_lineups(state, lineups)

        first = await self._part(state, "lineups", lambda: asker.lineups(source_id), check)
        if first is None or (state.squad_keys and not squad_keys(first)):  # nobody takes the place of somebody
            return None
        if is_known_squad(state, first):
            return first
        asker.forget()
        again = await self._part(state, "lineups", lambda: asker.lineups(source_id), partial(validate_again, first))
        return first if again else None

    async def _statistics(self, asker: Asker, state: FootballState, seen: FootballLook) -> Statistics | None:
        source_id = state.row.ref.source_id

        def check(statistics: Statistics) -> None:
            validate_statistics(seen.incidents, statistics)

        return await self._part(state, "statistics", lambda: asker.statistics(source_id), check)

    async def _part(
        self,
        state: FootballState,
        name: str,
        ask: Callable[[], Awaitable[Part | None]],
        check: Callable[[Part], None],
    ) -> Part | None:
        """Return a part of the payload; `None` when the site has none yet, or none that can be believed."""
        try:
            part = await ask()
            if part is not None:
                check(part)
        except SourceError as error:
            self._note_failure(state, name, error)
            return None
        return part

    def _note_failure(self, state: FootballState, resource: str, error: SourceError) -> None:
        self._bus.emit(
            ResourceFailed(
                match_id=state.row.match_id,
                ref=str(state.row.ref),
                resource=resource,
                error_type=type(error).__name__,
                error_message=str(error),
            )
        )


def _proposed(after: FootballCompared, seen_at: datetime) -> Proposal:
    board, state = after.board, after.state
    return Proposal(
        status=status_of(state, board),
        title=title_of(board),
        start_at=board.start_at or state.row.start_at,
        payload=canonical(normalise(state, board).model_dump(mode="json", exclude_unset=True)),
        events=after.events,
        findings=state.findings,
        players=after.players,
        teams=after.teams,
        seen_at=seen_at,
    )
