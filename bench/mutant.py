"""A mutant: the product with one thing broken on purpose, and who should notice."""

from pathlib import Path

from msgspec import Struct

from longstop.errors import UsageError

SOURCE = Path(__file__).parents[1] / "src" / "longstop"

#: Generated runs of the model test.
MODEL = ("-m", "bench.mutants_model")
_PYTEST = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
NEIGHBOURS = (
    *_PYTEST,
    *("tests/unit/pipeline", "tests/unit/watching", "tests/contract/test_match_store.py"),
)
#: The tests of the rules themselves; those that run a whole watch would only notice later, and by accident.
RULES = (
    *_PYTEST,
    *("tests/unit/resilience", "tests/unit/watching", "tests/unit/model"),
    *(f"--ignore=tests/unit/watching/test_{name}.py" for name in ("scheduler", "watcher")),
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
    """Return a mutant of a pure rule: its unit tests must notice, since the model test knows nothing of it."""
    return Mutant(name=name, file=file, old=old, new=new, hunters=(("rules", RULES),))
