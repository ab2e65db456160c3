"""The simulator as one running thing: world, truth log, faults and server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from msgspec import Struct

from longstop.clock import Clock, SystemClock
from longstop.errors import UsageError
from longstop.simulator.faults import FaultBook
from longstop.simulator.plan import plan_world
from longstop.simulator.server import SimulatorServer
from longstop.simulator.truth import TruthFile, TruthLine
from longstop.simulator.world import World

#: The truth log is this far behind at most, in real seconds, when nobody asks for anything.
_BEAT_SECONDS = 0.05


class SimulatorOptions(Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    #: 0 takes a free one.
    port: int = 0
    matches: int = 20
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
    world: World
    faults: FaultBook


@asynccontextmanager
async def running_simulator(
    options: SimulatorOptions, *, clock: Clock | None = None
) -> AsyncIterator[RunningSimulator]:
    """Serve a world while the block runs."""
    clock = clock or SystemClock()
    with ExitStack() as stack:
        record = stack.enter_context(TruthFile(options.truth)).write if options.truth else _forget
        world = _build_world(options, clock, record)
        faults = FaultBook(options.seed)
        server = SimulatorServer(world, faults, clock)
        port = await _listen(server, options)
        beat = asyncio.create_task(_beat(world, clock), name="simulator beat")
        try:
            yield RunningSimulator(base_url=f"http://{options.host}:{port}", port=port, world=world, faults=faults)
        finally:
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)
            await server.aclose()


async def serve(options: SimulatorOptions, *, clock: Clock, ready: Callable[[int], None] | None = None) -> None:
    """Serve until cancelled; `ready` is told the port."""
    async with running_simulator(options, clock=clock) as simulator:
        if ready:
            ready(simulator.port)
        await asyncio.Event().wait()


def _build_world(options: SimulatorOptions, clock: Clock, record: Callable[[Iterable[TruthLine]], None]) -> World:
    if options.speed <= 0:
        raise UsageError("the speed must be greater than 0; 1 is real time")
    if not options.matches and not options.files:
        raise UsageError("there is nothing to simulate: ask for at least one match or give a file")
    plans = plan_world(seed=options.seed, matches=options.matches, files=options.files, ball_gap=options.ball_gap)
    return World(plans, started_at=clock.now(), speed=options.speed, record=record)


async def _listen(server: SimulatorServer, options: SimulatorOptions) -> int:
    try:
        return await server.start(options.host, options.port)
    except OSError as error:
        raise UsageError(f"port {options.port} of {options.host} cannot be used: {error.strerror}") from error


async def _beat(world: World, clock: Clock) -> None:
    """Publish what is due even while nobody asks, so that the truth log keeps its time."""
    while True:
        world.advance(clock.now())
        await asyncio.sleep(_BEAT_SECONDS)


def _forget(_lines: Iterable[TruthLine]) -> None:
    """Write no truth log."""
