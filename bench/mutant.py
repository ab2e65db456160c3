"""A mutant: the product with one thing broken on purpose, and who should notice."""

from pathlib import Path

from msgspec import Struct

from longstop.errors import UsageError

SOURCE = Path(__file__).parents[1] / "src" / "longstop"

#: Generated runs of the model test.
MODEL = ("-m", "bench.mutants_model")
PYTEST = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
NEIGHBOURS = (
    *PYTEST,
    *("tests/unit/sports/cricket", "tests/unit/matches", "tests/unit/watching", "tests/contract/test_match_store.py"),
)


class Mutant(Struct, frozen=True, kw_only=True):
    """One thing broken."""

    name: str
    file: str
    old: str
    new: str
    #: Who is set on it, one after the other: a name and a command.
    hunters: tuple[tuple[str, tuple[str, ...]], ...] = (("model", MODEL), ("neighbours", NEIGHBOURS))


def mutated(mutant: Mutant) -> str:
    """Return the text of the mutant's file, with its patch; it must fit exactly once, or it breaks something else."""
    text = (SOURCE / mutant.file).read_text()
    if text.count(mutant.old) != 1:
        raise UsageError(f"{mutant.name}: its patch fits {text.count(mutant.old)} times in {mutant.file}, not once")
    return text.replace(mutant.old, mutant.new)


def broken_rule(name: str, file: str, old: str, new: str) -> Mutant:
    """Return a mutant of a pure rule: the unit test of its module must notice."""
    package, _, module = file.partition("/")
    command = (*PYTEST, f"tests/unit/{package}/test_{module}")
    return Mutant(name=name, file=file, old=old, new=new, hunters=(("rules", command),))
