"""Which scoreboard to believe: one that goes back is a cached copy until a second look shows it again."""

from longstop.model.cricket import InningsScore
from longstop.model.football import Goals
from longstop.model.match import MatchStatus
from longstop.pipeline.looking import Look
from longstop.pipeline.state import MatchState
from longstop.sources.base import Board, FootballBoard, Line

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


def steps_back(before: Line, after: Line) -> bool:
    """Return whether a line shows less than the one before it."""
    if after.status is MatchStatus.UPCOMING and before.status is not MatchStatus.UPCOMING:
        return True
    match before, after:
        case Board(), Board():
            innings = ((before.first, after.first), (before.second, after.second))
            return _has_lost_result(before, after) or any(is_less(old, new) for old, new in innings)
        case FootballBoard(), FootballBoard():
            scores = ((before.score, after.score), (before.penalties, after.penalties))
            return _has_lost_result(before, after) or any(_has_fewer(old, new) for old, new in scores)
    return False


def _has_lost_result(before: Board | FootballBoard, after: Board | FootballBoard) -> bool:
    return before.result is not None and after.result is None


def _has_fewer(old: Goals | None, new: Goals | None) -> bool:
    if old is None:
        return False
    return new is None or new.home < old.home or new.away < old.away


def is_less(old: InningsScore | None, new: InningsScore | None) -> bool:
    """Return whether an innings shows less than it did before."""
    if old is None or old.is_blank:
        return False
    if new is None:
        return True
    balls = [score.overs.over * BALLS_PER_OVER + score.overs.ball for score in (old, new)]
    return new.runs < old.runs or new.wickets < old.wickets or balls[1] < balls[0]
