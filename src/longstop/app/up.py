"""The supervisor process: `longstop up` keeps a scraper and an API alive."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import NoReturn

from longstop.app.common import STOP_SIGNALS, leave, make_bus
from longstop.app.goodbye import close_beat
from longstop.clock import Clock, SystemClock
from longstop.errors import SettingsError
from longstop.process.cgroups import create_group, memory_limit
from longstop.process.orphans import OrphanSweep
from longstop.settings import Memory, Settings
from longstop.sources.registry import check_sources
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.ops import SqliteAudit
from longstop.supervision.audit import RecoveryAudit, RecoveryObserver
from longstop.supervision.child_runner import ChildSpec, protect_from_oom_killer
from longstop.supervision.event_loop import LoopWatch
from longstop.supervision.exits import Exit, RestartBackoff
from longstop.supervision.heartbeat import HeartbeatMonitor
from longstop.supervision.memory_watch import MEGABYTE, MemoryLimits, MemoryMonitor, within_container
from longstop.supervision.pipes import watch_parent_if_any
from longstop.supervision.supervisor import Loop, Supervisor
from longstop.telemetry.bus import Bus, Sink
from longstop.telemetry.health_sinks import ExhaustionReporter, ExhaustionSink
from longstop.telemetry.webhook import WebhookSink

#: In this order they are asked to stop: first nothing new comes in, then nobody asks any more.
CHILDREN = ("scraper", "api")
#: What the children have of the time to stop; the rest is for our own last words.
CHILDREN_SHARE = 0.8
#: What is told and written when they are gone: what came of a last sweep (2 s), and the last alerts (2.5 s).
LAST_WORDS_SECONDS = 5.5


async def run_up(settings: Settings, environ: Mapping[str, str]) -> NoReturn:
    """Run the children until SIGTERM or SIGINT; a second one kills them. Ends the process; its exit code says why."""
    # A child that cannot start would be restarted forever: report a wrong setting once, and exit.
    check_sources(settings.sources)
    limits = memory_limits(settings.scraper.resources.memory)
    clock = SystemClock()
    directory = DataDirectory.open(settings.data)
    with directory.lock("supervisor"):
        watch_parent_if_any(environ)
        protect_from_oom_killer()
        store = SqliteAudit(directory.ops_db)
        audit = RecoveryAudit(store, process="up", clock=clock)
        observer, exhaustion = RecoveryObserver(audit, clock), ExhaustionSink(clock)
        telling = _telling(settings, directory, clock, observer, exhaustion)
        async with aclosing(store), telling as bus, audit.writing(bus):
            supervisor = _supervisor(settings, environ, directory, bus, clock, audit)
            loop = asyncio.get_running_loop()
            for number in STOP_SIGNALS:
                loop.add_signal_handler(number, supervisor.stop)
            orphans = OrphanSweep(supervisor.own_pids, bus, data=settings.data, node=directory.node_id)
            stop_within = settings.supervision.stop_within
            weighing = MemoryMonitor(supervisor.runners, limits, bus=bus, stop_within=stop_within)
            patience = settings.supervision.standstill_after
            listening = HeartbeatMonitor(supervisor.runners, patience=patience, bus=bus, clock=clock)
            loops: list[Loop] = [
                ("sweep for orphans", orphans.run),
                ("weigh processes", weighing.run),
                ("listen to beats", listening.run),
                ("watch the event loop", LoopWatch(bus, clock.monotonic).run),
                ("audit", observer.run),
                ("report exhaustion", partial(ExhaustionReporter(bus).run, exhaustion)),
            ]
            ended = await supervisor.run(loops)
            _limit_last_words(loop)
            # In a thread: a disk that hangs must not keep the loop from leaving in time.
            await asyncio.to_thread(asyncio.run, close_beat(directory, bus))
            await orphans.sweep()
            await observer.finish()
    leave(ended)


def _limit_last_words(loop: asyncio.AbstractEventLoop) -> None:
    """Let nothing delay the end any more: neither a disk that hangs, nor whoever asks again."""
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, leave, Exit.FORCED)
    loop.call_later(LAST_WORDS_SECONDS, leave, Exit.FORCED)


def memory_limits(memory: Memory) -> MemoryLimits:
    """Return the limits that count here: the operator's, or the container's where that is smaller."""
    if memory.hard_limit_mb <= memory.soft_limit_mb:
        raise SettingsError(
            f"MEMORY_HARD_LIMIT_MB is {memory.hard_limit_mb}: write more than"
            f" MEMORY_SOFT_LIMIT_MB, which is {memory.soft_limit_mb}"
        )
    wanted = MemoryLimits(soft_bytes=memory.soft_limit_mb * MEGABYTE, hard_bytes=memory.hard_limit_mb * MEGABYTE)
    return within_container(wanted, memory_limit())


@asynccontextmanager
async def _telling(settings: Settings, directory: DataDirectory, clock: Clock, *listeners: Sink) -> AsyncIterator[Bus]:
    """Give what the supervisor speaks through: its log, those who listen, and the webhook if there is one."""
    hook = settings.scraper.monitoring.webhook
    if not hook.url:
        yield make_bus("up", settings, clock, *listeners)
        return
    webhook = WebhookSink(hook.url, hook.secret.get_secret_value(), node=directory.node_id, clock=clock)
    bus = make_bus("up", settings, clock, *listeners, webhook)
    async with webhook.delivering(bus):
        yield bus


def _supervisor(
    settings: Settings,
    environ: Mapping[str, str],
    directory: DataDirectory,
    bus: Bus,
    clock: Clock,
    audit: RecoveryAudit,
) -> Supervisor:
    # Whole, so that it names one directory wherever it is read: orphans are known by it.
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
        # Named after the node, so that what a killed supervisor has left is found, ended, and used again.
        group_for=lambda name: create_group(f"longstop-{directory.node_id}-{name}"),
        audit=audit,
    )
