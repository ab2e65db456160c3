"""Verbs that run the whole product against the simulator: demo, verify."""

import asyncio
import signal
from collections.abc import Coroutine
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import typer
from rich.console import Console

from longstop.cli.options import Json, Kinds
from longstop.fetching.browser.base import BrowserKind

T = TypeVar("T")


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
    matches: Annotated[int, typer.Option(min=1, help="Simulated matches; two sites list one twice.")] = 20,
    kinds: Kinds = None,
    site: Annotated[
        DemoSite, typer.Option(help="Which simulated sites to scrape: one cricket site, both, football, or all.")
    ] = DemoSite.CREX,
    browser: Annotated[
        BrowserKind | None, typer.Option(help="Scrape with a browser of this kind instead of HTTP.")
    ] = None,
    speed: Annotated[float, typer.Option(help="The speed of the simulated clock: seconds per real second.")] = 10.0,
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
    console = Console()
    report = _run(run_demo(options, console))
    if as_json:
        print(msgspec.json.encode(report).decode())
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

    console = Console(highlight=False)

    def show(report: FileReport) -> None:
        if as_json:
            print(msgspec.json.encode(report).decode(), flush=True)
            return
        verdict = "equal" if report.is_good else f"{report.wrong} wrong, {report.missing} missing, {report.extra} extra"
        kills = f", {report.kills} kills" if kill_every else ""
        console.print(
            f"{report.file}  {report.equal}/{report.deliveries} deliveries {verdict}{kills}, {report.seconds} s"
        )
        if report.first_difference:
            console.print(f"    {report.first_difference}")

    async def run() -> list[FileReport]:
        reports = []
        for file in files:
            reports.append(await verify_file(file, kill_every=kill_every))
            show(reports[-1])
        return reports

    reports = _run(run())
    good = sum(report.is_good for report in reports)
    if not as_json:
        console.print(f"{good} of {len(reports)} files are complete")
    raise typer.Exit(0 if good == len(reports) else 1)


VERBS = (demo, verify)


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
