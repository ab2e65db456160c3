"""Everything that the golden tests use of Longstop; no other file here imports it."""

import asyncio
import importlib
import io
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import msgspec
import typer
from fastapi import FastAPI
from msgspec import Struct
from msgspec.structs import replace

import longstop
from longstop.api.health_cache_and_pollers import HealthCache
from longstop.api.server import Stores, build_app
from longstop.api.tokens import Permission, Secret, issue_token
from longstop.cli.health_errors_recoveries import UNKNOWN, exit_code
from longstop.cli.main import command_line as the_command_line
from longstop.cli.operator_commands import EXIT_CODES
from longstop.clock import Moment
from longstop.errors import PageNotFound, StorageError
from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.browser_policy_and_stats import BrowserStats
from longstop.matches.live_match_and_feeds import LiveMatches
from longstop.matches.pipeline import Pipeline
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.matches.trust import Trust
from longstop.model.command_and_standing_order import CommandKind, CommandState, Refusal, Reply, StandingKind
from longstop.model.episode import Episode, EpisodeChange, ErrorSeen, ErrorType, Resolution, ResolutionMethod
from longstop.model.match import MatchRef
from longstop.model.polling_status import SyncState
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.model.scraper_report import BreakerNote, MatchCost, NodeBeat, ProcessResources, Rates, Usage
from longstop.settings import leaves
from longstop.sources.load_sources import load_sources, make_source
from longstop.sports.registry import sport_named
from longstop.storage.base import CommandStore, HealthRow
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader, SqliteHotWriter
from longstop.storage.sqlite.matches import SqliteMatchReader, SqliteMatchStore
from longstop.storage.sqlite.operations_tables import (
    SqliteAudit,
    SqliteCommands,
    SqliteErrors,
    SqliteHealthLog,
    open_operations,
)
from longstop.supervision.exit_codes import Exit
from longstop.supervision.health_grade_and_recovery import Grade
from longstop.supervision.health_verdict import HealthStatus, HealthVerdict
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Severity, Telemetry
from longstop.telemetry.events.matches import MatchClaimed, PollFailed, PollSucceeded, UpdateStored
from longstop.telemetry.events.sources import ListingFailed, RequestRetried
from longstop.telemetry.log import LogSink
from longstop.telemetry.metrics import Metrics, ScraperState
from longstop.testing import ScriptedFetcher
from longstop.watching.feed_polling import FeedWatch, WatchContext
from longstop_lab.simulator.cricket.mistakes import with_mistakes
from longstop_lab.simulator.cricket.script import LIVE_PACE, narrate
from longstop_lab.simulator.cricket.world import PlannedMatch, World, play
from longstop_lab.simulator.football.generate import play_football
from longstop_lab.simulator.football.script import script_football
from longstop_lab.simulator.football.world import FootballWorld, PlannedFootball
from longstop_lab.simulator.http import Request
from longstop_lab.simulator.sites.crex.site import CrexSite
from longstop_lab.simulator.sites.espncricinfo.ids import match_number
from longstop_lab.simulator.sites.espncricinfo.site import EspncricinfoSite
from longstop_lab.simulator.sites.sofascore.site import SofascoreSite
from longstop_lab.simulator.timeline import Timeline, forget
from tests.readers import ManualClock, a_record

START = datetime(2026, 3, 7, 14, 0, tzinfo=UTC)
#: World seconds from the start of the simulator to the kick-off of its football match.
KICK_OFF = 8000.0
NODE = "node-golden"
SOURCES = Path(__file__).parents[2] / "config" / "sources.yaml"
#: Polls of one moment: a correction that waits for its confirmation is stored by the last of them. What is stored then
#: depends on what the site shows at these moments, and not on how many polls a pipeline needs.
POLLS_OF_A_MOMENT = 3
SECRET = Secret(b"g" * 32)


# --- matches ---------------------------------------------------------------------------------------------------------


class Plan(Struct, frozen=True, kw_only=True):
    """Which match of the simulator is polled, and how closely."""

    source: str
    seed: int
    index: int
    #: The most overs of a cricket innings.
    overs: int = 20
    #: The share of events that the site first publishes wrong.
    mistakes: float = 0.05
    #: The number of changes between two polls.
    every: int = 1
    #: The part of the match that is polled, as shares of its changes.
    since: float = 0.0
    until: float = 1.0


def rest_of(plan: Plan) -> Plan:
    """Return what a plan omits at the end."""
    return replace(plan, since=plan.until, until=1.0)


def whole_of(plan: Plan) -> Plan:
    return replace(plan, since=0.0, until=1.0)


class _Simulated(Struct, frozen=True, kw_only=True):
    """A match, its site, and the world seconds at which it changes."""

    source_id: str
    world: Timeline[Any, Any]
    site: CrexSite | EspncricinfoSite | SofascoreSite
    steps: Sequence[float]

    def answer(self, request: FetchRequest) -> bytes | PageNotFound:
        address = urlsplit(request.url)
        query = dict(parse_qsl(address.query))
        asked = Request(method=request.method, path=address.path, query=query, body=request.body or b"")
        answered = self.site.answer(asked)
        return PageNotFound("404") if answered.status == 404 else answered.body


async def poll(directory: Path, plan: Plan) -> datetime:
    """Poll a match from its start into a data directory; return the moment of the last poll."""
    match, clock = _simulate(plan), ManualClock(START)
    data = DataDirectory.open(directory)
    store = await SqliteMatchStore.open(data.matches_db)
    try:
        async with aclosing(SqliteHotWriter(data.hot_db, on_failure=_fail)) as hot:
            config = next(each for each in load_sources(SOURCES) if each.domain_id == plan.source)
            source = make_source(config)
            client = SourceClient(source, ScriptedFetcher(match.answer))
            sport = sport_named(source.sport)
            pipeline = Pipeline(sport, client=client, store=store, bus=Bus(), clock=clock, scraper_id=NODE)
            ref = MatchRef(plan.source, match.source_id)
            row = await store.register(ref, str(ref), None, clock.now(), sport=source.sport)
            matches = LiveMatches(store, NODE)
            live = await matches.take(row.match_id)
            context = WatchContext(pipeline=pipeline, matches=matches, hot=hot, bus=Bus(), clock=clock)
            feed = await live.join(ref, pipeline)
            feed.trust = Trust(is_known=True)  # which match it is counts as confirmed
            watch = FeedWatch(live, feed, context)
            for at in _moments(match, plan):
                match.world.advance_to(at)
                for nth in range(POLLS_OF_A_MOMENT):
                    clock.moment = START + timedelta(seconds=at + nth)
                    await watch.poll()
                    assert watch.record.last_error is None, watch.record.last_error
            assert watch.record.sync is SyncState.IN_SYNC
    finally:
        await store.aclose()
    return clock.now()


def _moments(match: _Simulated, plan: Plan) -> list[float]:
    """Return the world seconds at which to poll; the last ones are after the end, if the plan goes so far."""
    count = len(match.steps)
    chosen = list(match.steps[int(plan.since * count) : int(plan.until * count) : plan.every])
    return [*chosen, *(match.steps[-1] + later for later in (10, 60, 400))] if plan.until == 1.0 else chosen


def _simulate(plan: Plan) -> _Simulated:
    return _football(plan) if plan.source == "sofascore" else _cricket(plan)


def _cricket(plan: Plan) -> _Simulated:
    whole = play("t20", plan.seed, plan.index)
    game = replace(whole, innings=tuple(replace(each, overs=each.overs[: plan.overs]) for each in whole.innings))
    dice = Random(f"golden {plan.seed} {plan.index}")
    script = with_mistakes(narrate(game, LIVE_PACE, dice), dice, plan.mistakes)
    planned = PlannedMatch(game=game, script=script, starts_at=0.0)
    world = World([planned], started_at=START, speed=1.0, record=forget)
    steps = [step.at for step in script]
    if plan.source == "crex":
        return _Simulated(source_id=game.key, world=world, site=CrexSite(world), steps=steps)
    site = EspncricinfoSite(world, ManualClock(START))
    return _Simulated(source_id=str(match_number(game.key)), world=world, site=site, steps=steps)


def _football(plan: Plan) -> _Simulated:
    match = play_football(plan.seed, plan.index, is_cup=True)
    script = script_football(match, plan.seed, plan.mistakes)
    planned = PlannedFootball(match=match, script=script, starts_at=KICK_OFF)
    world = FootballWorld([planned], started_at=START, speed=1.0, record=forget)
    steps = [KICK_OFF + step.at for step in script]
    return _Simulated(source_id=match.key, world=world, site=SofascoreSite(world), steps=steps)


# --- data directories ------------------------------------------------------------------------------------------------


def name_node(directory: Path) -> None:
    """Give a new data directory a node id that does not depend on the machine."""
    directory.mkdir(mode=0o700)
    (directory / "node-id").write_text(NODE)


def operate(directory: Path, now: datetime, ref: str) -> None:
    """Write what a scraper writes beside its matches: errors, recoveries, health, commands, its beat.

    `ref` is the match with the number 1, as its source calls it.
    """
    data, clock = DataDirectory.open(directory), ManualClock(now)
    asyncio.run(_operate(data, clock, ref))


async def _operate(data: DataDirectory, clock: ManualClock, ref: str) -> None:
    now = clock.now()
    async with aclosing(open_operations(data.ops_db, clock)) as ops:
        await ops.errors.write(dict(_episodes(now, ref)))
        await ops.audit.write(_recoveries(now, ref))
        await ops.health_log.write(_health(now, ref))
        await _command(ops.commands)
    async with aclosing(SqliteHotWriter(data.hot_db, on_failure=_fail)) as hot:
        hot.beat(_beat(now))


async def migrate(directory: Path) -> None:
    """Open every file of a data directory as its writers do, which brings it to the present schema."""
    data = DataDirectory.open(directory)
    store = await SqliteMatchStore.open(data.matches_db)
    await store.aclose()
    async with aclosing(SqliteErrors(data.ops_db)) as errors:
        await errors.open_episodes()
    await SqliteHotWriter(data.hot_db, on_failure=_fail).aclose()


def _fail(error: StorageError) -> None:
    raise error


def _episodes(now: datetime, ref: str) -> Iterator[tuple[Episode, EpisodeChange]]:
    for minutes, resolution in ((50, Resolution(at=now, method=ResolutionMethod.AUTO_RETRY)), (20, None)):
        error = ErrorSeen(
            episode=Episode(ref, f"signature {minutes}"),
            scraper_id=NODE,
            match_id=1,
            timestamp=now - timedelta(minutes=minutes),
            error_type=ErrorType.NETWORK,
            error_class="FetchTimeout",
            error_message="no answer within 10 s",
            source="crex",
            operation="poll",
            url="https://crex.test/api",
            retry_attempt=2,
            snapshot="storage/error_pages/page.json",
        )
        change = EpisodeChange(error=error, count=3, last_seen=now - timedelta(minutes=10), resolution=resolution)
        yield error.episode, change


def _recoveries(now: datetime, ref: str) -> list[Recovery]:
    begun = Recovery(
        id="recovery-1",
        kind=RecoveryKind.WATCH_RESTART,
        trigger="no data for 300 s",
        subject=ref,
        process="scraper",
        began_at=now - timedelta(minutes=30),
        pids_before=(11, 12),
    )
    ended = replace(begun, outcome=RecoveryOutcome.RECOVERED, observed="data again", duration_seconds=2.5)
    return [replace(ended, pids_after=(11, 13)), replace(begun, id="recovery-2", kind=RecoveryKind.RESTART)]


def _health(now: datetime, ref: str) -> list[HealthRow]:
    at = now - timedelta(minutes=5)
    node = HealthRow(
        scraper_id=NODE,
        timestamp=at,
        health_status=Grade.HEALTHY.value,
        error_count=1,
        memory_mb=64.5,
        cpu_percent=12.5,
        update_latency_ms=120,
        uptime_seconds=3600.0,
        last_update_age_seconds=1.5,
    )
    match = HealthRow(
        scraper_id=NODE,
        timestamp=at,
        health_status=Grade.DEGRADED.value,
        error_count=2,
        match_id=1,
        ref=ref,
        polling_interval_seconds=2.5,
        last_update_age_seconds=70.5,
    )
    return [node, match]


async def _command(commands: CommandStore) -> None:
    """Queue a few commands and answer all of them: a waiting one would expire later."""
    done = Reply(state=CommandState.DONE, answer="crex is paused")
    refused = Reply(state=CommandState.REFUSED, answer="no such match", refusal=Refusal.NOT_KNOWN)
    asked = ((CommandKind.PAUSE_SOURCE, "crex", done), (CommandKind.UNWATCH, "crex_9", refused))
    for kind, argument, reply in asked:
        await commands.place(kind, argument, "cli: operator")
        for command in await commands.take(1):
            await commands.answer(command, reply)
    await commands.put_order(StandingKind.PAUSED_SOURCE, "crex", "cli: operator")


def _beat(now: datetime) -> NodeBeat:
    """Return a beat in which every field that may be absent is there."""
    return NodeBeat(
        node=NODE,
        pid=11,
        started_at=now - timedelta(hours=1),
        beat_at=now,
        uptime_seconds=3600.0,
        rss_bytes=64_000_000,
        errors_last_minute=1,
        listed_at={"crex": now, "espncricinfo": None},
        unlisted_seconds={"crex": 0.0, "espncricinfo": 9.5},
        graded_at=now - timedelta(hours=1),
        loop_lag_seconds=0.01,
        resources=ProcessResources(
            pids=(11, 12),
            rss_bytes=64_000_000,
            pss_bytes=60_000_000,
            peak_rss_bytes=70_000_000,
            cpu_percent=12.5,
            own_pss_bytes=50_000_000,
            own_cpu_percent=10.5,
        ),
        rates=Rates(
            errors_last_minute=1,
            errors_last_hour=2,
            polls_last_minute=24,
            updates_last_minute=3,
            average_latency_ms=110.5,
            p95_latency_ms=180.5,
            last_success_at=now,
            last_success_seconds=0.5,
        ),
        waiting=1,
        looking=2,
        breakers=(
            BreakerNote(
                scope="target",
                subject="crex.test",
                state="open",
                since=now - timedelta(minutes=1),
                until=now + timedelta(minutes=1),
                left_seconds=60.0,
                reason="timeouts",
            ),
        ),
        paused_sources=("crex",),
        costs={1: MatchCost(pss_bytes=1_000_000, cpu_percent=0.5)},
    )


# --- the API ---------------------------------------------------------------------------------------------------------


def openapi() -> dict[str, Any]:
    nowhere = Path("/nonexistent")
    app, _, _ = _api(nowhere / "matches.db", nowhere / "hot.db", nowhere / "ops.db", ManualClock(START))
    return app.openapi()


@asynccontextmanager
async def client(directory: Path, now: datetime) -> AsyncIterator[httpx.AsyncClient]:
    """Send requests to the API of a data directory at one moment, without a socket."""
    clock, data = ManualClock(now), DataDirectory.open(directory)
    app, health_cache, close = _api(data.matches_db, data.hot_db, data.ops_db, clock)
    await health_cache.poll()
    both, ttl = [Permission.READ, Permission.ADMIN], timedelta(hours=1)
    token = issue_token(SECRET, subject="golden", permissions=both, ttl=ttl, now=now)
    headers, transport = {"Authorization": f"Bearer {token}"}, httpx.ASGITransport(app=app)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(close)
        yield await stack.enter_async_context(
            httpx.AsyncClient(transport=transport, base_url="http://api.test", headers=headers)
        )


def _api(
    matches: Path, hot_view: Path, ops: Path, clock: ManualClock
) -> tuple[FastAPI, HealthCache, Callable[[], Awaitable[None]]]:
    audit, commands, health_log = SqliteAudit(ops), SqliteCommands(ops, clock), SqliteHealthLog(ops)
    stores = Stores(
        matches=SqliteMatchReader(matches),
        hot=SqliteHotReader(hot_view),
        commands=commands,
        admin_matches=SqliteMatchReader(matches),
        large_matches=SqliteMatchReader(matches),
        health_log=health_log,
    )
    started, config = Moment.of(clock), {"polling_interval_seconds": 2.5}
    health_cache = HealthCache(
        reader=stores.matches, hot=stores.hot, audit=audit, clock=clock, started=started, config=config
    )
    app = build_app(stores, secret=SECRET, clock=clock, health=health_cache, lag=lambda: 0.01)

    async def close() -> None:
        await audit.aclose()
        await stores.aclose()

    return app, health_cache, close


# --- metrics, log, settings, command line ----------------------------------------------------------------------------


def first_metrics() -> str:
    """Return the metrics page of a scraper at start."""
    watched = ScraperState(node=NODE, records=[], waiting=[], findings=[], rss_bytes=64_000_000)
    return Metrics().page(watched, Moment(START, 0.0)).decode()


def metrics() -> str:
    """Return the metrics page of a scraper after every countable event."""
    counted, ref, now = Metrics(), "crex_M1", Moment(START, START.timestamp())
    counted.take(MatchClaimed(match_id=1, ref=ref, epoch=1))
    counted.take(UpdateStored(match_id=1, ref=ref, inserted=1, updated=0, voided=0, seq=1, latency_ms=120))
    counted.take(PollSucceeded(match_id=1, ref=ref, seconds=0.2))
    counted.take(PollFailed(match_id=1, ref=ref, error_type="FetchTimeout", error_message=""))
    counted.take(ListingFailed(source="crex", error_type="FetchTimeout", error_message=""))
    counted.take(
        RequestRetried(
            source="crex", request="", attempt=2, error_type="FetchTimeout", error_message="", wait_seconds=1.0
        )
    )
    records = [replace(a_record(), last_poll_at=START)]
    counted.sample(records, now)
    browser = BrowserStats(
        source="crex",
        age_seconds=60.0,
        pages_served=3,
        addresses=("https://crex.test/",),
        contexts=1,
        usage=Usage(processes=5, rss_bytes=900, pss_bytes=400),
    )
    watched = ScraperState(
        node=NODE,
        records=records,
        waiting=[0],
        findings=["gap"],
        rss_bytes=64_000_000,
        loop_lag_seconds=0.02,
        browsers=(browser,),
        proxy_bytes=12_000,
    )
    return counted.page(watched, now).decode()


def log_events() -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield name, severity and fields of everything that is logged, wherever it is declared."""
    for module in pkgutil.walk_packages(longstop.__path__, "longstop."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for kind in _subclasses(Telemetry):
        if kind.__module__.partition(".")[0] == "longstop" and hasattr(kind, "name"):
            yield kind.name, kind.severity.value, kind.__struct_fields__


def _subclasses(kind: type[Telemetry]) -> Iterator[type[Telemetry]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


class _Bare(Telemetry, frozen=True, kw_only=True):
    """An event without fields of its own."""

    name = "golden.bare"


def log_line() -> dict[str, Any]:
    """Return a line of the log with what every line has."""
    stream = io.StringIO()
    sink = LogSink(process="scraper", level=Severity.DEBUG, clock=ManualClock(START), stream=stream)
    sink.take(_Bare())
    line: dict[str, Any] = msgspec.json.decode(stream.getvalue())
    return line


def settings() -> dict[str, str]:
    """Return the environment variable of every setting, by its place in the file."""
    return {".".join(leaf.path): leaf.variable for leaf in leaves()}


def verbs() -> dict[str, dict[str, list[str]]]:
    """Return arguments and options of every verb."""
    group = typer.main.get_command(the_command_line())
    return {
        name: {
            "arguments": [each.metavar or each.name.upper() for each in verb.params if not _options(each)],
            "options": sorted(option for each in verb.params for option in _options(each)),
        }
        for name, verb in getattr(group, "commands", {}).items()
    }


def _options(parameter: Any) -> list[str]:
    return [each for each in (*parameter.opts, *parameter.secondary_opts) if each.startswith("-")]


def exit_codes() -> dict[str, dict[str, int]]:
    """Return the exit codes of processes, of verbs that give orders, and of `health`."""
    judged = {status.value: exit_code(HealthVerdict(status=status)) for status in HealthStatus}
    failing = exit_code(HealthVerdict(status=HealthStatus.DEGRADED, grade=Grade.FAILING))
    return {
        "processes": {each.name.lower(): each.value for each in Exit},
        "orders": {state.value: code for state, code in EXIT_CODES.items()},
        "health": judged | {"failing": failing, "unknown": UNKNOWN},
    }
