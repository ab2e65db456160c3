"""Keys as the site writes them, and the invented people and teams behind them."""

from random import Random

from longstop.simulator.game import Player, Side

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_KEYS = 36**3
#: Coprime with the number of keys, so that every number has its own key and neighbours look unrelated.
_STRIDE = 7919
#: How many keys one match may use: two teams and all who play.
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


def match_key(index: int) -> str:
    """Return the key of the world's match number `index`: four characters, none twice."""
    return _base36(_KEYS + index * _STRIDE % _KEYS)


def match_keys(index: int) -> list[str]:
    """Return the keys that match number `index` may give to its teams and players; no other match has them."""
    first = index * KEYS_PER_MATCH
    return [_base36((first + nth) * _STRIDE % _KEYS) for nth in range(KEYS_PER_MATCH)]


def invent_sides(index: int, dice: Random) -> tuple[Side, Side]:
    """Return two teams of eleven; no two of the twenty-two share a name."""
    keys = iter(match_keys(index))
    names = dice.sample([f"{first} {last}" for first in _FIRST for last in _LAST], 2 * PLAYERS_PER_SIDE)
    names[dice.randrange(len(names))] = MARKUP_NAME
    places = dice.sample(_PLACES, 2)
    first, second = (
        Side(
            key=next(keys),
            name=f"{place} {dice.choice(_NICKNAMES)}",
            players=tuple(Player(key=next(keys), name=name) for name in names[start : start + PLAYERS_PER_SIDE]),
        )
        for place, start in zip(places, (0, PLAYERS_PER_SIDE), strict=True)
    )
    return first, second


def _base36(number: int) -> str:
    text = ""
    while number or not text:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text
