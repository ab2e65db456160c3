"""Which scoreboard to believe: one that goes back is a cached copy until a second look shows it again."""

from longstop.model.cricket import InningsScore
from longstop.model.match import MatchStatus
from longstop.pipeline.looking import Look
from longstop.pipeline.state import MatchState
from longstop.sources.base import Board

BALLS_PER_OVER = 6


def believed(state: MatchState, seen: Look) -> tuple[Board, frozenset[str]]:
    """Return the scoreboard to go by, and what to remember when it is not yet the one that was seen."""
    token = f"board {seen.board.fingerprint}"
    before = state.board
    # A new innings begins a new pair on the board, with lower numbers: that is no step back.
    is_further = before is None or seen.newest_innings > state.newest_innings
    if before is None or is_further or token in state.suspects or not steps_back(before, seen.board):
        return seen.board, frozenset()
    return before, frozenset({token})


def steps_back(before: Board, after: Board) -> bool:
    """Return whether a scoreboard shows less than the one before it."""
    if after.status is MatchStatus.UPCOMING and before.status is not MatchStatus.UPCOMING:
        return True
    if before.result is not None and after.result is None:
        return True
    return any(_is_less(old, new) for old, new in ((before.first, after.first), (before.second, after.second)))


def _is_less(old: InningsScore | None, new: InningsScore | None) -> bool:
    if old is None or old.is_blank:
        return False
    if new is None:
        return True
    balls = [score.overs.over * BALLS_PER_OVER + score.overs.ball for score in (old, new)]
    return new.runs < old.runs or new.wickets < old.wickets or balls[1] < balls[0]
