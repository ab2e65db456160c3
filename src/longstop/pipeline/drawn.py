"""What a drawn page shows of a cricket match, laid over what we hold. Pure.

The page names the sides that play, or it is not believed: it has no key that would say whose it is.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from longstop.errors import ImpossibleObservation, WrongMatch
from longstop.model.cricket import InningsScore, Overs
from longstop.model.match import MatchStatus, SyncState
from longstop.pipeline.boards import is_less
from longstop.pipeline.compared import Compared
from longstop.pipeline.held import HeldMatch
from longstop.pipeline.milestones import pair_of
from longstop.pipeline.state import MatchState
from longstop.pipeline.validate import validate_board
from longstop.sources.base import Board, DrawnBoard, DrawnFootballBoard
from longstop.storage.base import Finding, FindingKind

Drawn = DrawnBoard | DrawnFootballBoard

#: Open as long as a match is read by its drawn page alone.
ONLY_DRAWN = Finding(kind=FindingKind.GAP, place="events", detail="only the drawn page could be read")
#: Fewer letters than these may be anybody's.
SHORTEST_NAME = 2


def is_only_drawn(state: HeldMatch) -> bool:
    """Return whether the last look had nothing but the drawn page: no event may come of what it showed."""
    return ONLY_DRAWN in state.findings


def with_gap(state: HeldMatch) -> tuple[Finding, ...]:
    """Return what is open about a match of which a look has seen no events."""
    return tuple(dict.fromkeys((*state.findings, ONLY_DRAWN)))


def stored_payload(state: HeldMatch) -> dict[str, Any]:
    """Return the payload that is served; a match of which none is stored is not begun from a drawn page."""
    if state.snapshot is None:
        raise WrongMatch("nothing is known of this match that a drawn page could be compared with")
    payload: dict[str, Any] = msgspec.json.decode(state.snapshot.payload)
    return payload


def is_called(name: str, shown: str) -> bool:
    """Return whether a page may call a side so: by its name, its beginning (NEP) or its initials (NZ)."""
    known, short = name.casefold(), shown.casefold()
    initials = "".join(word[0] for word in known.split())
    return known == short or (len(short) >= SHORTEST_NAME and (known.startswith(short) or initials == short))


def laid_over(state: MatchState, drawn: DrawnBoard) -> Compared:
    """Return the match with the score, the status and the words of its drawn page, and with its events as they were."""
    payload = stored_payload(state)
    batting, bowling = _keys(state.teams, drawn.names)
    board = Board(
        source_id=state.row.ref.source_id,
        status=drawn.status,
        headline=drawn.headline,
        fingerprint=drawn.fingerprint,
        start_at=state.row.start_at,
        batting=batting,
        bowling=bowling,
        first=drawn.first,
        second=drawn.second,
        result=drawn.result,
        is_innings_over=drawn.is_innings_over,
        match_format=payload["metadata"].get("match_type"),
    )
    validate_board(state, board)
    _check_progress(payload["innings"], board)
    findings = with_gap(state)
    after = msgspec.structs.replace(state, board=board, findings=findings, sync=SyncState.RECOVERING)
    return Compared(state=after, board=board, events=(), findings=findings, players={}, teams={})


def _keys(teams: Mapping[str, str], names: tuple[str, str]) -> tuple[str, str]:
    """Return the keys of both sides by their names; one name that is not theirs makes it another match."""
    match [_called(teams, shown) for shown in names]:
        case [[one], [two]] if one != two:
            return one, two
    raise WrongMatch(f"the drawn page is of {' and '.join(names)}, this match is of {sorted(teams.values())}")


def _called(teams: Mapping[str, str], shown: str) -> list[str]:
    """Return the keys that a name may mean; one side's whole name may be the beginning of the other's."""
    exactly = [key for key, name in teams.items() if name.casefold() == shown.casefold()]
    return exactly or [key for key, name in teams.items() if is_called(name, shown)]


def _check_progress(served: Iterable[Mapping[str, Any]], board: Board) -> None:
    """Raise when the page shows less than is served: a correction or another pair of innings, it does not say which."""
    known = {innings["number"]: _score(innings) for innings in served}
    first, second = pair_of(max(known, default=0))
    is_upcoming = board.status is MatchStatus.UPCOMING and bool(known)
    if is_upcoming or is_less(known.get(first), board.first) or is_less(known.get(second), board.second):
        raise ImpossibleObservation("the drawn page shows less than was known before")


def _score(innings: Mapping[str, Any]) -> InningsScore:
    overs = innings["overs"]
    return InningsScore(runs=innings["runs"], wickets=innings["wickets"], overs=Overs(overs["over"], overs["ball"]))
