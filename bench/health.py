"""Response times of `/health` at 200 requests a second while store and browser hang, compared with an idle API."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import msgspec
import psutil
from msgspec import Struct

from bench.reporting import Report, rounded, say
from longstop.api.health_cache_and_pollers import BLIND_AFTER_SECONDS
from longstop.errors import UsageError
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed
from tests.blocking import locked, stopped
from tests.steady_load import Load, steady

RATE = 200.0
#: The target; the minimum of NFR-006 is ten times as much.
P95_SECONDS = 0.010
RATIO = 3.0
#: No single response may take longer.
WORST_SECONDS = 1.0
#: While the known state is current, and when it is stale.
STATUSES = frozenset({200, 503})
WAIT_SECONDS = 60.0
_FILES = ("hot.db", "matches.db", "ops.db")
_BROWSERS = ("chrome", "headless_shell", "chromium")


class Trial(Struct, frozen=True, kw_only=True):
    """The same load at the same time on two APIs of one machine."""

    #: The idle API, with a copy of the files: it shows how slow the machine is.
    idle: Load
    #: The API whose files hang.
    hung: Load
    #: The number of stopped browser processes.
    halted: int

    @property
    def blind(self) -> dict[str, Any]:
        """Return the last response of `/health`; empty when it was not usable."""
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(self.hung.last, type=dict[str, Any])
        return {}


async def health(*, is_quick: bool) -> Report:
    """Measure."""
    options = DeploymentOptions(
        simulate=("--matches", "4", "--speed", "1", "--seed", "5"),
        browser="shell",
        settings={"LOG_LEVEL": "INFO"},
    )
    say("four matches, read by a browser")
    async with deployed(options) as deployment:
        await wait_until_healthy(deployment)
        trial = await compare(deployment, seconds=12.0 if is_quick else 30.0)
    return report(trial)


async def wait_until_healthy(deployment: Deployment) -> None:
    """Return when the matches are read, by a browser if they are to be."""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                said = (await deployment.api.get("/health")).body
                if said["status"] == "healthy" and said["total_matches_scraping"]:
                    return
                await asyncio.sleep(0.2)
    except TimeoutError as error:
        raise UsageError(f"the deployment was not healthy within {WAIT_SECONDS:.0f} s: {said['reasons']}") from error


async def compare(deployment: Deployment, *, seconds: float) -> Trial:
    """Load an API whose files hang and whose browser is stopped, and an idle one."""
    async with _idle_api(deployment) as idle_url:
        browsers, scraper = list(_browsers(deployment)), deployment.scraper()
        say("blocking the store, stopping scraper and browser")
        # The writer is stopped, too: it would replace a file that it cannot open.
        with stopped([*browsers, *([scraper] if scraper else [])]):
            async with locked(deployment.data / name for name in _FILES):
                idle, hung = await asyncio.gather(
                    *(steady(f"{url}/health", rate=RATE, seconds=seconds) for url in (idle_url, deployment.api_url))
                )
    return Trial(idle=idle, hung=hung, halted=len(browsers))


@asynccontextmanager
async def _idle_api(deployment: Deployment) -> AsyncIterator[str]:
    """Start an API on a copy of the files."""
    with TemporaryDirectory(prefix="longstop-") as home:
        for name in _FILES:
            _copy(deployment.data / name, Path(home) / name)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "longstop", "api", "--data", home, "--port", "0"),
            stdin=DEVNULL,
            stderr=PIPE,
        )
        try:
            yield await _address(process)
        finally:
            process.terminate()
            await process.communicate()


async def _address(process: Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(WAIT_SECONDS):
        while line := (await process.stderr.readline()).decode():
            if line.startswith("API on "):
                return line.removeprefix("API on ").strip()
    raise UsageError("the idle API did not start")


def _copy(source: Path, target: Path) -> None:
    taken, made = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY), apsw.Connection(str(target))
    with made.backup("main", taken, "main") as backup:
        backup.step()
    made.close()
    taken.close()


def _browsers(deployment: Deployment) -> Iterator[psutil.Process]:
    scraper = deployment.scraper()
    for process in scraper.children(recursive=True) if scraper else ():
        with suppress(psutil.NoSuchProcess):  # Chromium's helpers come and go
            if process.name().startswith(_BROWSERS):
                yield process


def troubles(name: str, load: Load) -> Iterator[str]:
    """Describe requests that failed."""
    if load.unanswered:
        yield f"the {name} API left {load.unanswered} questions without an answer"
    for status in sorted(load.statuses.keys() - STATUSES):
        yield f"the {name} API answered {status} {load.statuses[status]} times"


def report(trial: Trial) -> Report:
    """Return the report; it is ok when all responses were correct and fast."""
    idle, hung, worst = trial.idle.percentile(0.95), trial.hung.percentile(0.95), max(trial.hung.seconds)
    age = trial.blind.get("snapshot_age_seconds")
    details = [*troubles("idle", trial.idle), *troubles("hanging", trial.hung)]
    if hung > P95_SECONDS:
        details.append(f"p95 is {hung * 1000:.1f} ms")
    if hung > RATIO * idle:
        details.append(f"p95 is {hung / idle:.1f} times that of an idle API")
    if worst > WORST_SECONDS:
        details.append(f"the slowest answer of the hanging API took {worst:.1f} s")
    if age is None:
        details.append("the hanging API never said how old its view is")
    elif age < BLIND_AFTER_SECONDS:
        details.append("the store did not hang")
    if not trial.halted:
        details.append("no browser was halted")
    return Report(
        suite="health",
        is_ok=not details,
        figures={
            "rate": RATE,
            "idle_p50_ms": rounded(trial.idle.percentile(0.5) * 1000),
            "idle_p95_ms": rounded(idle * 1000),
            "hung_p50_ms": rounded(trial.hung.percentile(0.5) * 1000),
            "hung_p95_ms": rounded(hung * 1000),
            "hung_p99_ms": rounded(trial.hung.percentile(0.99) * 1000),
            "hung_max_ms": rounded(worst * 1000),
            "ratio": rounded(hung / idle),
            "unanswered": trial.idle.unanswered + trial.hung.unanswered,
            "snapshot_age_seconds": age,
            "status_hung": trial.blind.get("status"),
            "browsers_halted": trial.halted,
        },
        details=details,
    )
