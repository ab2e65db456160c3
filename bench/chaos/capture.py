"""`capture`: random kills and faults while twenty matches run; nothing is lost, duplicated or invented."""

from contextlib import suppress
from datetime import datetime

import psutil

from bench.chaos.fault_schedule import Action, schedule
from bench.chaos.harness import ChaosRun, Figures, Plan, inject, is_whole, run_schedule, run_suite
from bench.chaos.needed_requests import requests_needed
from bench.chaos.recovery import Recoveries, is_any_fresh
from bench.reporting import Report, rounded, say
from longstop.clock import SystemClock
from longstop_lab.deployment import Deployment
from longstop_lab.simulator.truth import read_truth

MATCHES = 20
SPEED = 40.0
INTERVAL = 0.5
MEGABYTE = 1_000_000

_SETTINGS = {
    "POLLING_INTERVAL_SECONDS": str(INTERVAL),
    "DISCOVERY_INTERVAL_SECONDS": str(INTERVAL),
    "FETCH_TIMEOUT_SECONDS": "2",
    # The scraper is killed every few seconds on purpose: restart it without a delay.
    "LONGSTOP_SETTLED_SECONDS": "0",
    # Pauses outlive the scraper: short ones, or the end of a circuit would be measured instead of a recovery.
    "CIRCUIT_BREAKER_SOURCE_SECONDS": "5",
    "COOL_DOWN_SECONDS": "5",
    "LAYOUT_PROBE_SECONDS": "5",
}


async def capture(*, seed: int, minutes: float) -> Report:
    plan = Plan(seed=seed, seconds=minutes * 60, matches=MATCHES, speed=SPEED, settings=_SETTINGS)
    figures, details = await run_suite(plan, lambda run: _break_things(run, plan))
    is_ok = is_whole(figures) and not figures["never_recovered"]
    return Report(suite="chaos capture", is_ok=is_ok, figures=figures, details=details)


async def _break_things(run: ChaosRun, plan: Plan) -> Figures:
    deployment, recoveries = run.deployment, Recoveries(run.deployment, is_any_fresh)
    peak_rss = 0

    async def do(action: Action) -> None:
        nonlocal peak_rss
        peak_rss = max(peak_rss, deployment.rss_bytes())
        if action.kill is not None:
            _kill(deployment, action.kill, recoveries)
        if action.fault is not None:
            await inject(deployment, action.fault)

    await run_schedule(schedule(plan.seed, plan.seconds), plan.seconds, do)
    await deployment.simulator.delete("/_sim/faults")
    await recoveries.all_done()
    return {
        "kills": recoveries.count,
        **recoveries.figures(),
        **await _cost(deployment, run.began),
        "rss_mb": round(peak_rss / MEGABYTE, 1),
    }


async def _cost(deployment: Deployment, began: datetime) -> Figures:
    elapsed = (SystemClock().now() - began).total_seconds()
    sent = sum((await deployment.simulator.get("/_sim/status")).body["requests"].values())
    needed = requests_needed(read_truth(deployment.truth), began=began, seconds=elapsed, interval=INTERVAL)
    return {"requests": sent, "amplification": rounded(sent / needed, 2)}


def _kill(deployment: Deployment, verb: str, recoveries: Recoveries) -> None:
    process = deployment.process(verb)
    if process is None:
        return
    with suppress(psutil.NoSuchProcess):
        process.kill()
        recoveries.begin()
        say(f"killed the {verb}")
