"""crex's table of names."""

from msgspec import Struct

from longstop.sources.wire import decode, tidy
from longstop.sports.cricket.model import Names


class _Name(Struct, frozen=True):
    f_key: str
    n: str | None = None


class _NameTable(Struct, frozen=True):
    p: list[_Name]
    t: list[_Name]


def read_names(body: bytes) -> Names:
    table = decode(body, _NameTable)
    return Names(players=_named(table.p), teams=_named(table.t))


def _named(names: list[_Name]) -> dict[str, str]:
    """Keep what has a name; a key without one stays unresolved and is asked for again."""
    return {item.f_key: tidy(item.n) for item in names if item.n and item.n.strip()}
