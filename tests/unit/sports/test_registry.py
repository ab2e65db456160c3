"""The installed sports: what a plug-in must have, and the error when it is missing."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec import Struct

from longstop.errors import SettingsError, StorageError
from longstop.sports.base import EventKind, MatchState, Sport
from longstop.sports.registry import sport_named, sports

THIS = "tests.unit.sports.test_registry"


class Stone(Struct, frozen=True):
    team: str


class Result(Struct, frozen=True):
    text: str


class Curling(Sport[MatchState]):
    """A third party's sport, as small as it gets; none of it is called."""

    name = "curling"
    kinds: ClassVar[Mapping[str, EventKind]] = {
        "stone": EventKind(content=Stone, fields=("end", "nth")),
        "result": EventKind(content=Result),
    }
    place: ClassVar[tuple[str, ...]] = ("side", "end", "nth")
    state = MatchState

    read: Any = None
    diff: Any = None
    order: Any = None
    describe: Any = None


class Capital(Curling):
    name = "Curling"
    kinds: ClassVar[Mapping[str, EventKind]] = {**Curling.kinds, "stone 2": EventKind(content=Stone)}


class Endless(Curling):
    kinds: ClassVar[Mapping[str, EventKind]] = {"stone": EventKind(content=Stone, fields=("end", "nth"))}


class Speechless(Curling):
    kinds: ClassVar[Mapping[str, EventKind]] = {**Curling.kinds, "result": EventKind(content=Stone)}


class Elsewhere(Curling):
    place = ("end", "sheet")


class Stateless(Curling):
    state: Any = dict


class Nameless(Sport[MatchState]):
    read: Any = None
    diff: Any = None
    order: Any = None
    describe: Any = None


class Unfinished(Sport[MatchState]):
    name = "unfinished"


class Cricket(Curling):
    name = "cricket"


class NoSport:
    name = "chess"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return what puts a class under the entry point group, as an installed package does."""

    def put(name: str) -> None:
        info = tmp_path / "plugin-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[longstop.sports]\nmine = {THIS}:{name}\n")
        monkeypatch.syspath_prepend(tmp_path)
        sports.cache_clear()

    yield put
    sports.cache_clear()


def test_an_installed_sport_stands_beside_those_shipped(install: Any) -> None:
    install("Curling")

    assert list(sports()) == ["cricket", "football", "curling"]
    assert sport_named("curling").resources == ()


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("NoSport", ["is not a subclass of longstop.sports.base.Sport"]),
        ("Missing", ["cannot load", "has no attribute 'Missing'"]),
        ("Unfinished", ["cannot load", "abstract method"]),
        ("Nameless", ["does not define name, kinds, place, state"]),
        ("Capital", ["has the name 'Curling'", "has the name 'stone 2'"]),
        ("Endless", ["needs a kind `result` without fields, whose content has a `text`"]),
        ("Speechless", ["needs a kind `result` without fields, whose content has a `text`"]),
        ("Elsewhere", ["has sheet in place, but no kind has such a field"]),
        ("Stateless", ["has a state that is not a subclass of MatchState"]),
        ("Cricket", ["sport cricket is provided by two packages"]),
    ],
)
def test_a_sport_that_cannot_serve_is_refused_in_a_sentence(install: Any, name: str, reasons: list[str]) -> None:
    install(name)

    with pytest.raises(SettingsError) as caught:
        sports()

    assert not [reason for reason in reasons if reason not in str(caught.value)], caught.value


def test_a_stored_match_of_a_sport_that_is_not_installed_is_the_stores_trouble() -> None:
    with pytest.raises(StorageError, match="sport 'curling' is not installed"):
        sport_named("curling")
