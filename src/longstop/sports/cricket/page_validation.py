"""Validates pages: they must be of the requested match, and their values possible."""

from collections.abc import Mapping

from longstop.errors import ImpossibleObservation, WrongMatch
from longstop.sports.cricket.model import (
    MAX_WICKETS,
    Board,
    CricketState,
    InningsScore,
    Scorecard,
    SeenEvents,
)

#: Overs per side, by format; other formats are not checked.
MAX_OVERS = {"T10": 10, "T20": 20, "T20I": 20, "ODI": 50}


def validate_board(state: CricketState, board: Board) -> None:
    """Raise if the scoreboard cannot be of this match."""
    # Before the first ball the teams may change: finals are announced as "to be confirmed".
    shown, known = board.team_keys, set(state.known_teams if state.newest_innings else ())
    if len(known) == len(shown) == 2 and shown != known:
        raise WrongMatch(f"the page has teams {sorted(shown)}, this match has {sorted(known)}")
    for score in (board.first, board.second):
        if score is not None:
            _check_wickets(score)
            _check_overs(score.overs.over, board.match_format)


def validate_teams(known: Mapping[str, str], shown: Mapping[str, str]) -> None:
    """Raise if a page has the name of one team with the key of the other: sites have swapped team keys."""
    owners = {name: key for key, name in known.items()}
    for key, name in shown.items():
        if known.get(key) != name and owners.get(name, key) != key:
            raise WrongMatch(
                f"the page has swapped the teams, or is of another match: it gives team {key!r} the name {name!r}, "
                f"which belongs to team {owners[name]!r}"
            )


def validate_listed(listed: SeenEvents, board: Board) -> None:
    """Raise if the event list cannot be of this match."""
    for event in listed.events:
        # The event list counts overs from 0.
        _check_overs(event.over + 1, board.match_format)


def validate_scorecard(scorecard: Scorecard, board: Board) -> None:
    """Raise if the scorecard cannot be of this match."""
    sides = board.team_keys
    for innings in scorecard.innings:
        if len(sides) == 2 and innings.team not in sides:
            raise WrongMatch(f"the scorecard has team {innings.team!r}, this match has {sorted(sides)}")
        _check_wickets(innings.score)


def _check_wickets(score: InningsScore) -> None:
    if score.wickets > MAX_WICKETS:
        raise ImpossibleObservation(f"{score.wickets} wickets in an innings")


def _check_overs(over: int, match_format: str | None) -> None:
    limit = MAX_OVERS.get(match_format or "")
    if limit is not None and over > limit:
        raise ImpossibleObservation(f"over {over} in a match of {limit} overs per side")
