"""The supervisor process: `longstop up` keeps a scraper and an API alive."""

import asyncio
import signal
import sys
from collections.abc import Mapping

from longstop.app.common import make_bus
from longstop.clock import SystemClock
from longstop.settings import Settings
from longstop.sources.registry import enabled_sources
from longstop.supervision.backoff import RestartPolicy
from longstop.supervision.parent import watch_parent_if_any
from longstop.supervision.supervisor import ChildSpec, Supervisor

#: In this order they are asked to stop: first nothing new comes in, then nobody asks any more.
CHILDREN = ("scraper", "api")


async def run_up(settings: Settings, environ: Mapping[str, str]) -> None:
    """Run the children until SIGTERM or SIGINT."""
    # A child that cannot start would be started again and again; a mistake in the settings is better said once.
    enabled_sources(settings.sources)
    watch_parent_if_any(environ)
    clock = SystemClock()
    env = {**environ, "LONGSTOP_DATA": str(settings.data)}
    children = [ChildSpec(name=name, argv=(sys.executable, "-m", "longstop", name), env=env) for name in CHILDREN]
    policy = RestartPolicy(settled_after=settings.supervision.settled_after)
    supervisor = Supervisor(children, bus=make_bus("up", settings, clock), clock=clock, policy=policy)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, supervisor.stop)
    await supervisor.run()
