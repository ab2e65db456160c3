"""`network`: outages, latency, errors, bans, CAPTCHAs and stale copies on the way to a site with twenty matches.

Nothing may be lost, duplicated or invented; every match is fresh again after every outage; and a site that sent
Retry-After gets no requests.
"""

from datetime import datetime

from bench.chaos.fault_schedule import Action
from bench.chaos.harness import (
    COMPRESSED,
    COMPRESSED_INTERVAL,
    Figures,
    Plan,
    inject,
    is_whole,
    run_schedule,
    run_suite,
)
from bench.chaos.needed_requests import requests_to_follow
from bench.chaos.network_faults import network_faults, until_return
from bench.chaos.poll_gaps import sampled_gaps
from bench.chaos.recovery import Recoveries, are_all_fresh
from bench.chaos.request_timeline import Timeline, bans
from bench.reporting import Report, rounded, say
from longstop.clock import SystemClock
from longstop_lab.deployment import Deployment
from longstop_lab.simulator.truth import read_truth

MATCHES = 20
SPEED = 40.0
#: No match in play may go unread for longer.
GAP_LIMIT = 60.0


async def network(*, seed: int, minutes: float) -> Report:
    plan = Plan(seed=seed, seconds=minutes * 60, matches=MATCHES, speed=SPEED, settings=COMPRESSED)
    actions = network_faults(seed, plan.seconds)
    figures, details = await run_suite(plan, lambda run: run_acts(run.deployment, actions, plan.seconds))
    is_kept = figures["gap_max_s"] <= GAP_LIMIT and not figures["never_recovered"]
    is_ok = is_whole(figures) and is_kept and not figures["requests_during_ban"]
    return Report(suite="chaos network", is_ok=is_ok, figures=figures, details=details)


async def run_acts(deployment: Deployment, actions: tuple[Action, ...], seconds: float) -> Figures:
    """Run the actions, and return what a consumer and the site observed."""
    recoveries, timeline = Recoveries(deployment, are_all_fresh), Timeline(deployment)

    async def do(action: Action) -> None:
        if action.fault is None:
            return
        until = await inject(deployment, action.fault)
        say(f"{action.fault.kind} on {action.fault.path} for {action.fault.valid_seconds} s")
        if action.is_cut:
            recoveries.begin(until)

    await timeline.begin()
    began = SystemClock().now()
    async with sampled_gaps(deployment) as gaps:
        await run_schedule(actions, seconds, do)
        await deployment.simulator.delete("/_sim/faults")
        await recoveries.all_done()
    await timeline.follow()
    return {
        "cuts": recoveries.count,
        **gaps.figures(),
        **recoveries.figures(),
        **_cost(deployment, timeline, began, actions),
    }


def _cost(deployment: Deployment, timeline: Timeline, began: datetime, actions: tuple[Action, ...]) -> Figures:
    """Return the cost in requests; a perfect client sends none during an outage."""
    elapsed = (SystemClock().now() - began).total_seconds()
    needed = requests_to_follow(
        read_truth(deployment.truth),
        began=began,
        seconds=elapsed,
        pace=lambda _match, after: max(COMPRESSED_INTERVAL, until_return(actions, after)),
    )
    banned = bans(timeline.notes)
    return {
        "bans": banned.count,
        "requests_in_flight": banned.in_flight,
        "requests_during_ban": banned.during,
        "requests": len(timeline.notes),
        "amplification": rounded(len(timeline.notes) / needed, 2),
    }
