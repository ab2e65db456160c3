"""A deployment whose supervisor can be killed and restarted, as a service manager would, also with other settings."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from time import monotonic
from typing import Any

import psutil
import pytest

from longstop.errors import UsageError
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind, Mode
from longstop.process.processes import command_line
from longstop.settings import OUR_PREFIXES, PARENT_FD_VARIABLE
from longstop_lab.client import list_matches, was_read_since
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed
from longstop_lab.final_check import check_events, wait_until_synced
from longstop_lab.processes import DeploymentProcesses
from longstop_lab.simulator.judge import TruthComparison
from longstop_lab.version_log import VersionLog, logging_versions
from tests.acceptance.harness import QUICK, Event, logged, read_log
from tests.process_tree import Role, role_of, tree, writes

PATIENCE_SECONDS = 40.0


class LiveDeployment:
    """A deployment with live matches, and what tests do to it."""

    def __init__(self, deployment: Deployment, version_log: VersionLog) -> None:
        self.deployment = deployment
        #: Follows what is served, also by later supervisors.
        self.version_log = version_log
        self._first_log = deployment.log
        scraper = deployment.scraper()
        assert scraper is not None
        first = scraper.parent()
        assert first is not None
        self.up = first
        self.environ = {name: value for name, value in first.environ().items() if name != PARENT_FD_VARIABLE}
        self._processes = DeploymentProcesses.of(deployment.data)
        self._later: list[Process] = []
        self._deployments: list[Deployment] = []

    def pid_of(self, process: str) -> int | None:
        """Return the pid of the scraper, the API, the supervisor (`up`) or the scraper's browser."""
        if process == "up":
            return self.up.pid
        if process == "browser":
            return next((pid for pid in self._below_scraper() if role_of(command_line(pid)) is Role.BROWSER), None)
        found = self.deployment.process(process)
        return found.pid if found is not None else None

    def _below_scraper(self) -> list[int]:
        scraper = self.deployment.scraper()
        return [each.pid for each in tree(scraper.pid)] if scraper is not None else []

    def orphans(self) -> list[int]:
        """Return the running processes of this deployment that no running parent owns."""
        own = {self.up.pid, self.pid_of("api"), *self._below_scraper()}
        return [pid for pid in self.pids() if pid not in own]

    async def start_up(self, *before: str, **more: str) -> None:
        """Start another supervisor on the same data, optionally through a wrapping command."""
        log = self._first_log.with_name(f"longstop-{len(self._later)}.log")
        with log.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                *(*before, sys.executable, "-m", "longstop", "up"),
                env={**self.environ, **more},
                stdin=DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self._later.append(process)
        self.up = psutil.Process(process.pid)
        old = self.deployment
        self.deployment = Deployment(
            data=old.data,
            truth=old.truth,
            api_url=old.api_url,
            simulator_url=old.simulator_url,
            token=old.token,
            up=process,
            log=log,
            sites=old.sites,
        )
        self._deployments.append(self.deployment)

    async def replace_up(self, *before: str, **more: str) -> None:
        """Stop the supervisor, start another one with other settings, and wait until matches are fresh."""
        self.up.send_signal(signal.SIGTERM)
        await until(lambda: not is_alive(self.up), "the first supervisor stops")
        began = monotonic()
        await self.start_up(*before, **more)
        await until_true(self.is_fresh_since, began)

    async def is_fresh_since(self, moment: float) -> bool:
        """Return whether the API answers, and every match in play was read after a monotonic moment."""
        asked = monotonic()
        try:
            entries = await list_matches(self.deployment)
        except UsageError:
            return False
        live = [entry for entry in entries if entry["status"] == "live"] or entries
        return bool(live) and all(was_read_since(entry, moment, asked) for entry in live)

    async def events_shown(self) -> int:
        """Return the number of events that the site has shown."""
        matches = (await self.deployment.simulator.get("/_sim/status")).body["matches"]
        return sum(match["events"] for match in matches)

    async def has_shown_more_than(self, events: int) -> bool:
        return await self.events_shown() > events

    def logged(self, name: str, **fields: Any) -> list[Event]:
        """Return the events of the newest supervisor and its children."""
        return logged(read_log(self.deployment.log), name, **fields)

    async def verdict(self) -> TruthComparison:
        """Freeze the simulator, and check every event and every version that was ever served."""
        verdict = await check_events(self.deployment, version_log=self.version_log)
        assert self.version_log.seen()  # of every match that it could ask, even if there is no event yet
        assert verdict.forgotten == 0, verdict.details
        return verdict

    def writers(self) -> list[int]:
        """Return the pids that have the store open for writing."""
        return [pid for pid in self.pids() if writes(pid, self.deployment.data / "matches.db")]

    def pids(self) -> list[int]:
        """Return the pids of this deployment, browsers included, without the simulator."""
        return [each.pid for each in self._processes.running() if "simulate" not in command_line(each.pid)]

    async def aclose(self) -> None:
        for deployment in self._deployments:  # the caller closes the first one
            await deployment.api.aclose()
            await deployment.simulator.aclose()
        for process in self._later:
            with suppress(ProcessLookupError):
                process.terminate()
            with suppress(TimeoutError):
                async with asyncio.timeout(35):
                    await process.wait()
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


@asynccontextmanager
async def live_deployment(
    *, matches: int = 4, speed: float = 10.0, seed: int = 7, is_browsed: bool = False, **settings: str
) -> AsyncIterator[LiveDeployment]:
    """Deploy a few matches, wait until they are in sync, and stop everything at the end.

    They are cricket, read by HTTP, or football, read by a browser only.
    """
    kinds = ("--kinds", "football") if is_browsed else ()
    options = DeploymentOptions(
        simulate=("--matches", str(matches), "--speed", f"{speed:g}", "--seed", str(seed), *kinds),
        sites=("sofascore",) if is_browsed else ("crex",),
        browser=BrowserKind.SHELL if is_browsed else "none",
        modes=(Mode.NAVIGATE, Mode.PASSIVE, Mode.PAGE),
        settings={**QUICK, **settings},
    )
    with own_environment():
        began = monotonic()
        async with deployed(options) as deployment, AsyncExitStack() as beside:
            await wait_until_synced(deployment, since=began)
            version_log = await beside.enter_async_context(logging_versions(deployment))
            running = LiveDeployment(deployment, version_log)
            try:
                yield running
            except BaseException:
                print(running.deployment.log.read_text(errors="replace")[-20_000:])
                raise
            finally:
                await running.aclose()


@contextmanager
def own_environment() -> Iterator[None]:
    """Remove the developer's settings from the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(OUR_PREFIXES)]:
            patch.delenv(name)
        yield


async def until(happens: Callable[[], object], what: str, within: float = PATIENCE_SECONDS) -> None:
    try:
        async with asyncio.timeout(within):
            while not happens():  # noqa: ASYNC110 - it happens in other processes
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"not within {within:g} s: {what}")


async def until_true(asked: Callable[[Any], Any], moment: Any, within: float = PATIENCE_SECONDS) -> None:
    async with asyncio.timeout(within):
        while not await asked(moment):  # noqa: ASYNC110 - another process sets no event of ours
            await asyncio.sleep(0.05)


def is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
