"""The supervisor process: `longstop up` keeps a scraper and an API alive."""

import asyncio
import sys
from collections.abc import Mapping
from contextlib import aclosing, nullcontext, suppress
from functools import partial
from typing import NoReturn

from msgspec.structs import replace

from longstop.app.complete_files import WITHIN_SECONDS, completing_files
from longstop.app.process_lifetime import STOP_SIGNALS, exit_now, raise_descriptor_limit
from longstop.app.sinks import make_bus, make_webhook
from longstop.clock import Clock, SystemClock
from longstop.doctor.holders import listener_on
from longstop.errors import DataDirectoryInUse, SettingsError, StorageError, UsageError
from longstop.process.cgroup_limits_and_kill import create_group, memory_limit
from longstop.process.orphan_sweeps import OrphanSweep
from longstop.settings import Memory, Settings
from longstop.sources.load_sources import check_sources
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.connection import check_readable
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader, SqliteHotWriter
from longstop.storage.sqlite.load_sql_and_migrate import Database
from longstop.storage.sqlite.operations_tables import SqliteAudit, check_operations
from longstop.supervision.event_loop_and_clock_watch import LoopWatch
from longstop.supervision.exit_codes import Exit
from longstop.supervision.heartbeat_watch import HeartbeatMonitor
from longstop.supervision.lifeline_and_heartbeat_pipes import watch_parent
from longstop.supervision.memory_watch import MEGABYTE, MemoryLimits, MemoryMonitor, within_container
from longstop.supervision.recovery_audit import RecoveryAudit, RecoveryObserver
from longstop.supervision.restart_backoff import RestartBackoff
from longstop.supervision.supervised_child import ChildSpec, protect_from_oom_killer
from longstop.supervision.supervisor import Loop, Supervisor
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import HotViewFailed
from longstop.telemetry.health_sinks import ExhaustionReporter, ExhaustionSink

#: They stop in this order: first no new data arrives, then no requests are served.
CHILDREN = ("scraper", "api")
#: The children's share of the time to stop: of 30 s, the cleanup below fits into the rest.
CHILDREN_SHARE = 0.65
#: Time limit of the cleanup after the children stopped: the last sweep (2 s), the last alerts (2.5 s), the close of
#: `ops.db` (1 s), and the completion of the databases.
CLEANUP_SECONDS = 5.5 + WITHIN_SECONDS


async def run_up(settings: Settings, environ: Mapping[str, str]) -> NoReturn:
    """Run the children until SIGTERM or SIGINT; a second signal kills them. Exits with the code of the reason."""
    # A child that cannot start would be restarted forever: report a wrong setting or a bad file once, and exit.
    check_sources(settings.sources)
    _check_port(settings)
    limits = memory_limits(settings.scraper.resources.memory)
    clock = SystemClock()
    directory = DataDirectory.open(settings.data)
    with directory.lock("supervisor"):
        check_readable(directory.matches_db, Database.MATCHES)
        check_operations(directory.ops_db)
        raise_descriptor_limit()
        watch_parent(environ)
        protect_from_oom_killer()
        store = SqliteAudit(directory.ops_db)
        audit = RecoveryAudit(store, process="up", clock=clock)
        observer, exhaustion = RecoveryObserver(audit), ExhaustionSink(clock)
        webhook = make_webhook(settings, directory.node_id, clock)
        bus = make_bus("up", settings, clock, observer, exhaustion, *([webhook] if webhook else []))
        alerts = webhook.delivering(bus) if webhook else nullcontext()
        # Last, when no process of ours reads the files any more.
        complete = completing_files(directory, bus, is_locked=False)
        async with complete, aclosing(store), alerts, audit.writing(bus):
            supervisor = _supervisor(settings, environ, directory, bus, clock, audit)
            loop = asyncio.get_running_loop()
            for number in STOP_SIGNALS:
                loop.add_signal_handler(number, supervisor.stop)
            orphans = OrphanSweep(supervisor.own_pids, bus, data=settings.data, node=directory.node_id)
            stop_within = settings.supervision.stop_within
            memory = MemoryMonitor(supervisor.runners, limits, bus=bus, stop_within=stop_within)
            patience = settings.supervision.standstill_after
            heartbeats = HeartbeatMonitor(supervisor.runners, patience=patience, bus=bus, clock=clock)
            loops: list[Loop] = [
                ("sweep for orphans", orphans.run),
                ("measure memory", memory.run),
                ("read heartbeats", heartbeats.run),
                ("watch the event loop", LoopWatch(bus, clock.monotonic).run),
                ("audit", observer.run),
                ("report exhaustion", partial(ExhaustionReporter(bus).run, exhaustion)),
            ]
            ended = await supervisor.run(loops)
            _limit_cleanup(loop)
            # In a thread: a hung disk must not block the loop.
            await asyncio.to_thread(asyncio.run, close_heartbeat(directory, bus))
            await orphans.sweep()
            await observer.finish()
    exit_now(ended)


def _check_port(settings: Settings) -> None:
    """Raise if another program listens on the API's port. One that a killed supervisor left behind is ended later."""
    host, port = settings.api.host, settings.api.port
    holder = listener_on(host, port)
    if holder and holder.pid and holder.data != settings.data.resolve():
        raise UsageError(f"port {port} is taken by {holder}: stop it, or choose another port with LONGSTOP_API_PORT")


def _limit_cleanup(loop: asyncio.AbstractEventLoop) -> None:
    """Exit at the next signal or after the time limit, even when a disk hangs."""
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, exit_now, Exit.FORCED)
    loop.call_later(CLEANUP_SECONDS, exit_now, Exit.FORCED)


async def close_heartbeat(directory: DataDirectory, bus: Bus) -> None:
    """Mark the scraper's last heartbeat as final. The scraper did not know whether it would be restarted."""

    def report(error: StorageError) -> None:
        bus.emit(HotViewFailed(error_message=str(error)))

    try:
        # If the lock is taken, an operator started a scraper, which sends heartbeats of its own.
        with suppress(DataDirectoryInUse), directory.lock():
            async with aclosing(SqliteHotReader(directory.hot_db)) as reader:
                beats = [beat for beat in await reader.beats() if beat.node == directory.node_id]
            for beat in beats:
                async with aclosing(SqliteHotWriter(directory.hot_db, on_failure=report)) as hot:
                    hot.beat(replace(beat, is_over=True))
    except StorageError as error:
        report(error)


def memory_limits(memory: Memory) -> MemoryLimits:
    """Return the limits in effect: the operator's, or the container's if that is lower."""
    if memory.hard_limit_mb <= memory.soft_limit_mb:
        raise SettingsError(
            f"MEMORY_HARD_LIMIT_MB is {memory.hard_limit_mb}: set it higher than"
            f" MEMORY_SOFT_LIMIT_MB, which is {memory.soft_limit_mb}"
        )
    wanted = MemoryLimits(soft_bytes=memory.soft_limit_mb * MEGABYTE, hard_bytes=memory.hard_limit_mb * MEGABYTE)
    return within_container(wanted, memory_limit())


def _supervisor(
    settings: Settings,
    environ: Mapping[str, str],
    directory: DataDirectory,
    bus: Bus,
    clock: Clock,
    audit: RecoveryAudit,
) -> Supervisor:
    # Absolute: orphan processes are recognised by this variable.
    env = {**environ, "LONGSTOP_DATA": str(settings.data.absolute())}
    children = [
        ChildSpec(name=name, argv=(sys.executable, "-m", "longstop", name), env=env, is_beating=True)
        for name in CHILDREN
    ]
    return Supervisor(
        children,
        bus=bus,
        clock=clock,
        backoff=RestartBackoff(settled_after=settings.supervision.settled_after),
        stop_within=settings.supervision.stop_within * CHILDREN_SHARE,
        # Named after the node, so that the next supervisor finds what a killed one left behind.
        group_for=lambda name: create_group(f"longstop-{directory.node_id}-{name}"),
        audit=audit,
    )
