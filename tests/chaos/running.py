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
from longstop.fetching.browser.base import BrowserKind, Mode
from longstop.process.processes import command_line
from longstop.settings import OUR_PREFIXES, PARENT_FD_VARIABLE
from longstop_lab.client import list_matches, was_read_since
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed
from longstop_lab.final_check import check_events, wait_until_synced
from longstop_lab.processes import DeploymentProcesses
from longstop_lab.simulator.judge import TruthComparison
from longstop_lab.version_log import VersionLog, logging_versions
from tests.acceptance.harness import QUICK, Event, read_log, told
from tests.process_tree import Role, role_of, tree, writes

PATIENCE_SECONDS = 40.0


class Running:
    """Real processes in play, and what can be done to them."""

    def __init__(self, deployment: Deployment, version_log: VersionLog) -> None:
        self.deployment = deployment
        #: Follows what is served, whoever serves it.
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
        """Return who is the scraper, the API, the supervisor (`up`) or the scraper's browser now."""
        if process == "up":
            return self.up.pid
        if process == "browser":
            return next((pid for pid in self._below_scraper() if role_of(command_line(pid)) is Role.BROWSER), None)
        found = self.deployment.process(process)
        return found.pid if found is not None else None

    def _below_scraper(self) -> list[int]:
        scraper = self.deployment.scraper()
        return [each.pid for each in tree(scraper.pid)] if scraper is not None else []

    def strays(self) -> list[int]:
        """Return the living processes of this deployment that belong to none of those who should be there."""
        own = {self.up.pid, self.pid_of("api"), *self._below_scraper()}
        return [pid for pid in self.everybody() if pid not in own]

    async def start_up(self, *before: str, **more: str) -> None:
        """Start another supervisor on the same data, by a command that comes before it if need be."""
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
        """Let the supervisor stop, and start another one in other circumstances; return when it is in play."""
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
        """Return how much the site has shown of all matches by now."""
        matches = (await self.deployment.simulator.get("/_sim/status")).body["matches"]
        return sum(match["events"] for match in matches)

    async def has_shown_more_than(self, events: int) -> bool:
        return await self.events_shown() > events

    def told(self, name: str, **fields: Any) -> list[Event]:
        """Return what the newest processes have said."""
        return told(read_log(self.deployment.log), name, **fields)

    async def verdict(self) -> TruthComparison:
        """Stop the world, and account for every event and for all that was ever served."""
        verdict = await check_events(self.deployment, version_log=self.version_log)
        assert self.version_log.seen()  # of every match that it could ask, even if there is no event yet
        assert verdict.forgotten == 0, verdict.details
        return verdict

    def writers(self) -> list[int]:
        """Return who has the store open for writing now."""
        return [pid for pid in self.everybody() if writes(pid, self.deployment.data / "matches.db")]

    def everybody(self) -> list[int]:
        """Return every living process of this deployment but the simulator; its browsers' are among them."""
        return [each.pid for each in self._processes.running() if "simulate" not in command_line(each.pid)]

    async def aclose(self) -> None:
        for deployment in self._deployments:  # the first one is closed by whoever has made it
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
async def in_play(
    *, matches: int = 4, speed: float = 10.0, seed: int = 7, is_browsed: bool = False, **settings: str
) -> AsyncIterator[Running]:
    """Deployment a few matches, wait until they are known, and leave nothing behind.

    They are cricket, read by HTTP; or football, read by a browser that never goes over to it.
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
            running = Running(deployment, version_log)
            try:
                yield running
            except BaseException:
                print(running.deployment.log.read_text(errors="replace")[-20_000:])
                raise
            finally:
                await running.aclose()


@contextmanager
def own_environment() -> Iterator[None]:
    """Keep the settings of whoever runs the tests out of them."""
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
