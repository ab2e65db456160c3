"""One poll of a football match: incidents and event, and once a minute line-ups and statistics.

Incidents and event are two requests, so a goal may fall between them: before a disagreement counts, both are fetched
once more. Line-ups and statistics are optional: a failure is recorded, and the poll continues.
"""

from functools import partial

import msgspec

from longstop.model.match import MatchStatus
from longstop.model.source_queries_and_answers import LIVE, ListingEntry, Observation, Query
from longstop.sports.base import Absent, Client, ask_live, ask_optional
from longstop.sports.football.model import (
    INCIDENTS,
    LINEUPS,
    STATISTICS,
    FootballBoard,
    FootballState,
    FootballView,
    Incidents,
    Lineups,
    Statistics,
)
from longstop.sports.football.page_validation import (
    is_known_squad,
    needs_lineups,
    validate_again,
    validate_board,
    validate_incidents,
    validate_lineups,
    validate_statistics,
)
from longstop.sports.football.totals import disagreement

#: Interval of line-ups and statistics. Asking too early may make a cache keep its "not found" longer.
PARTS_INTERVAL_SECONDS = 60.0


async def read(
    client: Client, state: FootballState, *, is_full: bool = False, stand_in: ListingEntry | None = None
) -> Observation:
    """Poll the match; stop early if incidents and event are unchanged."""
    source_id = state.feed.source_id
    are_parts_due = is_full or _are_parts_due(client, state)
    heads = (
        Query(resource=INCIDENTS, source_id=source_id, is_optional=True),
        Query(resource=LIVE, source_id=source_id),
    )
    if not (are_parts_due or stand_in) and await client.are_unchanged(*heads):
        return Observation(captured_at=client.now(), view=None)
    view = await read_course(client, state, stand_in)
    captured_at, absent = client.now(), Absent()
    view = await _with_parts(client, state, view, absent, are_due=are_parts_due)
    return Observation(captured_at=captured_at, view=view, absent=absent)


async def read_course(client: Client, state: FootballState, board: ListingEntry | None = None) -> FootballView:
    """Return incidents and event; `board` replaces the event if the site no longer has one."""
    seen = await _read_once(client, state, board)
    if disagreement(state, seen) - state.differences:
        client.forget()
        seen = await _read_once(client, state, board)
    return seen


async def _read_once(client: Client, state: FootballState, board: ListingEntry | None) -> FootballView:
    source_id = state.feed.source_id
    incidents = await client.ask_if_there(Query(resource=INCIDENTS, source_id=source_id), Incidents)
    shown = await ask_live(client, source_id, FootballBoard, board)
    validate_board(state, shown)
    if shown.status is MatchStatus.UPCOMING and shown.status_detail is None:
        incidents = None  # a list from before the kick-off is of another match
    if incidents is not None:
        validate_incidents(state, incidents)
    return FootballView(board=shown, incidents=incidents)


# --- line-ups and statistics -----------------------------------------------------------------------------------------


def _are_parts_due(client: Client, state: FootballState) -> bool:
    asked_at = state.parts_asked_at
    return asked_at is None or client.monotonic() - asked_at >= PARTS_INTERVAL_SECONDS


async def _with_parts(
    client: Client, state: FootballState, seen: FootballView, absent: Absent, *, are_due: bool
) -> FootballView:
    """Return the view with line-ups and statistics, if they are due."""
    are_due = are_due or state.board is None or state.board.headline != seen.board.headline
    if not (are_due or needs_lineups(state, seen.incidents)):
        return seen
    asked_at = client.monotonic()
    seen = msgspec.structs.replace(seen, lineups=await _lineups(client, state, absent))
    if not are_due:
        return seen
    query = Query(resource=STATISTICS, source_id=state.feed.source_id)
    statistics = await ask_optional(client, query, Statistics, absent, partial(validate_statistics, seen.incidents))
    return msgspec.structs.replace(seen, statistics=statistics, parts_asked_at=asked_at)


async def _lineups(client: Client, state: FootballState, absent: Absent) -> Lineups | None:
    """Return the line-ups. They do not name their match, so unknown players must appear in two responses."""
    query = Query(resource=LINEUPS, source_id=state.feed.source_id)
    first = await ask_optional(client, query, Lineups, absent, partial(validate_lineups, state))
    if first is None or (state.squad_keys and not first.keys):  # an empty list replaces no known players
        return None
    if is_known_squad(state, first):
        return first
    client.forget()
    again = await ask_optional(client, query, Lineups, absent, partial(validate_again, first))
    return first if again else None
