"""Invented football teams, under numbers as a football site has them."""

from random import Random

from longstop_lab.simulator.football import FootballPlayer, Team
from longstop_lab.simulator.keys import invent_name, invent_places

FORMATIONS = ("4-4-2", "4-3-3", "4-2-3-1", "3-5-2", "5-3-2")
ELEVEN = 11
BENCH = 9
_FIRST_MATCH = 11_400_000
_FIRST_TEAM = 2_000
_FIRST_PLAYER = 800_000
_SUFFIXES = ("FC", "United", "Athletic", "City", "SC")


def football_key(index: int) -> str:
    return str(_FIRST_MATCH + index)


def invent_teams(index: int, dice: Random) -> tuple[Team, Team]:
    """Return home and away; no two matches share a team or a player."""
    home, away = (
        _team(2 * index + nth, f"{place} {dice.choice(_SUFFIXES)}", dice)
        for nth, place in enumerate(invent_places(dice))
    )
    return home, away


def _team(number: int, name: str, dice: Random) -> Team:
    formation = dice.choice(FORMATIONS)
    positions = [*_positions(formation), "G", *dice.choices("DMF", k=BENCH - 1)]
    first = _FIRST_PLAYER + number * (ELEVEN + BENCH)
    shirts = dice.sample(range(1, 40), len(positions))
    squad = tuple(
        FootballPlayer(key=str(first + nth), name=invent_name(dice), shirt=shirt, position=position)
        for nth, (position, shirt) in enumerate(zip(positions, shirts, strict=True))
    )
    return Team(
        key=str(_FIRST_TEAM + number), name=name, formation=formation, eleven=squad[:ELEVEN], bench=squad[ELEVEN:]
    )


def _positions(formation: str) -> str:
    """Return the eleven's positions from the goalkeeper on: all lines between the first and the last are midfield."""
    first, *middle, last = (int(count) for count in formation.split("-"))
    return "G" + "D" * first + "M" * sum(middle) + "F" * last
