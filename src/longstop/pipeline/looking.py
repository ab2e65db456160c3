"""What one look brings, and how far back it must go. Pure: `walk.py` does the asking."""

from collections.abc import Mapping

from msgspec import Struct

from longstop.model.match import Phase, SyncState
from longstop.pipeline.assemble import Sighting
from longstop.pipeline.diff import suspected
from longstop.pipeline.state import MatchState
from longstop.pipeline.tally import Difference
from longstop.sources.base import Board


class Depth(Struct, frozen=True, kw_only=True):
    """How far back to walk."""

    is_whole: bool = False
    #: The (innings, over) to read again from its first ball.
    back_to: tuple[int, int] | None = None


class Look(Struct, frozen=True, kw_only=True):
    """What one look brought."""

    board: Board
    sighting: Sighting
    #: How far scoreboard and events disagree, by innings, if everything shown is taken at its word.
    differences: Mapping[int, Difference]
    #: The latest innings with a delivery, known or seen.
    newest_innings: int
    #: Whether the list was read to its end, be that the beginning of the match or only of a window.
    is_exhausted: bool


def depth_for(state: MatchState, board: Board) -> Depth:
    """Return how far to walk, given what the scoreboard shows since we last looked."""
    last = state.board
    is_finishing = board.result is not None and state.row.phase is not Phase.COMPLETED
    if last is None or state.sync is not SyncState.IN_SYNC or is_finishing:
        return Depth(is_whole=True)
    if (board.batting, board.is_innings_over) != (last.batting, last.is_innings_over):
        return Depth(is_whole=True)
    doubted = [(key.innings, key.over) for key in suspected(state.suspects)]
    return Depth(back_to=min([*_ended_since(state, last, board), *doubted], default=None))


def _ended_since(state: MatchState, last: Board, board: Board) -> list[tuple[int, int]]:
    before, after = (shown.second or shown.first for shown in (last, board))
    if before and after and after.overs.over > before.overs.over:
        return [(state.newest_innings, before.overs.over)]
    return []
