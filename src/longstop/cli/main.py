"""The command line: `longstop VERB`. Every error is one clear sentence and an exit code, never a traceback."""

import io
import os
import sys
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from longstop import __version__
from longstop.cli import (
    health_errors_recoveries,
    maintenance,
    matches_events_and_token,
    operator_commands,
    parse,
    processes,
    top,
)
from longstop.cli.match_health_and_error_tables import wrapped
from longstop.errors import LongstopError
from longstop.supervision.exit_codes import Exit, exit_of


class _Verbs(TyperGroup):
    """Removes pydantic's prefix from messages about invalid options."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


_ABOUT = "Scrapes live matches from sites without an API, keeps them fresh and complete, serves them with their age."
_FAMILIES = (processes, matches_events_and_token, parse, operator_commands, health_errors_recoveries, top, maintenance)


@cache
def command_line() -> typer.Typer:
    """Return the command line: the verbs of the simulator, then those of the product."""
    # Here, because the product must not load the lab when it is imported.
    from longstop_lab import verbs

    app = typer.Typer(
        name="longstop",
        cls=_Verbs,
        help=_ABOUT,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for family in (verbs, *_FAMILIES):
        for verb in family.VERBS:
            app.command()(verb)
    app.callback()(_options)
    return app


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        print(f"longstop {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run a verb; print an error as one sentence and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show must not end the verb
            stream.reconfigure(errors="replace")
    try:
        command_line()()
    except LongstopError as error:
        print(wrapped(f"longstop: {error}", sys.stderr), file=sys.stderr)
        sys.exit(exit_of(error))
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            # The reader of our output has exited (`longstop events 1 | head`): not an error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        text = f"longstop: {error.filename or 'the system'}: {error.strerror}"
        print(wrapped(text, sys.stderr), file=sys.stderr)
        sys.exit(Exit.STORAGE if error.filename else exit_of(error))
    except KeyboardInterrupt:
        sys.exit(130)
