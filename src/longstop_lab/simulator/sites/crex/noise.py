"""The parts of the live state that say nothing about play: odds, forecasts, settings of the page."""

from random import Random
from typing import Any

from longstop_lab.simulator.cricket.game import Game

_LANGUAGES = (("en", "English"), ("cy", "Cymraeg"), ("is", "Íslenska"))


def odds(key: str, tick: int) -> dict[str, Any]:
    """Return odds and forecasts: they change with the tick, whatever happens in play."""
    dice = Random(f"odds {key} {tick}")
    low = dice.randint(100, 180)
    return {
        "R": f"{dice.randint(1, 60)}+{dice.randint(1, 3)}",
        "ats": f"{dice.randint(100, 200)}/{dice.randint(1, 6)}",
        "ca": dice.randint(1, 60),
        "la": low + 10,
        "tp": dice.randint(3000, 5000),
        "wp": f"{key},{dice.randint(10_000, 90_000)},{dice.randint(10_000, 90_000)},0",
        "rf": dice.randint(0, 1),
        "pr": {
            "ps": [
                {"ov": f"{overs} Overs", "sc": {f"ps{n}": str(low + 8 * n) for n in range(1, 5)}} for overs in (10, 20)
            ],
            "rates": {f"r{n}": f"{dice.randint(4, 9)}.{dice.randint(0, 99):02}" for n in range(1, 5)},
        },
    }


def trimmings(game: Game) -> dict[str, Any]:
    """Return what stays the same for a match, filler and settings."""
    captains = ".".join(side.players[0].key for side in game.sides if side.players)
    return {
        "L": "0.0.0",
        "M": "0.0.0",
        "S": "",
        "cb": "w",
        "cl": [{"code": code, "name": name} for code, name in _LANGUAGES],
        "e": 0,
        "ed": 1_822_000_000_000,
        "f": 1,
        "fi": f"https://pictures.example/{game.number}.png",
        "fid": game.number,
        "fsr": "P",
        "fta": 120,
        "g": captains,
        "gen": 1,
        "h": "1",
        "i": "5/1.3*.2",
        "ifs": "S",
        "ms": 0,
        "n1": 0,
        "o": f"&{game.key}",
        "oh": 1,
        "sd": 1_707_000_000_000,
        "sf": game.key[:3],
        "tti": 0,
    }
