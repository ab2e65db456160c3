"""The table of mutants; `scripts/mutants` runs the tests against each."""

import ast
from pathlib import Path

import pytest

from longstop.errors import UsageError
from tests.mutation import mutant as mechanics
from tests.mutation.__main__ import ROOT
from tests.mutation.mutant import (
    SOURCE,
    Change,
    Mutant,
    always,
    argument,
    drop,
    drop_argument,
    mutate,
    never,
    nth,
    swap,
)
from tests.mutation.table import MUTANTS

_MODULE = '''
LIMIT, OTHER = 900.0, 1


class Counter:
    """Counts."""

    def add(self, text: str) -> int:
        if text in self.seen and self.is_open:
            self.seen.clear()
        return change(self, at=1, text=text)
'''


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_fits_the_product_changes_it_and_names_tests_that_exist(mutant: Mutant) -> None:
    mutated = ast.parse(mutate(mutant))

    assert ast.dump(mutated) != ast.dump(ast.parse((SOURCE / mutant.path).read_text()))
    assert all((ROOT / test).exists() for test in mutant.tests)


def test_no_two_mutants_have_the_same_name() -> None:
    names = [mutant.name for mutant in MUTANTS]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("symbol", "change", "line"),
    [
        ("LIMIT", swap("900.0", "9e5"), "LIMIT, OTHER = (900000.0, 1)"),
        ("Counter.add", never("_ in self.seen"), "if False and self.is_open:"),
        ("Counter.add", always("_ and _"), "if True:"),
        ("Counter.add", swap("_1 and _2", "_2"), "if self.is_open:"),
        ("Counter.add", nth(2, swap("self.seen", "set()")), "set().clear()"),
        ("Counter.add", drop("_.clear()"), "pass"),
        ("Counter.add", swap("change(...)", "0"), "return 0"),
        ("Counter.add", argument("at", "2"), "return change(self, at=2, text=text)"),
        ("Counter.add", drop_argument("at"), "return change(self, text=text)"),
    ],
)
def test_a_change_replaces_what_its_pattern_matches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, symbol: str, change: Change, line: str
) -> None:
    mutated = mutate(_mutant(monkeypatch, tmp_path, symbol, change))

    assert line in [each.strip() for each in mutated.splitlines()]


@pytest.mark.parametrize(
    ("symbol", "change", "message"),
    [
        ("Counter.remove", drop("pass"), "has no Counter.remove"),
        ("Counter.add", swap("self.gone", "0"), "matches 0 times"),
        ("Counter.add", swap("self.seen", "0"), "matches 2 times"),
    ],
)
def test_a_change_that_does_not_match_once_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, symbol: str, change: Change, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        mutate(_mutant(monkeypatch, tmp_path, symbol, change))


def _mutant(monkeypatch: pytest.MonkeyPatch, folder: Path, symbol: str, change: Change) -> Mutant:
    (folder / "counting.py").write_text(_MODULE)
    monkeypatch.setattr(mechanics, "SOURCE", folder)
    return Mutant(name="a mutant", module="counting", symbol=symbol, change=change, tests=())
