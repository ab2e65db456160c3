"""The running simulator: worlds, truth log, faults and servers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct

from longstop.clock import Clock, SystemClock
from longstop.errors import UsageError
from longstop_lab.simulator.cricket.world import CRICKET_KINDS, DEFAULT_KINDS, World, plan_world
from longstop_lab.simulator.faults import FaultRules
from longstop_lab.simulator.football.world import FOOTBALL_KINDS, FootballWorld, plan_football
from longstop_lab.simulator.http import Request
from longstop_lab.simulator.server import SimulatorServer
from longstop_lab.simulator.sites.crex.site import CrexSite
from longstop_lab.simulator.sites.espncricinfo.ids import SITE as ESPNCRICINFO
from longstop_lab.simulator.sites.espncricinfo.site import EspncricinfoSite
from longstop_lab.simulator.sites.sofascore.push import PUSH, PushChannel
from longstop_lab.simulator.sites.sofascore.site import SITE as SOFASCORE
from longstop_lab.simulator.sites.sofascore.site import SofascoreSite
from longstop_lab.simulator.timeline import Record, Timeline, forget
from longstop_lab.simulator.truth import TruthFile

#: Without requests, the truth log lags behind by at most this many real seconds.
_TICK_SECONDS = 0.05
#: The sites of each choice.
SITES = {
    "crex": ("crex",),
    ESPNCRICINFO: (ESPNCRICINFO,),
    "both": ("crex", ESPNCRICINFO),
    SOFASCORE: (SOFASCORE,),
    "all": ("crex", ESPNCRICINFO, SOFASCORE),
}


KINDS = (*CRICKET_KINDS, *FOOTBALL_KINDS)


class SimulatorOptions(Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    #: The port of crex; 0 takes a free one.
    port: int = 0
    #: The port of espncricinfo; 0 takes a free one.
    espn_port: int = 0
    #: The port of sofascore; 0 takes a free one.
    sofascore_port: int = 0
    #: One of `SITES`, or several separated by commas; other sites are served without matches.
    sites: str = "crex"
    matches: int = 20
    #: The kinds of the invented matches, in turn; `None` takes what the sites show.
    kinds: tuple[str, ...] | None = None
    #: World seconds per real second.
    speed: float = 1.0
    seed: int = 1
    #: Ball-by-ball files to replay, in addition to the invented matches.
    files: tuple[Path, ...] = ()
    #: The path of the truth log; `None` writes none.
    truth: Path | None = None
    #: World seconds between two balls of a replayed match.
    ball_gap: float = 30.0
    #: The poll interval of an open page, in real seconds.
    poll_seconds: float = 4.0
    #: The average life of a page's push channel, in real seconds.
    drop_seconds: float = 30.0


class RunningSimulator(Struct, frozen=True, kw_only=True):
    base_url: str
    port: int
    espn_url: str
    espn_port: int
    sofascore_url: str
    sofascore_port: int
    world: World
    football: FootballWorld
    faults: FaultRules


@asynccontextmanager
async def running_simulator(
    options: SimulatorOptions, *, clock: Clock | None = None
) -> AsyncIterator[RunningSimulator]:
    """Serve the simulated sites while the block runs."""
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        record = stack.enter_context(TruthFile(options.truth)).write if options.truth else forget
        world, football = _build_worlds(options, clock, record)
        faults = FaultRules(options.seed)
        servers = _servers(options, world, football, faults, clock)
        ports = []
        for wanted, server in zip((options.port, options.espn_port, options.sofascore_port), servers, strict=True):
            stack.push_async_callback(server.aclose)
            ports.append(await _listen(server, options.host, wanted))
        stack.push_async_callback(_end, asyncio.create_task(_tick((world, football), clock), name="simulator tick"))
        crex_url, espn_url, sofascore_url = (f"http://{options.host}:{port}" for port in ports)
        yield RunningSimulator(
            base_url=crex_url,
            port=ports[0],
            espn_url=espn_url,
            espn_port=ports[1],
            sofascore_url=sofascore_url,
            sofascore_port=ports[2],
            world=world,
            football=football,
            faults=faults,
        )


async def serve(
    options: SimulatorOptions, *, clock: Clock, ready: Callable[[RunningSimulator], None] | None = None
) -> None:
    """Serve until cancelled; call `ready` with the addresses."""
    async with running_simulator(options, clock=clock) as simulator:
        if ready:
            ready(simulator)
        await asyncio.Event().wait()


def _servers(
    options: SimulatorOptions, world: World, football: FootballWorld, faults: FaultRules, clock: Clock
) -> list[SimulatorServer[Any]]:
    """Return the servers of crex, espncricinfo and sofascore; sites that were not chosen show no matches."""
    shown_at = _read_sites(options.sites)
    crex, espn = partial(CrexSite, poll_seconds=options.poll_seconds), partial(EspncricinfoSite, clock=clock)
    sofascore = partial(SofascoreSite, poll_seconds=options.poll_seconds)
    return [
        SimulatorServer(
            world,
            faults,
            clock,
            crex if "crex" in shown_at else lambda world: crex(world.empty()),
            others=[football],
        ),
        SimulatorServer(
            world,
            faults,
            clock,
            espn if ESPNCRICINFO in shown_at else lambda world: espn(world.empty()),
            others=[football],
        ),
        SimulatorServer(
            football,
            faults,
            clock,
            sofascore if SOFASCORE in shown_at else lambda world: sofascore(world.empty()),
            others=[world],
            open_channel=_Pushing(football, options).open,
        ),
    ]


class _Pushing:
    """Opens the push channels of pages, each with a random life."""

    def __init__(self, world: FootballWorld, options: SimulatorOptions) -> None:
        self._world = world
        self._drop_seconds = options.drop_seconds
        self._dice = Random(f"push {options.seed}")

    def open(self, request: Request) -> PushChannel | None:
        key = request.match_key
        if key not in self._world.boards or not request.path.startswith(PUSH):
            return None
        return PushChannel(self._world, key, life_seconds=self._dice.uniform(0.5, 1.5) * self._drop_seconds)


def read_kinds(text: str) -> tuple[str, ...]:
    """Return the kinds of match in a comma-separated list, such as `t20,odi`."""
    kinds = tuple(kind.strip() for kind in text.split(","))
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise UsageError(f"{unknown[0][:40]!r} is not a kind of match: choose from {', '.join(KINDS)}")
    return kinds


def _read_sites(text: str) -> tuple[str, ...]:
    choices = [choice.strip() for choice in text.split(",")]
    unknown = [choice for choice in choices if choice not in SITES]
    if unknown:
        raise UsageError(f"{unknown[0][:40]!r} is not a choice of sites: choose from {', '.join(SITES)}")
    return tuple(dict.fromkeys(site for choice in choices for site in SITES[choice]))


def choose_kinds(options: SimulatorOptions) -> list[str]:
    """Return the kind of every invented match, each of which a site must show; raise if any option is wrong."""
    if options.speed <= 0:
        raise UsageError("the speed must be greater than 0; 1 is real time")
    if options.poll_seconds <= 0 or options.drop_seconds <= 0:
        raise UsageError("the poll interval and the life of push channels must be greater than 0")
    if not options.matches and not options.files:
        raise UsageError("there is nothing to simulate: request at least one match or give a file")
    shown_at = _read_sites(options.sites)
    shows_cricket, shows_football = {"crex", ESPNCRICINFO} & set(shown_at), SOFASCORE in shown_at
    kinds = options.kinds or ((DEFAULT_KINDS if shows_cricket else ()) + (("football",) if shows_football else ()))
    chosen = [kinds[nth % len(kinds)] for nth in range(options.matches)]
    if not shows_football and any(kind in FOOTBALL_KINDS for kind in chosen):
        raise UsageError("only sofascore shows football: add it to the sites, or remove football from the kinds")
    if not shows_cricket and (options.files or any(kind not in FOOTBALL_KINDS for kind in chosen)):
        raise UsageError("sofascore shows no cricket: add crex or espncricinfo to the sites, or choose only football")
    return chosen


def _build_worlds(options: SimulatorOptions, clock: Clock, record: Record) -> tuple[World, FootballWorld]:
    chosen = choose_kinds(options)
    cricket = tuple(kind for kind in chosen if kind not in FOOTBALL_KINDS)
    plans = plan_world(
        seed=options.seed,
        matches=len(cricket),
        kinds=cricket,
        files=options.files,
        ball_gap=options.ball_gap,
    )
    games = plan_football(options.seed, [kind for kind in chosen if kind in FOOTBALL_KINDS])
    now = clock.now()
    world = World(plans, started_at=now, speed=options.speed, record=record)
    football = FootballWorld(games, started_at=now, speed=options.speed, record=record)
    world.advance(now)
    football.advance(now)
    return world, football


async def _listen(server: SimulatorServer[Any], host: str, port: int) -> int:
    try:
        return await server.start(host, port)
    except OSError as error:
        raise UsageError(f"port {port} of {host} cannot be used: {error.strerror}") from error


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _tick(worlds: Iterable[Timeline[Any, Any]], clock: Clock) -> None:
    """Publish what is due even without requests, so that the truth log stays current."""
    while True:
        for world in worlds:
            world.advance(clock.now())
        await asyncio.sleep(_TICK_SECONDS)
