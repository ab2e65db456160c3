"""Who is on the pitch, who may still come on, and who has seen a card."""

from random import Random

from longstop_lab.simulator.football import CardTruth, SubstitutionTruth, Team

_SUBSTITUTIONS = 5
#: Fewer cannot play on; no referee of ours lets it come to that.
_LEAST_PLAYERS = 8


class Pitch:
    """One side while the match runs."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.playing = [player.key for player in team.eleven]
        self._bench = [player.key for player in team.bench]
        self._keepers = {player.key for player in (*team.eleven, *team.bench) if player.position == "G"}
        self._booked: set[str] = set()
        self._substitutions_left = _SUBSTITUTIONS

    def anyone(self, dice: Random, *, besides: str = "") -> str:
        """Return a player on the pitch, the goalkeeper only when nobody else is there."""
        outfield = [key for key in self.playing if key not in self._keepers and key != besides]
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
        out, came = self.anyone(dice), self._bench_players()[0]
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
