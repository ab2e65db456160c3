"""The road of cricket, once: look → believe → compare → keep. Read this first.

look        ask the site for its scoreboard and its event list, as far back as needed   walk.py
validate    is it this match, can it be true                                            validate.py
assemble    feed items become events                                                    assemble.py
diff        what is new, changed or gone, against what we hold                          diff.py, timeline.py
find        what is missing or does not add up                                          findings.py, tally.py
normalise   the payload that is served                                                  normalise.py
keep        one transaction; only when it is durable does the update count              keeping.py, storage

Where the data cannot be had, the score is read from the drawn page                     last_resort.py, drawn.py
"""

from datetime import datetime
from functools import partial

import msgspec
from msgspec import Struct

from longstop.clock import Clock
from longstop.errors import SourceError, belonging_to
from longstop.model.cricket import Delivery
from longstop.model.match import MatchStatus, Phase
from longstop.model.snapshot import canonical
from longstop.pipeline.ask import Asker
from longstop.pipeline.compared import Compared, compared
from longstop.pipeline.drawn import is_only_drawn, laid_over
from longstop.pipeline.effort import Effort
from longstop.pipeline.held import HeldMatch
from longstop.pipeline.keeping import Proposal, Scribe
from longstop.pipeline.last_resort import LastResort
from longstop.pipeline.looking import Look
from longstop.pipeline.normalise import normalise, status_of, title_of
from longstop.pipeline.state import MatchState
from longstop.pipeline.validate import validate_scorecard
from longstop.pipeline.walk import look
from longstop.resilience.taxonomy import AttemptState
from longstop.sources.base import Board, DrawnBoard, Names, Scorecard
from longstop.storage.base import Finding, FindingKind, MatchStore, Receipt
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import ResourceFailed


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of one look."""

    state: MatchState
    #: Proof of what was stored; `None` when there was nothing to store.
    receipt: Receipt | None


class Road:
    """Everything one look at a match needs."""

    def __init__(self, *, asker: Asker, store: MatchStore, bus: Bus, clock: Clock, scraper_id: str) -> None:
        self._asker = asker
        self._bus = bus
        self._clock = clock
        self._last_resort = LastResort(bus)
        self._scribe = Scribe(store=store, clock=clock, scraper_id=scraper_id)

    async def run(
        self, state: HeldMatch, *, is_whole: bool = False, effort: Effort | None = None, board: Board | None = None
    ) -> Outcome:
        """Take one look, a whole one if asked to, and keep what it changed; when it fails, raise and change nothing.

        `effort` is told what the look costs; `board` is the scoreboard to go by when the site shows none any more.
        """
        state, ref, effort = MatchState.of(state), state.row.ref, effort or Effort()
        with belonging_to(ref.source, f"look at {ref.source_id}"):
            asker = self._asker.keeping(effort, state.priority(self._clock.now()))
            try:
                seen = await look(asker, state, is_whole=is_whole, board=board)
            except SourceError as error:
                after = await self._last_resort.read(asker, state, error, DrawnBoard, partial(laid_over, state))
                seen_at = self._clock.now()
            else:
                self._last_resort.settle(state)
                seen_at = self._clock.now()
                after = await self._compared(asker, state, seen)
            effort.reach(AttemptState.CAPTURED)
        effort.reach(AttemptState.VALIDATED)

        receipt = await self._scribe.write(state, _proposed(after, seen_at))
        if receipt is not None:
            effort.reach(AttemptState.PERSISTED)
        effort.reach(AttemptState.DONE)
        return Outcome(state=after.state.after(receipt) if receipt else after.state, receipt=receipt)

    async def _compared(self, asker: Asker, state: MatchState, seen: Look) -> Compared:
        scorecard = await self._scorecard(asker, state, seen)
        names = await self._names(asker, state, seen)
        return compared(state, seen, scorecard, names)

    async def reload(self, state: HeldMatch) -> MatchState:
        """Return the durable base of a match that is still ours."""
        return MatchState.from_base(await self._scribe.base(state))

    async def finish(self, state: HeldMatch, effort: Effort) -> MatchState:
        """Read what is left of a match whose page is gone, and store that it is over."""
        held = MatchState.of(state)
        try:
            held = (await self.run(held, is_whole=True, effort=effort, board=_last_board(held))).state
        except SourceError as error:
            self._note_failure(held, "final sync", error)
        if held.result is None:
            unknown = Finding(kind=FindingKind.GAP, place="result", detail="the page is gone, and showed no result")
            held = msgspec.structs.replace(held, findings=(*held.findings, unknown))
        return await self._scribe.put(held, Phase.COMPLETED, MatchStatus.COMPLETED)

    async def pause(self, state: HeldMatch) -> MatchState:
        """Store that a match rests."""
        return await self._scribe.put(MatchState.of(state), Phase.PAUSED, state.row.status)

    async def archive(self, state: HeldMatch) -> MatchState:
        """Store that a finished match needs no more looks."""
        return await self._scribe.put(MatchState.of(state), Phase.ARCHIVED, state.row.status)

    async def _scorecard(self, asker: Asker, state: MatchState, seen: Look) -> Scorecard | None:
        """Return the scorecard, read afresh whenever the whole list was; it is a check, so its failure is no stop."""
        if not seen.is_exhausted:
            return state.scorecard
        try:
            scorecard = await asker.scorecard(state.row.ref.source_id)
            validate_scorecard(scorecard, seen.board)
        except SourceError as error:
            self._note_failure(state, "scorecard", error)
            return state.scorecard
        return scorecard

    async def _names(self, asker: Asker, state: MatchState, seen: Look) -> Names:
        """Return names for keys that have none yet; sites know them late, so their lack is no stop either."""
        players = tuple(sorted(_player_keys(seen) - state.players.keys()))
        teams = tuple(sorted({key for key in (seen.board.batting, seen.board.bowling) if key} - state.teams.keys()))
        if not (players or teams):
            return Names(players={}, teams={})
        try:
            return await asker.names(players, teams)
        except SourceError as error:
            self._note_failure(state, "names", error)
            return Names(players={}, teams={})

    def _note_failure(self, state: MatchState, resource: str, error: SourceError) -> None:
        self._bus.emit(
            ResourceFailed(
                match_id=state.row.match_id,
                ref=str(state.row.ref),
                resource=resource,
                error_type=type(error).__name__,
                error_message=str(error),
            )
        )


def _proposed(after: Compared, seen_at: datetime) -> Proposal:
    board, state = after.board, after.state
    return Proposal(
        status=status_of(state, board),
        title=title_of(state, board),
        start_at=board.start_at or state.row.start_at,
        # What a blank scoreboard does not show is no news.
        payload=None
        if _is_blank(board)
        else canonical(normalise(state, board).model_dump(mode="json", exclude_unset=True)),
        events=after.events,
        findings=after.findings,
        players=after.players,
        teams=after.teams,
        seen_at=seen_at,
    )


def _last_board(state: MatchState) -> Board:
    """Return the scoreboard to go by when the site shows none any more; never a drawn one: events come of it."""
    return _blank(state) if state.board is None or is_only_drawn(state) else state.board


def _blank(state: MatchState) -> Board:
    """Return a scoreboard that shows nothing."""
    return Board(source_id=state.row.ref.source_id, status=state.row.status, headline="")


def _is_blank(board: Board) -> bool:
    return board.first is None and not (board.headline or board.fingerprint)


def _player_keys(seen: Look) -> set[str]:
    """Return the player keys that what we see mentions; those known before were asked for before."""
    keys = {batter.key for batter in seen.board.batters}
    if seen.board.bowler:
        keys.add(seen.board.bowler.key)
    for event in seen.sighting.events:
        if isinstance(event.content, Delivery):
            fallen = (wicket.player_key for wicket in event.content.wickets)
            keys.update(key for key in (event.content.batter, event.content.bowler, *fallen) if key)
    return keys
