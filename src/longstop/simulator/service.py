"""The simulator as one running thing: world, truth log, faults and server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from msgspec import Struct

from longstop.clock import Clock, SystemClock
from longstop.errors import UsageError
from longstop.simulator.crex_site import CrexSite
from longstop.simulator.espncricinfo_ids import SITE as ESPNCRICINFO
from longstop.simulator.espncricinfo_site import EspncricinfoSite
from longstop.simulator.faults import FaultBook
from longstop.simulator.kinds import DEFAULT_KINDS
from longstop.simulator.plan import plan_world
from longstop.simulator.server import SimulatorServer
from longstop.simulator.spoiling import Site
from longstop.simulator.truth import TruthFile, TruthLine
from longstop.simulator.world import World

#: The truth log is this far behind at most, in real seconds, when nobody asks for anything.
_BEAT_SECONDS = 0.05
#: Which sites show the matches, by the word for it.
SITES = {"crex": ("crex",), ESPNCRICINFO: (ESPNCRICINFO,), "both": ("crex", ESPNCRICINFO)}


class SimulatorOptions(Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    #: Of the crex site; 0 takes a free one.
    port: int = 0
    #: Of the espncricinfo site; 0 takes a free one.
    espn_port: int = 0
    #: `crex`, `espncricinfo` or `both`: a site that is not named is there, and shows no match.
    sites: str = "crex"
    matches: int = 20
    #: Which kinds of match are invented, in turn.
    kinds: tuple[str, ...] = DEFAULT_KINDS
    #: World seconds per real second.
    speed: float = 1.0
    seed: int = 1
    #: Ball-by-ball files to replay, beside the invented matches.
    files: tuple[Path, ...] = ()
    #: Where the truth log goes; `None` writes none.
    truth: Path | None = None
    #: World seconds between two balls of a replayed match.
    ball_gap: float = 30.0


class RunningSimulator(Struct, frozen=True, kw_only=True):
    base_url: str
    port: int
    espn_url: str
    espn_port: int
    world: World
    faults: FaultBook


@asynccontextmanager
async def running_simulator(
    options: SimulatorOptions, *, clock: Clock | None = None
) -> AsyncIterator[RunningSimulator]:
    """Serve a world while the block runs."""
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        record = stack.enter_context(TruthFile(options.truth)).write if options.truth else _forget
        world = _build_world(options, clock, record)
        faults = FaultBook(options.seed)
        ports = []
        for (name, make_site), wished in zip(_makers(clock).items(), (options.port, options.espn_port), strict=True):
            is_shown = name in SITES[options.sites]
            server = SimulatorServer(world, faults, clock, make_site if is_shown else partial(_empty, make_site))
            stack.push_async_callback(server.aclose)
            ports.append(await _listen(server, options.host, wished))
        stack.push_async_callback(_end, asyncio.create_task(_beat(world, clock), name="simulator beat"))
        crex_url, espn_url = (f"http://{options.host}:{port}" for port in ports)
        yield RunningSimulator(
            base_url=crex_url, port=ports[0], espn_url=espn_url, espn_port=ports[1], world=world, faults=faults
        )


async def serve(
    options: SimulatorOptions, *, clock: Clock, ready: Callable[[RunningSimulator], None] | None = None
) -> None:
    """Serve until cancelled; `ready` is told where."""
    async with running_simulator(options, clock=clock) as simulator:
        if ready:
            ready(simulator)
        await asyncio.Event().wait()


def _makers(clock: Clock) -> dict[str, Callable[[World], Site]]:
    return {"crex": CrexSite, ESPNCRICINFO: partial(EspncricinfoSite, clock=clock)}


def _empty(make_site: Callable[[World], Site], world: World) -> Site:
    """Return a site that nobody has told of the world's matches."""
    return make_site(World([], started_at=world.now, speed=1.0, record=_forget))


def _build_world(options: SimulatorOptions, clock: Clock, record: Callable[[Iterable[TruthLine]], None]) -> World:
    if options.sites not in SITES:
        raise UsageError(f"{options.sites[:40]!r} is no choice of sites: write one of {', '.join(SITES)}")
    if options.speed <= 0:
        raise UsageError("the speed must be greater than 0; 1 is real time")
    if not options.matches and not options.files:
        raise UsageError("there is nothing to simulate: ask for at least one match or give a file")
    plans = plan_world(
        seed=options.seed,
        matches=options.matches,
        kinds=options.kinds,
        files=options.files,
        ball_gap=options.ball_gap,
    )
    return World(plans, started_at=clock.now(), speed=options.speed, record=record)


async def _listen(server: SimulatorServer, host: str, port: int) -> int:
    try:
        return await server.start(host, port)
    except OSError as error:
        raise UsageError(f"port {port} of {host} cannot be used: {error.strerror}") from error


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _beat(world: World, clock: Clock) -> None:
    """Publish what is due even while nobody asks, so that the truth log keeps its time."""
    while True:
        world.advance(clock.now())
        await asyncio.sleep(_BEAT_SECONDS)


def _forget(_lines: Iterable[TruthLine]) -> None:
    """Write no truth log."""
