"""One look at a football match: its list of incidents, and its event.

They are two requests, so a goal may fall between them: before a disagreement is believed, both are asked once more.
"""

from longstop.errors import PageNotFound
from longstop.pipeline.ask import Asker
from longstop.pipeline.football.compared import FootballLook, disagreement
from longstop.pipeline.football.state import FootballState
from longstop.pipeline.football.validate import validate_board, validate_incidents
from longstop.sources.base import FootballBoard


async def look(asker: Asker, state: FootballState, board: FootballBoard | None = None) -> FootballLook:
    """Return what the site shows of the match; `board` stands in for the event when the site has none any more."""
    seen = await _look_once(asker, state, board)
    if disagreement(state, seen) - state.differences:
        asker.forget()
        seen = await _look_once(asker, state, board)
    return seen


async def _look_once(asker: Asker, state: FootballState, board: FootballBoard | None) -> FootballLook:
    source_id = state.row.ref.source_id
    incidents = await asker.incidents(source_id)
    shown = await _event(asker, source_id, board)
    validate_board(state, shown)
    if incidents is not None:
        validate_incidents(state, incidents)
    return FootballLook(board=shown, incidents=incidents)


async def _event(asker: Asker, source_id: str, board: FootballBoard | None) -> FootballBoard:
    try:
        return await asker.event(source_id)
    except PageNotFound:
        if board is None:
            raise
        return board
