"""Keys in the format of the site, and invented players and teams."""

from random import Random

from longstop_lab.simulator.cricket.game import Player, Side

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_KEYS = 36**3
#: Coprime with the number of keys, so that every number has its own key and neighbours seem unrelated.
_STRIDE = 7919
#: Keys of one match: two teams and all their players.
KEYS_PER_MATCH = 40
#: With more, keys would repeat.
MAX_MATCHES = _KEYS // KEYS_PER_MATCH

_PLACES = (
    "Ambleford", "Brackenshaw", "Calder Vale", "Dunmoor", "Eastmere", "Fennick", "Göransby", "Harrowgate End",
    "Inverlea", "Jökulsdal", "Kestrel Bay", "Lingmoor", "Mâcon Park", "Norbeck", "Oxmoor", "Port Élan",
)  # fmt: skip
_NICKNAMES = ("Rovers", "Herons", "Foxes", "Lanterns", "Millers", "Otters", "Rooks", "Wanderers")
_FIRST = (
    "Aled", "Bram", "Cátia", "Dáithí", "Emre", "Fola", "Gwil", "Håkon", "Ishan", "Jorrit", "Kavi", "Léo",
    "Milo", "Ngaio", "Oisín", "Pavel", "Quim", "Rohan", "Søren", "Tariq", "Uri", "Viljo", "Wren", "Zoltán",
)  # fmt: skip
_LAST = (
    "Abernathy", "Bölling", "Carrow", "D'Souza", "Eskdale", "Fairweather", "Grønn", "Holloway", "Iyengar", "Jansky",
    "Kettlewell", "Lindqvist", "Mbeki-Rowe", "Núñez", "Okonjo", "Pryce", "Quillon", "Ravensdale", "Šimek", "Thwaite",
    "Underhill", "Vance", "Whitlock", "Yardley",
)  # fmt: skip
#: A name that would be markup on a careless page.
MARKUP_NAME = "<b>O'Hara</b>"
PLAYERS_PER_SIDE = 11
SUBSTITUTES_PER_SIDE = 3
_SQUAD = PLAYERS_PER_SIDE + SUBSTITUTES_PER_SIDE
_NAMES = tuple(f"{first} {last}" for first in _FIRST for last in _LAST)


def match_key(index: int) -> str:
    """Return the key of the world's match number `index`: four characters, none twice."""
    return base36(_KEYS + index * _STRIDE % _KEYS)


def match_keys(index: int) -> list[str]:
    """Return the keys that match number `index` may give to its teams and players; no other match has them."""
    first = index * KEYS_PER_MATCH
    return [base36((first + nth) * _STRIDE % _KEYS) for nth in range(KEYS_PER_MATCH)]


def invent_name(dice: Random) -> str:
    return dice.choice(_NAMES)


def invent_places(dice: Random) -> tuple[str, str]:
    """Return two places that are not the same."""
    first, second = dice.sample(_PLACES, 2)
    return first, second


def invent_sides(index: int, dice: Random) -> tuple[Side, Side]:
    """Return two teams of eleven and their substitutes; no two of them all share a name."""
    keys = iter(match_keys(index))
    names = dice.sample(_NAMES, 2 * _SQUAD)
    names[dice.randrange(PLAYERS_PER_SIDE)] = MARKUP_NAME
    places = invent_places(dice)
    first, second = (
        _side(next(keys), f"{place} {dice.choice(_NICKNAMES)}", [Player(key=next(keys), name=name) for name in squad])
        for place, squad in zip(places, (names[:_SQUAD], names[_SQUAD:]), strict=True)
    )
    return first, second


def _side(key: str, name: str, squad: list[Player]) -> Side:
    eleven, others = squad[:PLAYERS_PER_SIDE], squad[PLAYERS_PER_SIDE:]
    return Side(key=key, name=name, players=tuple(eleven), substitutes=tuple(others))


def base36(number: int) -> str:
    """Return a number with the digits of keys."""
    text = ""
    while number or not text:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text
