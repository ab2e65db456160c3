"""A deployment: the simulator and a complete Longstop as child processes with one data directory."""

import asyncio
import os
import shutil
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import msgspec
import psutil
from msgspec import Struct

from longstop.api.tokens import make_token
from longstop.clock import SystemClock
from longstop.doctor.holders import listener_on
from longstop.errors import UsageError
from longstop.fetching.browser.browser_policy_and_stats import LADDER, BrowserKind
from longstop.fetching.browser.chromium_path_and_arguments import INSTALL, find_chromium, missing_packages
from longstop.process.browser_registry_and_temp_files import open_scratch
from longstop.settings import PARENT_FD_VARIABLE, read_settings
from longstop.storage.directory import DataDirectory
from longstop.supervision.lifeline_and_heartbeat_pipes import lifeline
from longstop_lab.client import Client
from longstop_lab.processes import DeploymentProcesses
from longstop_lab.simulator.faults import Fault

#: The first start on a machine compiles every module, which takes long.
START_TIMEOUT = 60.0
STOP_TIMEOUT = 40.0
DEFAULT_API_PORT, DEFAULT_SIMULATOR_PORT = 8700, 8701

#: The `browser` of a source that is read by HTTP.
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
#: The sites of the simulator: precedence weight, and the names of their address settings.
_SITES = {
    "crex": (100, ("site_url", "api_url", "content_url", "names_url")),
    "espncricinfo": (80, ("site_url",)),
    "sofascore": (100, ("site_url", "api_url")),
}


class DeploymentOptions(Struct, frozen=True, kw_only=True):
    """What to deploy."""

    #: Arguments of `longstop simulate`, without its ports, sites and truth log.
    simulate: tuple[str, ...]
    #: The sites that show the matches and are read. A match on two sites is two matches of the product.
    sites: tuple[str, ...] = ("crex",)
    #: The kind of browser that reads the sites, and its fetch modes; `none` reads them by HTTP.
    browser: str = _BY_HTTP
    modes: tuple[str, ...] = LADDER
    #: Sites that are read by HTTP even if a browser reads the others.
    by_http: tuple[str, ...] = ()
    truth: Path | None = None
    #: Faults of the simulator that are active before the scraper's first request.
    faults: tuple[Fault, ...] = ()
    #: Where to keep the data; `None` uses a temporary directory.
    keep: Path | None = None
    #: A port that is in use is an error; 0 takes a free one. `None` prefers the default ports of API and simulator.
    api_port: int | None = 0
    #: Settings of the product, by environment variable.
    settings: Mapping[str, str]


class Deployment:
    """A running deployment and its addresses."""

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
        #: When all processes were ready.
        self.ready_at = datetime.max.replace(tzinfo=UTC)
        self.data = data
        #: The log of supervisor, scraper and API, as JSON lines.
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
        """Return the scraper's process; `None` while it restarts."""
        return self.process("scraper")

    def process(self, verb: str) -> psutil.Process | None:
        """Return the child that runs a verb; `None` while it restarts."""
        return next((child for child in self._children() if verb in _cmdline(child)), None)

    @property
    def up_pid(self) -> int:
        """The pid of the supervisor."""
        return self._up.pid

    async def wait(self) -> int:
        """Wait until the supervisor exits, and return its exit code."""
        return await self._up.wait()

    def use_supervisor(self, up: Process) -> None:
        """Switch to another supervisor after the first was killed; the caller has to stop it."""
        self._up = up

    def rss_bytes(self) -> int:
        """Return the memory of supervisor, scraper, API and browsers together."""
        return sum(_rss(process) for process in (psutil.Process(self._up.pid), *self._children()))

    def _children(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self._up.pid).children(recursive=True)
        return []


@asynccontextmanager
async def deployed(options: DeploymentOptions) -> AsyncIterator[Deployment]:
    """Start all processes, wait until they are ready, and stop them and remove their files at the end."""
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(TemporaryDirectory(prefix="longstop-")))
        check(options)
        data = options.keep or home / "data"
        stack.callback(_drop_scratch, data)
        truth = options.truth or home / "truth.jsonl"
        api_port = _number(stack.enter_context(_api_port(options.api_port)))
        # The first site has the default port, so that the documentation can name it.
        preferred = {options.sites[0]: DEFAULT_SIMULATOR_PORT} if options.api_port is None else {}
        ports = {site: _number(stack.enter_context(reserve_port(preferred.get(site, 0)))) for site in _SITES}
        sources = home / "sources.yaml"
        sources.write_text(_sources_yaml(options, ports))
        env = {
            **os.environ,
            "ENABLE_PROMETHEUS_METRICS": "false",  # several deployments may share a machine, and there is one port
            **options.settings,
            "LONGSTOP_DATA": str(data),
            "LONGSTOP_SOURCES": str(sources),
            "LONGSTOP_API_PORT": str(api_port),
        }
        simulate = _simulate(options, ports, truth)
        simulator_url = f"http://127.0.0.1:{ports[options.sites[0]]}"
        life_line = stack.enter_context(lifeline())
        simulator = await stack.enter_async_context(_process(simulate, env, home / "simulator.log", life_line))
        if options.faults:
            await _inject(simulator_url, options.faults, {home / "simulator.log": simulator})
        token = make_token(read_settings(env), "demo")
        up = await stack.enter_async_context(_process(("up",), env, home / "longstop.log", life_line))
        deployment = Deployment(
            data=data,
            truth=truth,
            api_url=f"http://127.0.0.1:{api_port}",
            simulator_url=simulator_url,
            token=token,
            up=up,
            log=home / "longstop.log",
            sites=options.sites,
        )
        stack.push_async_callback(deployment.api.aclose)
        stack.push_async_callback(deployment.simulator.aclose)
        await _wait_until_ready(deployment, {home / "simulator.log": simulator, home / "longstop.log": up})
        deployment.ready_at = SystemClock().now()
        yield deployment


def check(options: DeploymentOptions) -> None:
    """Create the directory to keep; raise when something that the options need is missing or in use."""
    if options.keep and options.keep.is_file():
        raise UsageError(f"{options.keep} is a file, not a directory: choose another with --keep")
    if options.truth and (options.truth.is_dir() or not options.truth.parent.is_dir()):
        raise UsageError(f"cannot write the truth log {options.truth}: name a file in an existing directory")
    if options.keep and (options.keep / "matches.db").exists():
        raise UsageError(f"{options.keep} contains matches already: use a new directory for each run")
    wanted = options.api_port
    if wanted and (holder := listener_on("127.0.0.1", wanted)):
        raise UsageError(f"port {wanted} is in use by {holder}: choose another with --port, or omit the option")
    if options.browser != _BY_HTTP and not set(options.sites) <= set(options.by_http):
        _need_browser(BrowserKind(options.browser), {**os.environ, **options.settings})
    if options.keep:
        DataDirectory.open(options.keep, option="--keep")


def _need_browser(kind: BrowserKind, environ: Mapping[str, str]) -> None:
    if missing := missing_packages():
        raise UsageError(
            f"no browser can be used without the packages {', '.join(missing)}: run {sys.executable} -m {INSTALL},"
            " or omit --browser"
        )
    if find_chromium(kind, read_settings(environ).scraper.browser.executable, environ) is None:
        raise UsageError(f"no Chromium was found for browser kind {kind}: run longstop doctor")


def _sources_yaml(options: DeploymentOptions, ports: Mapping[str, int]) -> str:
    """Return the configuration of sources that point to the simulator."""
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


def _simulate(options: DeploymentOptions, ports: Mapping[str, int], truth: Path) -> tuple[str, ...]:
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
            start_new_session=True,  # Ctrl-C reaches only this process, which stops the children in order
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _wait_until_ready(deployment: Deployment, processes: Mapping[Path, Process]) -> None:
    async def is_ready() -> bool:
        return await deployment.simulator.responds("/_sim/status") and await _is_up(deployment)

    await _wait_until(is_ready, processes)


async def _inject(simulator_url: str, faults: Sequence[Fault], processes: Mapping[Path, Process]) -> None:
    simulator = Client(simulator_url)
    try:
        await _wait_until(lambda: simulator.responds("/_sim/status"), processes)
        await simulator.post("/_sim/faults", msgspec.json.encode(faults))
    finally:
        await simulator.aclose()


async def _wait_until(is_ready: Callable[[], Awaitable[bool]], processes: Mapping[Path, Process]) -> None:
    """Wait until processes are ready; one that exits before is an error with its last line."""
    try:
        async with asyncio.timeout(START_TIMEOUT):
            while not await is_ready():
                for log, process in processes.items():
                    if process.returncode is not None:
                        raise UsageError(_last_line(log).removeprefix("longstop: "))
                await asyncio.sleep(0.05)
    except TimeoutError as error:
        lines = "; ".join(_last_line(log) for log in processes)
        raise UsageError(f"the deployment was not ready within {START_TIMEOUT:g} s: {lines}") from error


def _drop_scratch(data: Path) -> None:
    """Remove the node's directory for temporary files, which normally outlives a restart."""
    if (data / "node-id").exists():
        shutil.rmtree(open_scratch(Path(gettempdir()), DataDirectory.open(data).node_id), ignore_errors=True)


def survivors(data: Path) -> int:
    """Return the number of processes that a deployment left behind, browsers included."""
    return len(DeploymentProcesses.of(data).running())


async def _is_up(deployment: Deployment) -> bool:
    """Return whether our API is ready; an API that rejects our token is another one on the same port."""
    return await deployment.api.responds("/ready") and await deployment.api.responds("/cricket-data/matches")


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"{log.name} is empty"


def _api_port(wanted: int | None) -> socket.socket:
    return reserve_port(DEFAULT_API_PORT if wanted is None else wanted)


def reserve_port(preferred: int = 0) -> socket.socket:
    """Reserve a free port, the preferred one if possible.

    The socket is bound and does not listen, so that a child process can listen on the port after every restart.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        reserved.bind(("127.0.0.1", preferred))
    except OSError:
        reserved.bind(("127.0.0.1", 0))
    return reserved


def _number(reserved: socket.socket) -> int:
    return int(reserved.getsockname()[1])


def _cmdline(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return process.cmdline()
    return []


def _rss(process: psutil.Process) -> int:
    with suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0
