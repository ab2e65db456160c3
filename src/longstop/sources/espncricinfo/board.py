"""espncricinfo's scoreboard and scorecard."""

import re
from datetime import UTC

from longstop.errors import LayoutChanged
from longstop.model.match import MatchStatus
from longstop.sources.espncricinfo.page import Innings, Match
from longstop.sources.results import result_in
from longstop.sports.cricket.model import Board, InningsScore, Overs, Scorecard, ScorecardInnings, Target

_INNINGS_OVER = re.compile(r"^(innings break|super over)\b", re.IGNORECASE)


def to_board(match: Match, innings: tuple[Innings, ...]) -> Board:
    status, headline = _status(match)
    result = result_in(match.statusText or match.status) if match.state == "POST" else None
    if match.state == "POST" and result is None:
        result = result_in(match.status)
    current = innings[-1] if innings else None
    pair = innings[(len(innings) - 1) // 2 * 2 :] if innings else ()
    teams = [str(entry.team.id) for entry in match.teams]
    batting = str(current.team.id) if current else ""
    return Board(
        source_id=str(match.objectId),
        status=MatchStatus.COMPLETED if result else status,
        headline=result.text if result else headline,
        batting=batting,
        bowling=next((team for team in teams if team != batting), "") if batting else "",
        first=_score(pair[0]) if pair else None,
        second=_score(pair[1]) if len(pair) > 1 else None,
        result=result,
        is_innings_over=result is not None or _INNINGS_OVER.search(headline) is not None,
        target=_target(current),
        match_format=match.format,
        start_at=match.startTime.astimezone(UTC) if match.startTime and match.startTime.tzinfo else None,
        fingerprint=_fingerprint(match),
    )


def _status(match: Match) -> tuple[MatchStatus, str]:
    """Return what the site says of the play, and its words when that is not simply play."""
    match match.state:
        case "PRE":
            return MatchStatus.UPCOMING, ""
        case "LIVE" if match.status.lower() == "live":
            return MatchStatus.LIVE, ""
        case "LIVE" | "POST":
            return MatchStatus.BREAK, match.status
        case _:
            raise LayoutChanged(f"the match is in state {match.state[:20]!r}")


def _fingerprint(match: Match) -> str:
    """Return what a listing and a match page both show and a ball always changes."""
    scores = [f"{entry.team.id}:{entry.score}:{entry.scoreInfo}" for entry in match.teams]
    return "|".join((match.state, match.status, str(match.liveInning), str(match.liveOvers), *scores))


def _score(innings: Innings) -> InningsScore:
    return InningsScore(runs=innings.runs, wickets=innings.wickets, overs=over_ball(innings.overs))


def _target(innings: Innings | None) -> Target | None:
    if innings is None or not innings.target or innings.totalOvers is None:
        return None
    return Target(runs=innings.target, overs=over_ball(innings.totalOvers))


def over_ball(number: float) -> Overs:
    """Read 19.4 as (19, 4) from its digits: as a fraction it would be something else."""
    over, _, ball = repr(float(number)).partition(".")
    if not (over.isdecimal() and len(ball) == 1):
        raise LayoutChanged(f"{number!r} is no over and ball")
    return Overs(int(over), int(ball))


def to_scorecard(all_innings: tuple[Innings, ...]) -> Scorecard:
    return Scorecard(
        innings=tuple(
            ScorecardInnings(number=innings.inningNumber, team=str(innings.team.id), score=_score(innings))
            for innings in all_innings
        )
    )
