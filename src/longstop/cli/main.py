"""The command line: `longstop VERB`. An error is one clear sentence and a non-zero exit, never a traceback."""

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from longstop.cli import backup, doctor, errors, health, orders, processes, reading, recoveries, top, trials
from longstop.errors import LongstopError


class _Verbs(TyperGroup):
    """Says what is wrong with an option without the first words of the library that checks it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


app = typer.Typer(
    name="longstop",
    cls=_Verbs,
    help="Reads live matches from sites without an API, keeps them fresh and complete, serves them with their age.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_FAMILIES = (trials, processes, reading, orders, health, top, errors, recoveries, backup, doctor)
for verb in (verb for family in _FAMILIES for verb in family.VERBS):
    app.command()(verb)


def main() -> None:
    """Run a verb; what it raises becomes a sentence."""
    try:
        app()
    except LongstopError as error:
        print(f"longstop: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            # Whoever read our output has left (`longstop events 1 | head`): nothing to complain about.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        print(f"longstop: {error.filename or 'the system'}: {error.strerror}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
