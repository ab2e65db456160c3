"""The numeric ids of espncricinfo, derived from the keys of crex."""

from longstop_lab.simulator.cricket.script import FIRST_ID
from longstop_lab.simulator.keys import base36

SITE = "espncricinfo"

_FIRST_MATCH = 1_400_000
#: The site's inner number of a match; only `objectId` stands in addresses.
_FIRST_INNER_MATCH = 70_000
_FIRST_TEAM = 1_000
_FIRST_PLAYER = 40_000
_FIRST_BALL = 52_000_000
_BASE = 36


def match_number(key: str) -> int:
    """Return the public number (`objectId`) of a match."""
    return _FIRST_MATCH + int(key, _BASE)


def match_key_of(number: int) -> str | None:
    """Return the key of the match with this public number; `None` for a number that no match can have."""
    return base36(number - _FIRST_MATCH) if number >= _FIRST_MATCH else None


def inner_match_number(key: str) -> int:
    return _FIRST_INNER_MATCH + int(key, _BASE)


def team_number(key: str) -> int:
    return _FIRST_TEAM + int(key, _BASE)


def player_number(key: str) -> int:
    return _FIRST_PLAYER + int(key, _BASE)


def ball_number(feed_id: int) -> int:
    """Return the id of a ball: it grows with the place in the match, as the feed's does."""
    return _FIRST_BALL + (feed_id - FIRST_ID) // 1_000


def over_name(innings: int, over: int) -> str:
    """Return how an over is called here: the page gives overs no id of their own."""
    return f"over-{innings}-{over}"
