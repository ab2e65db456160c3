"""The installed sports, found through the entry point group `longstop.sports`."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

from longstop.errors import SettingsError, StorageError
from longstop.model.event import RESULT
from longstop.sports.base import MatchState, Sport

ENTRY_POINT_GROUP = "longstop.sports"

#: Names of sports and kinds become parts of URLs and keys; the store refuses others.
_NAME = re.compile(r"[a-z_]+")
_NEEDED = ("name", "kinds", "place", "state")
#: Parts of an event's place, in addition to the numbers of its key.
_PLACES = frozenset({"side", "position"})


@cache
def sports() -> Mapping[str, Sport[Any]]:
    """Return every installed sport by name; raise if a plug-in is broken."""
    found: dict[str, Sport[Any]] = {}
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda each: each.name):
        try:
            sport = point.load()()
        except Exception as error:  # plug-in code may raise anything
            raise SettingsError(f"sport {point.name}: cannot load {point.value}: {error!r}") from error
        if not isinstance(sport, Sport):
            raise SettingsError(f"sport {point.name}: {point.value} is not a subclass of longstop.sports.base.Sport")
        if problems := list(_problems(sport)):
            raise SettingsError(f"sport {point.name}: {point.value} {'; it '.join(problems)}")
        if sport.name in found:
            raise SettingsError(f"sport {sport.name} is provided by two packages: uninstall one of them")
        found[sport.name] = sport
    return MappingProxyType(found)


def _problems(sport: Sport[Any]) -> Iterator[str]:
    """Yield mistakes that would otherwise fail only when an event is stored or served."""
    if missing := [name for name in _NEEDED if not hasattr(sport, name)]:
        yield f"does not define {', '.join(missing)}"
        return
    for name in (sport.name, *sport.kinds):
        if not _NAME.fullmatch(name):
            yield f"has the name {name!r}: use only lower-case letters and _"
    result = sport.kinds.get(RESULT.kind)
    if result is None or result.fields or not hasattr(result.content, "text"):
        yield "needs a kind `result` without fields, whose content has a `text`"
    fields = {field for kind in sport.kinds.values() for field in kind.fields}
    if unknown := [name for name in sport.place if name not in fields | _PLACES]:
        yield f"has {', '.join(unknown)} in place, but no kind has such a field"
    if not issubclass(sport.state, MatchState):
        yield "has a state that is not a subclass of MatchState"


def sport_named(name: str) -> Sport[Any]:
    """Return an installed sport; the sport of a stored match may have been uninstalled."""
    try:
        return sports()[name]
    except KeyError:
        raise StorageError(
            f"sport {name!r} is not installed, so its matches cannot be read: install the package that provides it"
        ) from None
