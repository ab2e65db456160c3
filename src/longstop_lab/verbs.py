"""Verbs of the simulator: run it alone (simulate), or the whole product against it (demo, verify)."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from enum import StrEnum
from math import isfinite
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import typer

from longstop.cli.options_and_data_access import Json
from longstop.cli.output import TextConsole, say, say_json
from longstop.clock import SystemClock
from longstop.errors import UsageError
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.text import printable

T = TypeVar("T")


def _refuse_infinite(value: float) -> float:
    """Reject nan and inf: the simulated clock cannot compute with them."""
    if not isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number.")
    return value


Speed = Annotated[
    float,
    typer.Option(callback=_refuse_infinite, help="The speed of the simulated clock: seconds per real second."),
]
Kinds = Annotated[
    str | None,
    typer.Option(
        metavar="KINDS", help="Kinds in turn, comma-separated: t20, t20-rain, odi, test, football, football-cup."
    ),
]


class DemoSite(StrEnum):
    """The simulated sites that the demo can scrape."""

    CREX = "crex"
    ESPNCRICINFO = "espncricinfo"
    BOTH = "both"
    SOFASCORE = "sofascore"
    ALL = "all"

    @property
    def sites(self) -> tuple[str, ...]:
        return {DemoSite.BOTH: _CRICKET, DemoSite.ALL: (*_CRICKET, "sofascore")}.get(self, (self.value,))


_CRICKET = ("crex", "espncricinfo")


def demo(
    seconds: Annotated[float | None, typer.Option("--for", metavar="S", min=1, help="Stop after S seconds.")] = None,
    matches: Annotated[
        int,
        typer.Option(
            min=1,
            help="How many matches to simulate; with --site all, cricket and football in turn. Two cricket sites each"
            " list all cricket matches, football lists only those in play.",
        ),
    ] = 20,
    kinds: Kinds = None,
    site: Annotated[
        DemoSite, typer.Option(help="Which simulated sites to scrape: one cricket site, both, football, or all.")
    ] = DemoSite.CREX,
    browser: Annotated[
        BrowserKind | None, typer.Option(help="Scrape with a browser of this kind instead of HTTP.")
    ] = None,
    speed: Speed = 10.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same matches.")] = 1,
    truth: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the truth log here.")] = None,
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the data directory here.")] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="The port of the API; by default 8700, or a free one if that is taken."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Scrape simulated matches live, then account for every event."""
    from longstop_lab.demo import DemoOptions, run_demo

    options = DemoOptions(
        seconds=seconds,
        matches=matches,
        kinds=kinds,
        sites=site.sites,
        browser=browser,
        speed=speed,
        seed=seed,
        truth=truth,
        keep=keep,
        api_port=port,
        is_quiet=as_json,
    )
    console = TextConsole()
    report = _run(run_demo(options, console))
    if as_json:
        say_json(msgspec.json.encode(report).decode())
    raise typer.Exit(0 if report.is_good else 1)


def verify(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Cricsheet JSON files.")],
    kill_every: Annotated[
        float | None, typer.Option(metavar="S", min=0.5, help="Kill the scraper (SIGKILL) every S seconds.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Replay recorded matches through simulator, scraper, store and API, and compare every ball."""
    from longstop_lab.verify import FileReport, verify_file

    def show(report: FileReport) -> None:
        if as_json:
            say_json(msgspec.json.encode(report).decode())
            return
        verdict = "equal" if report.is_good else f"{report.wrong} wrong, {report.missing} missing, {report.extra} extra"
        kills = f", {report.kills} kills" if kill_every else ""
        found = f"{report.equal}/{report.deliveries} deliveries {verdict}{kills}, {report.seconds} s"
        say(printable(f"{report.file}  {found}"))
        if report.first_difference:
            say(f"    {printable(report.first_difference)}", hanging=4)

    async def run() -> list[FileReport]:
        reports = []
        for file in files:
            reports.append(await verify_file(file, kill_every=kill_every))
            show(reports[-1])
        return reports

    reports = _run(run())
    good = sum(report.is_good for report in reports)
    if not as_json:
        say(f"{good} of {len(reports)} files are complete")
    raise typer.Exit(0 if good == len(reports) else 1)


def simulate(
    matches: Annotated[int, typer.Option(min=0, help="How many matches to invent.")] = 20,
    kinds: Kinds = None,
    speed: Speed = 1.0,
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
    ball_gap: Annotated[
        float, typer.Option(callback=_refuse_infinite, help="Simulated seconds between two balls of a replayed match.")
    ] = 30.0,
    poll: Annotated[
        float, typer.Option(callback=_refuse_infinite, metavar="S", help="Seconds between two polls by an open page.")
    ] = 4.0,
    drop: Annotated[
        float,
        typer.Option(callback=_refuse_infinite, metavar="S", help="Seconds until the push channel of a page drops."),
    ] = 30.0,
    replay: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A Cricsheet JSON file to replay; may be repeated.")
    ] = None,
) -> None:
    """Serve simulated sites, for the demo, for tests, and for developing a source."""
    from longstop.doctor.holders import listener_on
    from longstop.supervision.lifeline_and_heartbeat_pipes import watch_parent
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
        say(f"simulated crex on {simulator.base_url}")
        say(f"simulated espncricinfo on {simulator.espn_url}")
        say(f"simulated sofascore on {simulator.sofascore_url}")

    watch_parent(os.environ)

    async def run() -> None:
        serving = asyncio.ensure_future(serve(options, clock=SystemClock(), ready=print_addresses))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
        await asyncio.wait([serving])
        if not serving.cancelled():
            serving.result()

    asyncio.run(run())


VERBS = (demo, verify, simulate)


def _run(session: Coroutine[None, None, T]) -> T:
    """Run a session to its end. SIGTERM stops it like Ctrl-C, with cleanup."""

    async def run() -> T:
        work = asyncio.ensure_future(session)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
        return await work

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        raise typer.Exit(128 + signal.SIGTERM) from None
