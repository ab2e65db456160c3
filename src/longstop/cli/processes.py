"""Verbs that run a process until Ctrl-C: up, scraper, api, simulate."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from longstop.cli.options import Data, Kinds, settings_for
from longstop.clock import SystemClock
from longstop.errors import LongstopError, UsageError
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
        print(f"longstop: {error or type(error).__name__}", file=sys.stderr)
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
    port: Annotated[int | None, typer.Option(help="The port; by default LONGSTOP_API_PORT, else 8700.")] = None,
) -> None:
    """Serve a data directory over HTTP."""
    from longstop.app.api import run_api

    changed = {} if port is None else {"LONGSTOP_API_PORT": str(port)}
    with _exit_with_code():
        settings = settings_for(data, **changed)
        host = settings.api.host

        def print_address(chosen: int) -> None:
            print(f"API on http://{host}:{chosen}", file=sys.stderr, flush=True)

        asyncio.run(run_api(settings, on_ready=print_address))


def simulate(
    matches: Annotated[int, typer.Option(min=0, help="How many matches to invent.")] = 20,
    kinds: Kinds = None,
    speed: Annotated[float, typer.Option(help="The speed of the simulated clock: seconds per real second.")] = 1.0,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port of crex; 0 takes a free one.")] = 8701,
    espn_port: Annotated[int, typer.Option(min=0, max=65535, help="The port of espncricinfo; 0 takes a free one.")] = 0,
    sofascore_port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port of sofascore; 0 takes a free one.")
    ] = 0,
    sites: Annotated[
        str,
        typer.Option(
            help="The sites that show the matches, comma-separated: crex, espncricinfo, both, sofascore or all."
        ),
    ] = "crex",
    seed: Annotated[int, typer.Option(help="The same seed gives the same matches.")] = 1,
    truth: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write the truth log.")] = None,
    ball_gap: Annotated[float, typer.Option(help="Simulated seconds between two balls of a replayed match.")] = 30.0,
    poll: Annotated[float, typer.Option(metavar="S", help="Seconds between two polls by an open page.")] = 4.0,
    drop: Annotated[float, typer.Option(metavar="S", help="Seconds until the push channel of a page drops.")] = 30.0,
    replay: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A Cricsheet JSON file to replay; may be repeated.")
    ] = None,
) -> None:
    """Serve simulated sites, for the demo, for tests, and for developing a source."""
    from longstop.doctor.holders import listener_on
    from longstop.supervision.child_pipes import watch_parent_if_any
    from longstop_lab.simulator.service import RunningSimulator, SimulatorOptions, read_kinds, serve

    for option, wanted in (("--port", port), ("--espn-port", espn_port), ("--sofascore-port", sofascore_port)):
        if wanted and (holder := listener_on("127.0.0.1", wanted)):
            raise UsageError(
                f"port {wanted} is taken by {holder}: stop that process, or choose another port with {option}"
            )
    options = SimulatorOptions(
        port=port,
        espn_port=espn_port,
        sofascore_port=sofascore_port,
        sites=sites,
        matches=matches,
        kinds=read_kinds(kinds) if kinds is not None else None,
        speed=speed,
        seed=seed,
        truth=truth,
        files=tuple(replay or ()),
        ball_gap=ball_gap,
        poll_seconds=poll,
        drop_seconds=drop,
    )

    def print_addresses(simulator: RunningSimulator) -> None:
        print(f"simulated crex on {simulator.base_url}", flush=True)
        print(f"simulated espncricinfo on {simulator.espn_url}", flush=True)
        print(f"simulated sofascore on {simulator.sofascore_url}", flush=True)

    watch_parent_if_any(os.environ)

    async def run() -> None:
        serving = asyncio.ensure_future(serve(options, clock=SystemClock(), ready=print_addresses))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
        await asyncio.wait([serving])
        if not serving.cancelled():
            serving.result()

    asyncio.run(run())


VERBS = (up, scraper, api, simulate)
