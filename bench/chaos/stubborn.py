"""`stubborn`: scraper and API ignore the signal to stop; with default settings all processes end in time.

They are halted, and the scraper's browser with them, so that no signal but the last one reaches anybody. Then the
supervisor is asked to stop, once.
"""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import psutil

from bench.chaos.harness import Figures
from bench.reporting import Report, rounded, say
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.supervision.exit_codes import Exit
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed, survivors
from longstop_lab.final_check import wait_until_synced

MATCHES = 2
#: What is promised, by default and with everything that belongs to it (FR-005).
GONE_WITHIN = 30.0
#: The suite gives up after this many seconds.
GIVE_UP_AFTER = 60.0


async def stubborn(*, seed: int, minutes: float) -> Report:
    """Ask once, and see how long it takes; `minutes` says nothing here."""
    with TemporaryDirectory(prefix="longstop-chaos-") as home:
        options = DeploymentOptions(
            simulate=("--matches", str(MATCHES), "--kinds", "t20", "--speed", "1", "--seed", str(seed)),
            browser=BrowserKind.SHELL,
            keep=Path(home) / "data",
            settings={},
        )
        async with deployed(options) as deployment:
            await wait_until_synced(deployment, since=monotonic())
            figures = await _ask_to_stop(deployment)
        orphans = survivors(deployment.data)
    figures |= {"seed": seed, "orphans": orphans}
    return Report(suite="chaos stubborn", is_ok=is_gone_in_time(figures), figures=figures)


def is_gone_in_time(figures: Figures) -> bool:
    """Return whether all were killed in time and none is left."""
    seconds = figures["gone_s"]
    is_in_time = seconds is not None and seconds <= GONE_WITHIN
    return is_in_time and figures["exit_code"] == Exit.FORCED and not (figures["left"] or figures["orphans"])


async def _ask_to_stop(deployment: Deployment) -> Figures:
    family = psutil.Process(deployment.up_pid).children(recursive=True)
    for each in family:
        each.send_signal(signal.SIGSTOP)
    say(f"{len(family)} processes are halted; the supervisor is asked to stop")
    began, seconds, exit_code = monotonic(), None, None
    os.kill(deployment.up_pid, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(GIVE_UP_AFTER):
            exit_code = await deployment.wait()
            seconds = monotonic() - began
    left = sum(each.is_running() for each in family)
    return {"halted": len(family), "gone_s": rounded(seconds, 1), "exit_code": exit_code, "left": left}
