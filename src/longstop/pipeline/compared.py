"""A look laid against what we hold. Pure: the decision of `run.py`, without its asking and storing."""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from longstop.model.cricket import InferredBalls
from longstop.model.event import Event, EventKind
from longstop.model.match import SyncState
from longstop.pipeline import findings
from longstop.pipeline.assemble import SeenEvent
from longstop.pipeline.boards import believed
from longstop.pipeline.diff import diff
from longstop.pipeline.inferred import inferred
from longstop.pipeline.looking import Look
from longstop.pipeline.milestones import Milestones, milestones, score_of
from longstop.pipeline.state import MatchState
from longstop.sources.base import Board, Names, Scorecard
from longstop.storage.base import Finding


class Compared(Struct, frozen=True, kw_only=True):
    """A look compared with the base: the state as it will be, and what to store for it."""

    #: Events in it are not stored yet; the caller stores them first.
    state: MatchState
    #: The scoreboard to go by; the last one while the one seen is doubted.
    board: Board
    events: tuple[Event, ...]
    findings: tuple[Finding, ...]
    players: dict[str, str]
    teams: dict[str, str]


def compared(state: MatchState, seen: Look, scorecard: Scorecard | None, names: Names) -> Compared:
    """Compare a look with what we hold: what is new, what is wrong, and the state once that is stored."""
    settled = {innings for innings, difference in seen.differences.items() if not difference}
    board, doubted_board = believed(state, seen)
    reached = milestones(state.events, seen.newest_innings, seen.board, scorecard, seen.sighting.events)
    found = diff(
        state.events,
        seen.sighting,
        _with_inferred(reached, state, seen, scorecard),
        confirmed=state.suspects,
        settled=settled | _off_the_board(seen),
    )
    after = msgspec.structs.replace(
        state,
        events={**state.events, **{event.key: event for event in found.events}},
        board=board,
        scorecard=scorecard,
        players={**state.players, **names.players},
        teams={**state.teams, **names.teams},
        differences={innings: difference for innings, difference in seen.differences.items() if difference},
    )
    wrong = findings.find(after, seen.differences)
    open_now = findings.confirmed(wrong, state.suspects, state.findings)
    doubts = frozenset(findings.token(finding) for finding in wrong if finding not in open_now)
    suspects = found.suspects | doubts | doubted_board
    return Compared(
        board=board,
        state=msgspec.structs.replace(
            after,
            suspects=suspects,
            findings=open_now,
            sync=_sync(state.sync, seen, is_in_doubt=bool(suspects)),
        ),
        events=found.events,
        findings=open_now,
        players=_learnt(names.players, state.players),
        teams=_learnt(names.teams, state.teams),
    )


def _with_inferred(reached: Milestones, state: MatchState, seen: Look, scorecard: Scorecard | None) -> Milestones:
    """Add what a window did not show, as sums, and take back the sums whose balls have turned up."""
    if not seen.sighting.is_window:
        return reached
    sums: list[SeenEvent] = []
    # Also an innings of which the page shows no ball and no whole over: its total is all that is left of it.
    for innings in range(1, seen.newest_innings + 1):
        score = score_of(innings, seen.newest_innings, seen.board, scorecard)
        unseen = inferred(state.events, seen.sighting, innings, score)
        sums += [_sum_of(innings, over, content) for over, content in unseen.items()]
    places = {(each.innings, each.over) for each in sums}
    gone = [key for key in state.events if key.kind is EventKind.INFERRED and (key.innings, key.over) not in places]
    return Milestones(reached=(*reached.reached, *sums), withdrawn=(*reached.withdrawn, *gone))


def _sum_of(innings: int, over: int, content: InferredBalls) -> SeenEvent:
    name = f"inferred-{innings}-{over}"
    return SeenEvent(kind=EventKind.INFERRED, innings=innings, over=over, source_event_id=name, content=content)


def _off_the_board(seen: Look) -> set[int]:
    """Return innings that no scoreboard shows any more: there the list has the word, once it shows a later innings."""
    shown = {event.innings for event in seen.sighting.events}
    return shown - set(seen.differences) - {max(shown, default=0)}


def _sync(before: SyncState, seen: Look, *, is_in_doubt: bool) -> SyncState:
    """Return IN_SYNC once the whole list was compared, no step back awaits its second look, and totals agree or their
    disagreement is on record."""
    if before is SyncState.IN_SYNC:
        return before
    return SyncState.IN_SYNC if seen.is_exhausted and not is_in_doubt else SyncState.RECOVERING


def _learnt(names: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    return {key: name for key, name in names.items() if known.get(key) != name}
