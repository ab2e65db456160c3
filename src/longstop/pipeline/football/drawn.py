"""What a drawn page shows of a football match, laid over what we hold. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from longstop.errors import WrongMatch
from longstop.model.football import Goals
from longstop.model.match import MatchStatus, SyncState
from longstop.pipeline.boards import steps_back
from longstop.pipeline.drawn import is_called, stored_payload, with_gap
from longstop.pipeline.football.compared import DOUBTED_LIST, FootballCompared
from longstop.pipeline.football.state import FootballState
from longstop.pipeline.football.validate import validate_board
from longstop.sources.base import DrawnFootballBoard, FootballBoard, FootballTeam, PeriodScore


def laid_over(state: FootballState, drawn: DrawnFootballBoard) -> FootballCompared:
    """Return the match with the score, the status and the words of its drawn page, and with its events as they were.

    A score that goes back may be a goal that was taken back: it counts when a second look shows it again. A page draws
    no list: one that was doubted is no longer shown in a row.
    """
    served = _served(state, stored_payload(state))
    board = _board(served, drawn)
    validate_board(state, board)
    token = f"board {board.fingerprint}"
    # Of a shoot-out a page draws nothing that could be compared.
    is_less = steps_back(msgspec.structs.replace(served, penalties=board.penalties), board)
    is_doubted = is_less and token not in state.suspects
    suspects = frozenset(each for each in state.suspects - {DOUBTED_LIST} if not each.startswith("board "))
    believed = (state.board or served) if is_doubted else board
    after = msgspec.structs.replace(
        state,
        board=believed,
        findings=with_gap(state),
        suspects=suspects | ({token} if is_doubted else set()),
        doubt=None,
        sync=SyncState.RECOVERING,
    )
    return FootballCompared(state=after, board=believed, events=(), players={}, teams={})


def _board(served: FootballBoard, drawn: DrawnFootballBoard) -> FootballBoard:
    """Return the drawn board, with what a page does not draw as far as it is still true."""
    for known, shown in ((served.home, drawn.home), (served.away, drawn.away)):
        if not is_called(known.name, shown.name):
            raise WrongMatch(f"the drawn page has {shown.name!r}, this match has {known.name!r} there")
    is_same = (drawn.score, drawn.headline) == (served.score, served.headline)
    return msgspec.structs.replace(
        served,
        status=drawn.status,
        headline=drawn.headline,
        fingerprint=drawn.fingerprint,
        tells_all=drawn.tells_all,
        score=drawn.score,
        periods=served.periods if is_same else (),
        penalties=served.penalties if is_same else None,
    )


def _served(state: FootballState, payload: Mapping[str, Any]) -> FootballBoard:
    """Return the board that is served now, as far as it can be told from its payload."""
    teams, score, about = payload["teams"], payload.get("score", {}), payload["metadata"]
    return FootballBoard(
        source_id=state.row.ref.source_id,
        status=MatchStatus(payload["status"]),
        headline=payload.get("headline", ""),
        start_at=state.row.start_at,
        home=FootballTeam(**teams["home"]),
        away=FootballTeam(**teams["away"]),
        score=_goals(score),
        periods=tuple(
            PeriodScore(name=part["period"], home=part["home"], away=part["away"]) for part in score.get("periods", ())
        ),
        penalties=_goals(score.get("penalties", {})),
        tournament=about.get("tournament"),
        season=about.get("season"),
        round=about.get("round"),
    )


def _goals(score: Mapping[str, Any]) -> Goals | None:
    return Goals(home=score["home"], away=score["away"]) if score else None
