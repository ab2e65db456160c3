"""The stage: a simulator and a whole Longstop beside it, as child processes, with one data directory."""

import asyncio
import os
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from msgspec import Struct

from longstop.errors import UsageError
from longstop.trial.client import Client

#: Seconds within which everything must have answered once; a cold machine compiles a lot at its first start.
START_WITHIN = 60.0
STOP_WITHIN = 40.0

_SOURCES = """\
sources:
  - domain_id: crex
    enabled: true
    precedence_weight: 100
    adapter_class: crex
    hosts: ["127.0.0.1:{port}"]
    allow_private_addresses: true
    permission: our own simulator
    metadata:
      api_url: http://127.0.0.1:{port}
      content_url: http://127.0.0.1:{port}
      names_url: http://127.0.0.1:{port}
"""


class StageOptions(Struct, frozen=True, kw_only=True):
    """What to put on the stage."""

    #: Arguments of `longstop simulate`, without its port and truth log.
    simulate: tuple[str, ...]
    truth: Path | None = None
    #: Where the data stay; `None` uses a directory that goes with the stage.
    keep: Path | None = None
    api_port: int | None = None
    #: Settings of the product, by environment variable.
    settings: Mapping[str, str]


class Stage:
    """Everything that runs, and how to reach it."""

    def __init__(self, *, data: Path, truth: Path, api_url: str, simulator_url: str, token: str, up: Process) -> None:
        self.data = data
        self.truth = truth
        self.api_url = api_url
        self.token = token
        self.api = Client(api_url, token)
        self.simulator = Client(simulator_url)
        self.simulator_url = simulator_url
        self._up = up

    def scraper(self) -> psutil.Process | None:
        """Return the scraper's process; `None` while it is between two lives."""
        return next((child for child in self._children() if "scraper" in _cmdline(child)), None)

    def rss_bytes(self) -> int:
        """Return the memory of supervisor, scraper and API together."""
        return sum(_rss(process) for process in (psutil.Process(self._up.pid), *self._children()))

    def is_running(self) -> bool:
        return self._up.returncode is None

    def _children(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self._up.pid).children(recursive=True)
        return []


@asynccontextmanager
async def staged(options: StageOptions) -> AsyncIterator[Stage]:
    """Start everything, wait until it answers, and leave nothing behind."""
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(TemporaryDirectory(prefix="longstop-")))
        data = options.keep or home / "data"
        truth = options.truth or home / "truth.jsonl"
        simulator_port, api_port = _free_port(), options.api_port or _free_port()
        sources = home / "sources.yaml"
        sources.write_text(_SOURCES.format(port=simulator_port))
        env = {
            **os.environ,
            **options.settings,
            "LONGSTOP_DATA": str(data),
            "LONGSTOP_SOURCES": str(sources),
            "LONGSTOP_API_PORT": str(api_port),
        }
        log = stack.enter_context((home / "log.jsonl").open("wb"))
        simulate = ("simulate", "--port", str(simulator_port), "--truth", str(truth), *options.simulate)
        await stack.enter_async_context(_process(simulate, env, log.fileno()))
        token = await _token(env)
        up = await stack.enter_async_context(_process(("up",), env, log.fileno()))
        stage = Stage(
            data=data,
            truth=truth,
            api_url=f"http://127.0.0.1:{api_port}",
            simulator_url=f"http://127.0.0.1:{simulator_port}",
            token=token,
            up=up,
        )
        stack.push_async_callback(stage.api.aclose)
        stack.push_async_callback(stage.simulator.aclose)
        await _wait_until_ready(stage, Path(log.name))
        yield stage


@asynccontextmanager
async def _process(verb: tuple[str, ...], env: Mapping[str, str], log: int) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "longstop",
        *verb,
        env=dict(env),
        stdin=DEVNULL,
        stdout=log,
        stderr=log,
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
        sys.executable, "-m", "longstop", "token", "--subject", "demo", env=dict(env), stdout=-1
    )
    answer, _ = await process.communicate()
    if process.returncode:
        raise UsageError("the data directory gave no token; see the sentence above")
    return answer.decode().strip()


async def _wait_until_ready(stage: Stage, log: Path) -> None:
    try:
        async with asyncio.timeout(START_WITHIN):
            while not (await stage.simulator.answers("/_sim/status") and await stage.api.answers("/ready")):
                if not stage.is_running():
                    raise UsageError(f"it did not start: {_last_line(log)}")
                await asyncio.sleep(0.05)
    except TimeoutError as error:
        raise UsageError(f"nothing answered within {START_WITHIN:g} s: {_last_line(log)}") from error


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "the log is empty"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _cmdline(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return process.cmdline()
    return []


def _rss(process: psutil.Process) -> int:
    with suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0
