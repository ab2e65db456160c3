"""The mutants themselves: `scripts/mutants` sets the tests on them."""

import ast

import pytest

from bench.mutants import MUTANTS, SOURCE, Mutant, mutated


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_still_fits_the_product_and_changes_it(mutant: Mutant) -> None:
    broken = mutated(mutant)

    assert broken != (SOURCE / mutant.file).read_text()
    ast.parse(broken)
