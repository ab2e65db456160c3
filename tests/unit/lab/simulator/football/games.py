"""Football matches for the tests: hundreds of seeds, played once."""

from functools import cache

from longstop_lab.simulator.football.board import FootballBoard
from longstop_lab.simulator.football.generate import play_football
from longstop_lab.simulator.football.model import FootballContent, FootballEntry, FootballMatch
from longstop_lab.simulator.football.script import FootballScript, script_football

SEED = 11
MATCHES = 400


@cache
def matches() -> list[FootballMatch]:
    return [play_football(SEED, index) for index in range(MATCHES)]


@cache
def scripts() -> list[tuple[FootballMatch, FootballScript]]:
    """Sites that get three in ten wrong."""
    return [(match, script_football(match, SEED, share=0.3)) for match in matches()]


def final(match: FootballMatch, kind: type) -> list[FootballContent]:
    """Return what is so in the end, of one kind, in the order in which it happened."""
    return [content for entry in match.entries if (content := entry.content) is not None and isinstance(content, kind)]


def reversed_entries(match: FootballMatch) -> list[FootballEntry]:
    return [entry for entry in match.entries if entry.content is None]


def board_after(match: FootballMatch, script: FootballScript, until: float = float("inf")) -> FootballBoard:
    board = FootballBoard(match)
    for step in script:
        if step.at <= until:
            board.apply(step)
    return board
