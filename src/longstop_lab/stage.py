"""The stage: a simulator and a whole Longstop beside it, as child processes, with one data directory."""

import asyncio
import os
import shutil
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import psutil
from msgspec import Struct

from longstop.clock import SystemClock
from longstop.doctor.holders import listener_on
from longstop.errors import UsageError
from longstop.fetching.browser.base import LADDER, BrowserKind
from longstop.fetching.browser.chromium import find_chromium
from longstop.fetching.browser.extra import INSTALL, missing_packages
from longstop.fetching.browser.scratch import open_scratch
from longstop.settings import PARENT_FD_VARIABLE, read_settings
from longstop.storage.directory import DataDirectory
from longstop.supervision.parent import life_line_of_children
from longstop_lab.client import Client
from longstop_lab.kin import Kin

#: Seconds within which everything must have answered once; a cold machine compiles a lot at its first start.
START_WITHIN = 60.0
STOP_WITHIN = 40.0
USUAL_API_PORT = 8700

#: What stands in place of a browser's kind where there is none.
_BY_HTTP = "none"
_SOURCE = """\
  - domain_id: {name}
    enabled: true
    precedence_weight: {weight}
    adapter_class: {name}
    hosts: ["127.0.0.1:{port}"]
    allow_private_addresses: true
    permission: our own simulator
    browser: {browser}
    modes: [{modes}]
    metadata: {{{urls}}}
"""
#: The sites that the simulator can show: how much they weigh, and what their addresses are called.
_SITES = {
    "crex": (100, ("site_url", "api_url", "content_url", "names_url")),
    "espncricinfo": (80, ("site_url",)),
    "sofascore": (100, ("site_url", "api_url")),
}


class StageOptions(Struct, frozen=True, kw_only=True):
    """What to put on the stage."""

    #: Arguments of `longstop simulate`, without its ports, sites and truth log.
    simulate: tuple[str, ...]
    #: Where the matches are shown and read; one match on two sites is two matches until they are joined.
    sites: tuple[str, ...] = ("crex",)
    #: The kind of browser that reads them, and the ways it may use; `none` reads them by HTTP.
    browser: str = _BY_HTTP
    modes: tuple[str, ...] = LADDER
    #: Those of the sites that are read by HTTP, whatever reads the others.
    by_http: tuple[str, ...] = ()
    truth: Path | None = None
    #: Where the data stay; `None` uses a directory that goes with the stage.
    keep: Path | None = None
    #: Refused when it is taken; 0 takes any, and `None` the usual one when that is free, else any.
    api_port: int | None = 0
    #: Settings of the product, by environment variable.
    settings: Mapping[str, str]


class Stage:
    """Everything that runs, and how to reach it."""

    def __init__(
        self,
        *,
        data: Path,
        truth: Path,
        api_url: str,
        simulator_url: str,
        token: str,
        up: Process,
        log: Path,
        sites: tuple[str, ...],
    ) -> None:
        #: When everything answered for the first time.
        self.ready_at = datetime.max.replace(tzinfo=UTC)
        self.data = data
        #: What supervisor, scraper and API have said: JSON lines.
        self.log = log
        self.sites = sites
        self.truth = truth
        self.api_url = api_url
        self.token = token
        self.api = Client(api_url, token)
        self.simulator = Client(simulator_url)
        self.simulator_url = simulator_url
        self._up = up

    def scraper(self) -> psutil.Process | None:
        """Return the scraper's process; `None` while it is between two lives."""
        return self.process("scraper")

    def process(self, verb: str) -> psutil.Process | None:
        """Return the child that runs a verb; `None` while it is between two lives."""
        return next((child for child in self._children() if verb in _cmdline(child)), None)

    @property
    def up_pid(self) -> int:
        """The supervisor's."""
        return self._up.pid

    async def ended(self) -> int:
        """Wait for the supervisor's end, and return its exit code."""
        return await self._up.wait()

    def follow(self, up: Process) -> None:
        """Look at another supervisor from now on: the one before was killed, and whoever started this one ends it."""
        self._up = up

    def rss_bytes(self) -> int:
        """Return the memory of supervisor, scraper and API together."""
        return sum(_rss(process) for process in (psutil.Process(self._up.pid), *self._children()))

    def _children(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self._up.pid).children(recursive=True)
        return []


@asynccontextmanager
async def staged(options: StageOptions) -> AsyncIterator[Stage]:
    """Start everything, wait until it answers, and leave nothing behind."""
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(TemporaryDirectory(prefix="longstop-")))
        check(options)
        data = options.keep or home / "data"
        stack.callback(_drop_scratch, data)
        truth = options.truth or home / "truth.jsonl"
        api_port = _number(stack.enter_context(_api_port(options.api_port)))
        ports = {site: _number(stack.enter_context(held_port())) for site in _SITES}
        sources = home / "sources.yaml"
        sources.write_text(_describe(options, ports))
        env = {
            **os.environ,
            "ENABLE_PROMETHEUS_METRICS": "false",  # several stages may stand on one machine, and there is one port
            **options.settings,
            "LONGSTOP_DATA": str(data),
            "LONGSTOP_SOURCES": str(sources),
            "LONGSTOP_API_PORT": str(api_port),
        }
        simulate = _simulate(options, ports, truth)
        life_line = stack.enter_context(life_line_of_children())
        simulator = await stack.enter_async_context(_process(simulate, env, home / "simulator.log", life_line))
        token = await _token(env)
        up = await stack.enter_async_context(_process(("up",), env, home / "longstop.log", life_line))
        stage = Stage(
            data=data,
            truth=truth,
            api_url=f"http://127.0.0.1:{api_port}",
            simulator_url=f"http://127.0.0.1:{ports[options.sites[0]]}",
            token=token,
            up=up,
            log=home / "longstop.log",
            sites=options.sites,
        )
        stack.push_async_callback(stage.api.aclose)
        stack.push_async_callback(stage.simulator.aclose)
        await _wait_until_ready(stage, {home / "simulator.log": simulator, home / "longstop.log": up})
        stage.ready_at = SystemClock().now()
        yield stage


def check(options: StageOptions) -> None:
    """Raise where something that was asked for is missing, or in use already."""
    if options.keep and (options.keep / "matches.db").exists():
        raise UsageError(f"{options.keep} holds matches already: take a new directory for each run")
    wanted = options.api_port
    if wanted and (holder := listener_on("127.0.0.1", wanted)):
        raise UsageError(f"port {wanted} is taken by {holder}: name another with --port, or leave it out")
    if options.browser != _BY_HTTP and not set(options.sites) <= set(options.by_http):
        _need_browser(BrowserKind(options.browser), {**os.environ, **options.settings})


def _need_browser(kind: BrowserKind, environ: Mapping[str, str]) -> None:
    if missing := missing_packages():
        raise UsageError(
            f"packages are missing: {', '.join(missing)}. Without them no browser can be used. Run {INSTALL}, or leave "
            "out --browser"
        )
    if find_chromium(kind, read_settings(environ).scraper.browser.executable, environ) is None:
        raise UsageError(f"there is no Chromium for a browser of the kind {kind}: ask longstop doctor")


def _describe(options: StageOptions, ports: Mapping[str, int]) -> str:
    """Return a file of sources that leads to the simulator."""
    blocks = []
    for name in options.sites:
        weight, urls = _SITES[name]
        addresses = ", ".join(f"{url}: 'http://127.0.0.1:{ports[name]}'" for url in urls)
        blocks.append(
            _SOURCE.format(
                name=name,
                weight=weight,
                port=ports[name],
                urls=addresses,
                browser=_BY_HTTP if name in options.by_http else options.browser,
                modes=", ".join(options.modes),
            )
        )
    return "sources:\n" + "".join(blocks)


def _simulate(options: StageOptions, ports: Mapping[str, int], truth: Path) -> tuple[str, ...]:
    where = ("--port", str(ports["crex"]), "--espn-port", str(ports["espncricinfo"]))
    also = ("--sofascore-port", str(ports["sofascore"]), "--sites", ",".join(options.sites))
    return ("simulate", *where, *also, "--truth", str(truth), *options.simulate)


@asynccontextmanager
async def _process(verb: tuple[str, ...], env: Mapping[str, str], log: Path, life_line: int) -> AsyncIterator[Process]:
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "longstop", *verb),
            env={**env, PARENT_FD_VARIABLE: str(life_line)},
            pass_fds=(life_line,),
            stdin=DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,  # Ctrl-C reaches us alone; we end the children in order
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(STOP_WITHIN):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _token(env: Mapping[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "longstop", "token", "--subject", "demo", env=dict(env), stdout=-1, start_new_session=True
    )
    try:
        answer, _ = await process.communicate()
    except asyncio.CancelledError:
        # It would make its data directory again after ours is gone.
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode:
        raise UsageError("the data directory gave no token; see the sentence above")
    return answer.decode().strip()


async def _wait_until_ready(stage: Stage, processes: Mapping[Path, Process]) -> None:
    try:
        async with asyncio.timeout(START_WITHIN):
            while not (await stage.simulator.answers("/_sim/status") and await _is_up(stage)):
                for log, process in processes.items():
                    if process.returncode is not None:
                        raise UsageError(_last_line(log).removeprefix("longstop: "))
                await asyncio.sleep(0.05)
    except TimeoutError as error:
        said = "; ".join(_last_line(log) for log in processes)
        raise UsageError(f"it did not come up within {START_WITHIN:g} s: {said}") from error


def _drop_scratch(data: Path) -> None:
    """Take away the directory for temporary files that a node keeps from one life to the next: this one has no next."""
    if (data / "node-id").exists():
        shutil.rmtree(open_scratch(Path(gettempdir()), DataDirectory.open(data).node_id), ignore_errors=True)


def survivors(data: Path) -> int:
    """Return how many processes of a stage are left over, its browsers' included."""
    return len(Kin.of(data).living())


async def _is_up(stage: Stage) -> bool:
    """Return whether our API is ready; one that refuses our token is another's on the same port."""
    return await stage.api.answers("/ready") and await stage.api.answers("/cricket-data/matches")


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"{log.name} is empty"


def _api_port(wanted: int | None) -> socket.socket:
    return held_port(USUAL_API_PORT if wanted is None else wanted)


def held_port(preferred: int = 0) -> socket.socket:
    """Take a port that nobody listens on, the preferred one when it is free, and keep others from being given it.

    It is bound and does not listen: that leaves a child of ours free to listen there, in each of its lives.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind(("127.0.0.1", preferred))
    except OSError:
        held.bind(("127.0.0.1", 0))
    return held


def _number(held: socket.socket) -> int:
    return int(held.getsockname()[1])


def _cmdline(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return process.cmdline()
    return []


def _rss(process: psutil.Process) -> int:
    with suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0
