"""`network`: outages, latency, errors, bans, CAPTCHAs and stale copies on the way to a site with twenty matches.

Nothing may be lost, duplicated or invented; every match is fresh again after every outage; and a site that sent
Retry-After gets no requests.
"""

from datetime import datetime

from bench.chaos.arena import (
    COMPRESSED,
    COMPRESSED_INTERVAL,
    Figures,
    Plan,
    in_arena,
    inflict,
    is_whole,
    perform,
)
from bench.chaos.demand import requests_to_follow
from bench.chaos.episodes import episodes, until_return
from bench.chaos.gaps import sampled_gaps
from bench.chaos.recovery import Recoveries, are_all_fresh
from bench.chaos.schedule import Act
from bench.chaos.timeline import Timeline, bans
from bench.frame import Report, rounded, say
from longstop.clock import SystemClock
from longstop_lab.deployment import Deployment
from longstop_lab.simulator.truth import read_truth

MATCHES = 20
SPEED = 40.0
#: No match in play may go unread for longer.
GAP_LIMIT = 60.0


async def network(*, seed: int, minutes: float) -> Report:
    plan = Plan(seed=seed, seconds=minutes * 60, matches=MATCHES, speed=SPEED, settings=COMPRESSED)
    acts = episodes(seed, plan.seconds)
    figures, details = await in_arena(plan, lambda arena: run_acts(arena.deployment, acts, plan.seconds))
    is_kept = figures["gap_max_s"] <= GAP_LIMIT and not figures["never_recovered"]
    is_ok = is_whole(figures) and is_kept and not figures["requests_during_ban"]
    return Report(suite="chaos network", is_ok=is_ok, figures=figures, details=details)


async def run_acts(deployment: Deployment, acts: tuple[Act, ...], seconds: float) -> Figures:
    """Run the acts, and return what a consumer and the site observed."""
    recoveries, timeline = Recoveries(deployment, are_all_fresh), Timeline(deployment)

    async def do(act: Act) -> None:
        if act.fault is None:
            return
        until = await inflict(deployment, act.fault)
        say(f"{act.fault.kind} on {act.fault.path} for {act.fault.valid_seconds} s")
        if act.is_cut:
            recoveries.begin(until)

    await timeline.begin()
    began = SystemClock().now()
    async with sampled_gaps(deployment) as gaps:
        await perform(acts, seconds, do)
        await deployment.simulator.delete("/_sim/faults")
        await recoveries.all_done()
    await timeline.follow()
    return {
        "cuts": recoveries.count,
        **gaps.figures(),
        **recoveries.figures(),
        **_cost(deployment, timeline, began, acts),
    }


def _cost(deployment: Deployment, timeline: Timeline, began: datetime, acts: tuple[Act, ...]) -> Figures:
    """Return the cost in requests; a perfect client sends none during an outage."""
    elapsed = (SystemClock().now() - began).total_seconds()
    needed = requests_to_follow(
        read_truth(deployment.truth),
        began=began,
        seconds=elapsed,
        pace=lambda _match, after: max(COMPRESSED_INTERVAL, until_return(acts, after)),
    )
    banned = bans(timeline.notes)
    return {
        "bans": banned.count,
        "requests_in_flight": banned.in_flight,
        "requests_during_ban": banned.during,
        "requests": len(timeline.notes),
        "amplification": rounded(len(timeline.notes) / needed, 2),
    }
