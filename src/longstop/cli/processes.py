"""Verbs that run a process until Ctrl-C: up, scraper, api."""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from longstop.cli.options_and_data_access import Data, existing_directory, settings_for
from longstop.cli.output import say, say_error
from longstop.errors import LongstopError
from longstop.exhaustion import exhausted_resource
from longstop.supervision.exit_codes import exit_of

# Each verb imports its own libraries: a scraper must be running again within a second after a crash.


@contextmanager
def _exit_with_code() -> Iterator[None]:
    """Print an error as one sentence, and exit with the code that a supervisor expects for it."""
    try:
        yield
    except (LongstopError, OSError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and exhausted_resource(error) is None:
            raise
        say_error(error)
        raise typer.Exit(exit_of(error)) from None


def up(data: Data = None) -> None:
    """Run scraper and API, and restart them when they die."""
    from longstop.app.up import run_up

    with _exit_with_code():
        asyncio.run(run_up(settings_for(data), dict(os.environ)))


def scraper(data: Data = None) -> None:
    """Scrape the matches of all enabled sources."""
    from longstop.app.scraper import run_scraper

    with _exit_with_code():
        asyncio.run(run_scraper(settings_for(data)))


def api(
    data: Data = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The port; by default LONGSTOP_API_PORT, else 8700.")
    ] = None,
) -> None:
    """Serve a data directory over HTTP."""
    from longstop.app.api import run_api

    changed = {} if port is None else {"LONGSTOP_API_PORT": str(port)}
    with _exit_with_code():
        settings = existing_directory(data, **changed)
        host = f"[{settings.api.host}]" if ":" in settings.api.host else settings.api.host

        def print_address(chosen: int) -> None:
            say(f"API on http://{host}:{chosen}", sys.stderr)

        asyncio.run(run_api(settings, on_ready=print_address))


VERBS = (up, scraper, api)
