"""Invented football teams with the numeric ids of a football site, and one team during a match."""

from random import Random

from longstop_lab.simulator.football.model import CardTruth, FootballPlayer, SubstitutionTruth, Team
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


_SUBSTITUTIONS = 5
#: No red card is shown below this number.
_LEAST_PLAYERS = 8


class Pitch:
    """One side during the match."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.playing = [player.key for player in team.eleven]
        self._bench = [player.key for player in team.bench]
        self._keepers = {player.key for player in (*team.eleven, *team.bench) if player.position == "G"}
        self._booked: set[str] = set()
        self._substitutions_left = _SUBSTITUTIONS

    def random_player(self, dice: Random, *, other_than: str = "") -> str:
        """Return a random player on the pitch; the goalkeeper only if there is no other."""
        outfield = [key for key in self.playing if key not in self._keepers and key != other_than]
        return dice.choice(outfield or self.playing)

    @property
    def may_lose_a_player(self) -> bool:
        return len(self.playing) > _LEAST_PLAYERS

    def show_card(self, side: str, minute: int, added: int, player: str, *, is_red: bool) -> CardTruth:
        """Book a player, or send him off; the second yellow is a red."""
        is_second = player in self._booked
        card = "red" if is_red else "second yellow" if is_second else "yellow"
        if is_red or is_second:
            self.playing.remove(player)
        self._booked.add(player)
        return CardTruth(side=side, minute=minute, added=added, player=player, card=card)

    def is_booked(self, player: str) -> bool:
        return player in self._booked

    def substitute(self, side: str, minute: int, added: int, dice: Random, *, is_injury: bool) -> SubstitutionTruth:
        """Change a player; ask `may_substitute` first."""
        out, came = self.random_player(dice), self._bench_players()[0]
        self._bench.remove(came)
        self.playing[self.playing.index(out)] = came
        self._substitutions_left -= 1
        return SubstitutionTruth(
            side=side, minute=minute, added=added, player_in=came, player_out=out, is_injury=is_injury
        )

    @property
    def may_substitute(self) -> bool:
        return self._substitutions_left > 0 and bool(self._bench_players())

    def _bench_players(self) -> list[str]:
        return [key for key in self._bench if key not in self._keepers]
