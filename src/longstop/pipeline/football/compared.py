"""A look laid against what we hold. Pure: the decision of `run.py`, without its asking and storing."""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from longstop.model.event import Event
from longstop.model.football import Side
from longstop.model.match import SyncState
from longstop.pipeline import findings
from longstop.pipeline.boards import steps_back
from longstop.pipeline.football.diff import diff
from longstop.pipeline.football.state import (
    Difference,
    Doubt,
    FootballState,
    differences,
    goals_in,
    people_in,
    squads,
)
from longstop.pipeline.football.validate import are_strangers, looks_needed
from longstop.sources.base import FootballBoard, Incidents
from longstop.storage.base import Finding, FindingKind

#: Stands among the suspects while a list is doubted.
DOUBTED_LIST = "list"


class FootballLook(Struct, frozen=True, kw_only=True):
    """What one look brought of the match's course."""

    board: FootballBoard
    #: `None` when the site has no list of this match.
    incidents: Incidents | None


class FootballCompared(Struct, frozen=True, kw_only=True):
    """A look compared with the base: the state as it will be, and what to store for it."""

    #: Events in it are not stored yet; the caller stores them first.
    state: FootballState
    #: The board to go by; the last one while the one seen is doubted.
    board: FootballBoard
    events: tuple[Event, ...]
    players: dict[str, str]
    teams: dict[str, str]


def disagreement(state: FootballState, seen: FootballLook) -> frozenset[Difference]:
    """Return how far board and list disagree if everything shown is taken at its word."""
    return differences(state.goals if seen.incidents is None else goals_in(seen.incidents), seen.board.score)


def compared(state: FootballState, seen: FootballLook) -> FootballCompared:
    """Compare a look with what we hold: what is new, what is wrong, and the state once that is stored."""
    board, doubted_board = _believed(state, seen.board)
    off = disagreement(state, seen)
    incidents, doubt = _believed_list(state, seen)
    found = diff(
        state.events,
        incidents.items if incidents else None,
        seen.board.result,
        confirmed=state.suspects,
        settled=set() if seen.board.score is None else set(Side) - {side for side, _, _ in off},
    )
    state = _without_strangers(state, incidents)
    players, teams = _names(state, incidents, seen.board)
    after = msgspec.structs.replace(
        state,
        events={**state.events, **{event.key: event for event in found.events}},
        board=board,
        players={**state.players, **players},
        teams={**state.teams, **teams},
        differences=off,
        doubt=doubt,
    )
    wrong = list(_mismatches(differences(after.goals, board.score)))
    open_now = findings.confirmed(wrong, state.suspects, state.findings)
    doubts = frozenset(findings.token(finding) for finding in wrong if finding not in open_now)
    doubted_list = frozenset({DOUBTED_LIST} if doubt else ())
    suspects = found.suspects | doubts | doubted_board | doubted_list
    return FootballCompared(
        board=board,
        state=msgspec.structs.replace(
            after,
            suspects=suspects,
            findings=open_now,
            sync=_sync(state, seen, is_in_doubt=bool(suspects)),
        ),
        events=found.events,
        players=_learnt(players, state.players),
        teams=_learnt(teams, state.teams),
    )


def _believed(state: FootballState, shown: FootballBoard) -> tuple[FootballBoard, frozenset[str]]:
    """Return the board to go by: one that goes back is a cached copy until a second look shows it again."""
    token = f"board {shown.fingerprint}"
    if state.board is None or token in state.suspects or not steps_back(state.board, shown):
        return shown, frozenset()
    return state.board, frozenset({token})


def _believed_list(state: FootballState, seen: FootballLook) -> tuple[Incidents | None, Doubt | None]:
    """Return the list to go by: one that nothing we know speaks for may be another match's, until it has been shown
    often enough in a row. A list that has grown meanwhile is the same one."""
    shown, before = seen.incidents, state.doubt
    if shown is None:
        return None, None
    items = frozenset(shown.items)
    looks = before.looks + 1 if before and before.items <= items else 1
    if looks >= looks_needed(state, seen.board, shown):
        return shown, None
    return None, Doubt(items=items, looks=looks)


def _without_strangers(state: FootballState, incidents: Incidents | None) -> FootballState:
    """Return the state without line-ups that a list which is believed contradicts; they are read again at once."""
    named = people_in(item.content for item in incidents.items) if incidents else set()
    if state.lineups is None or not are_strangers(named, state.squad_keys):
        return state
    return msgspec.structs.replace(state, lineups=None, parts_asked_at=None)


def _mismatches(off: Iterable[Difference]) -> Iterable[Finding]:
    for side, listed, shown in sorted(off):
        detail = f"{listed} goals are listed, the board shows {shown}"
        yield Finding(kind=FindingKind.MISMATCH, place=side.value, detail=detail)


def _sync(state: FootballState, seen: FootballLook, *, is_in_doubt: bool) -> SyncState:
    """Return IN_SYNC once the whole list was compared, or there is none and we hold nothing, and no doubt is left."""
    is_compared = seen.incidents is not None or not state.incidents
    if state.sync is SyncState.IN_SYNC or (is_compared and not is_in_doubt):
        return SyncState.IN_SYNC
    return SyncState.RECOVERING


def _names(
    state: FootballState, incidents: Incidents | None, board: FootballBoard
) -> tuple[dict[str, str], dict[str, str]]:
    shown = squads(state.lineups)
    listed = {player.key: player.name for squad in shown for player in squad.players if player.name}
    absent = {player.key: player.name for squad in shown for player in squad.missing or () if player.name}
    mentioned = incidents.players if incidents else {}
    teams = {team.key: team.name for team in (board.home, board.away) if team.name}
    return {**absent, **mentioned, **listed}, teams


def _learnt(names: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    return {key: name for key, name in names.items() if known.get(key) != name}
