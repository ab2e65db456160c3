"""The mutants themselves: `scripts/mutants` sets the tests on them."""

import ast

import pytest

from bench.mutant import SOURCE, Mutant, mutated
from bench.mutants import MUTANTS


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_still_fits_the_product_and_changes_it(mutant: Mutant) -> None:
    broken = mutated(mutant)

    assert broken != (SOURCE / mutant.file).read_text()
    ast.parse(broken)


def test_no_two_mutants_have_the_same_name() -> None:
    names = [mutant.name for mutant in MUTANTS]

    assert len(set(names)) == len(names)
