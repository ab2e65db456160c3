"""`python -m tests.mutation [WORD…]`: apply one mutant at a time to a copy of the product, and run the tests it names.

A mutant that survives shows a gap in the tests.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from asyncio.subprocess import DEVNULL
from collections.abc import Sequence
from pathlib import Path

from bench.reporting import Report, run, say
from longstop.errors import UsageError
from tests.mutation.mutant import SOURCE, Mutant, mutate
from tests.mutation.table import MUTANTS

ROOT = Path(__file__).parents[2]
CONCURRENCY = 2
TIMEOUT_SECONDS = 240.0

_MODEL = ("-m", "tests.mutation.model_run")
_PYTEST = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")


async def find_killer(mutant: Mutant) -> str | None:
    """Return which tests detect a mutant; `None` when it survives."""
    with tempfile.TemporaryDirectory(prefix="longstop-mutant-") as name:
        package = Path(name, "longstop")
        shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
        (package / mutant.path).write_text(mutate(mutant))
        for killer, command in _commands(mutant).items():
            if await _fails(command, package.parent):
                return killer
    return None


def _commands(mutant: Mutant) -> dict[str, tuple[str, ...]]:
    tests = {"tests": (*_PYTEST, *mutant.tests)}
    return {"model": _MODEL, **tests} if mutant.is_modelled else tests


async def _fails(command: Sequence[str], python_path: Path) -> bool:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        cwd=ROOT,
        # The simulator comes from this working copy, wherever the package is installed.
        env={**os.environ, "PYTHONPATH": f"{python_path}:{SOURCE.parent}", "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await process.wait() != 0
    except TimeoutError:
        return True  # a product that hangs is detected, too
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def run_mutants(chosen: Sequence[Mutant]) -> Report:
    """Run the chosen mutants; the report lists the survivors."""
    limit = asyncio.Semaphore(CONCURRENCY)

    async def run_one(mutant: Mutant) -> str | None:
        async with limit:
            killer = await find_killer(mutant)
        say(f"{f'killed by {killer}' if killer else 'SURVIVED'}: {mutant.name}")
        return killer

    for mutant in chosen:
        mutate(mutant)
    for command in sorted({command for mutant in chosen for command in _commands(mutant).values()}):
        if await _fails(command, SOURCE.parent):
            raise UsageError(f"{' '.join(command)} fails without a mutant: fix that first")
    killers = await asyncio.gather(*map(run_one, chosen))
    survivors = [mutant.name for mutant, killer in zip(chosen, killers, strict=True) if killer is None]
    figures = {"caught": len(chosen) - len(survivors), "total": len(chosen), "by_model": killers.count("model")}
    return Report(suite="mutants", is_ok=not survivors, figures=figures, details=survivors)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/mutants", description="Break one thing at a time and check that the tests detect it."
    )
    parser.add_argument("words", nargs="*", help="only mutants whose name contains one of these words")
    words = parser.parse_args().words
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    if not chosen:
        parser.error(f"no mutant has a name with {' or '.join(words)}")
    return run("mutants", run_mutants(chosen))


if __name__ == "__main__":
    sys.exit(main())
