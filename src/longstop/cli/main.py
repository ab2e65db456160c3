"""The command line: `longstop VERB`. Every error is one clear sentence and an exit code, never a traceback."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
from longstop.cli.output import say, say_error
from longstop.errors import LongstopError, UsageError
from longstop.supervision.exit_codes import Exit, exit_of
from longstop.text import printable


@contextmanager
def _readable_messages() -> Iterator[None]:
    """Rewrite Typer's messages: without pydantic's prefix, and with arguments that a terminal can show."""
    try:
        yield
    except Exception as error:  # Typer has no public base class for its errors; they have a message, ours have none
        if message := getattr(error, "message", ""):
            error.message = printable(message.removeprefix("Value error, "))  # type: ignore[attr-defined]
        raise


class _Verbs(TyperGroup):
    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        for each in args:
            # A shell passes any bytes on. SQLite, JSON and terminals know text only.
            if any("\ud800" <= letter <= "\udfff" for letter in each):
                raise UsageError(f"the argument {printable(each)} is not valid UTF-8: write it, or rename the file")
        with _readable_messages():
            return super().make_context(info_name, args, *more, **extra)

    def invoke(self, ctx: Any) -> Any:
        with _readable_messages():
            return super().invoke(ctx)


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
        say(f"longstop {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def _open_missing_streams() -> None:
    """Open the standard streams that a parent has closed: the next file opened would get their number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def main() -> None:
    """Run a verb; print an error as one sentence and exit with its code."""
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show must not end the verb
            stream.reconfigure(errors="backslashreplace")
    try:
        command_line()()
    except LongstopError as error:
        say_error(error)
        sys.exit(exit_of(error))
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            # The reader of our output has exited (`longstop events 1 | head`): not an error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        say(printable(f"longstop: {error.filename or 'the system'}: {error.strerror}"), sys.stderr)
        sys.exit(Exit.STORAGE if error.filename else exit_of(error))
    except KeyboardInterrupt:
        sys.exit(130)
