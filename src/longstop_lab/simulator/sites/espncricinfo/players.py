"""Teams and players as the pages repeat them everywhere, pictures and all."""

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Any

from longstop_lab.simulator.cricket.game import Game, Player, Side
from longstop_lab.simulator.sites.espncricinfo.ids import player_number, team_number

#: A team's and a player's public number differ from the inner one, which is what other objects point with.
_TEAM_OBJECT = -51
_PLAYER_OBJECT = 300_000


@cache
def team(side: Side) -> Mapping[str, Any]:
    number = team_number(side.key)
    return {
        "id": number,
        "objectId": number + _TEAM_OBJECT,
        "scribeId": number + _TEAM_OBJECT,
        "slug": slug(side.name),
        "name": side.name,
        "longName": side.name,
        "abbreviation": abbreviation(side.name),
        "unofficialName": "",
        "imageUrl": f"/db/PICTURES/CMS/{number}00/{number}.png",
        "isCountry": False,
        "primaryColor": f"#{number * 7919 % 0xFFFFFF:06X}",
    }


@cache
def player(each: Player) -> Mapping[str, Any]:
    """Return a player; the names never come late here, they stand wherever the player does."""
    number = player_number(each.key)
    first, _, last = each.name.rpartition(" ")
    short = f"{first[0]} {last}" if first else each.name
    return {
        "id": number,
        "objectId": number + _PLAYER_OBJECT,
        "name": short,
        "longName": each.name,
        "mobileName": last,
        "indexName": f"{last}, {first}" if first else last,
        "battingName": short,
        "fieldingName": last,
        "slug": slug(each.name),
        "imageUrl": f"/db/PICTURES/CMS/{number}00/{number}.1.png",
        "headshotImageUrl": f"/db/PICTURES/CMS/{number}00/{number}.png",
    }


def match_players(game: Game) -> dict[str, Any]:
    return {
        "teamPlayers": [
            {
                "type": "PLAYING",
                "team": team(side),
                "players": [
                    {
                        "playerRoleType": "P",
                        "player": player(each),
                        "isOverseas": False,
                        "isWithdrawn": False,
                        "note": None,
                    }
                    for each in (*side.players, *side.substitutes)
                ],
                "bestBatsmen": [],
                "bestBowlers": [],
            }
            for side in game.sides
        ]
    }


def players_by_key(game: Game) -> dict[str, Player]:
    """Return all players by key."""
    return {each.key: each for side in game.sides for each in (*side.players, *side.substitutes)}


def last_name(name: str) -> str:
    return name.rpartition(" ")[2]


def abbreviation(name: str) -> str:
    words = name.split()
    return "".join(word[0] for word in words).upper() if len(words) > 1 else name[:3].upper()


def slug(text: str) -> str:
    """Return a name as it stands in an address."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
