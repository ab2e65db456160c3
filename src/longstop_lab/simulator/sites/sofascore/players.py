"""Teams and players as this site writes them."""

import re
import unicodedata
from random import Random
from typing import Any

from longstop_lab.simulator.football.model import FootballMatch, FootballPlayer, Team
from longstop_lab.simulator.sites.sofascore.traits import Traits

_SPORT = {"name": "Football", "slug": "football", "id": 1}
#: Letters that no decomposition turns into plain ones.
_PLAIN = str.maketrans({"ø": "o", "Ø": "O", "æ": "ae", "ß": "ss"})


def slug(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name.translate(_PLAIN)).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def match_slug(match: FootballMatch, traits: Traits) -> str:
    names = [slug(match.home.name), slug(match.away.name)]
    return "-".join(reversed(names) if traits.is_slug_turned else names)


def custom_id(match: FootballMatch) -> str:
    """Return the id that all meetings of two teams share."""
    dice = Random(f"pair {match.home.key} {match.away.key}")
    return "".join(dice.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", k=7))


def team_object(team: Team, traits: Traits, tick: int) -> dict[str, Any]:
    short = {} if traits.has_no_short_names else {"shortName": team.name.split(" ")[0]}
    return {
        "name": team.name,
        "slug": slug(team.name),
        **short,
        "gender": "M",
        "sport": _SPORT,
        # It drifts while nothing happens in play.
        "userCount": 10_000 + int(team.key) + tick,
        "nameCode": slug(team.name)[:3].upper(),
        "disabled": False,
        "national": False,
        "type": 0,
        "id": int(team.key),
        "country": {} if traits.is_friendly else {"alpha2": "XA", "alpha3": "XAA", "name": "Anywhere"},
        "subTeams": [],
        "teamColors": {"primary": "#204080", "secondary": "#ffffff", "text": "#ffffff"},
        "fieldTranslations": {"nameTranslation": {"ar": team.name[::-1]}, "shortNameTranslation": {}},
    }


def player_object(player: FootballPlayer) -> dict[str, Any]:
    first, _, last = player.name.partition(" ")
    return {
        "name": player.name,
        "slug": slug(player.name),
        "shortName": f"{first[0]}. {last}",
        "position": player.position,
        "userCount": 100 + int(player.key) % 900,
        "id": int(player.key),
    }


def players_of(match: FootballMatch) -> dict[str, FootballPlayer]:
    return {player.key: player for team in (match.home, match.away) for player in (*team.eleven, *team.bench)}
