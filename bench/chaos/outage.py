"""`outage`: a site with fifty matches is gone for a minute and comes back; all are fresh soon, without a stampede.

The product runs with its own defaults: what is measured here are the spans that users get. No stampede means: in no
250 ms come more than twice as many requests as on the average of the recovery, from the first request after the return
until all is fresh, and over two seconds at least.
"""

from collections.abc import Sequence

from bench.chaos.harness import ChaosRun, Figures, Plan, inject, is_whole, run_suite
from bench.chaos.network_faults import gone
from bench.chaos.poll_gaps import sampled_gaps
from bench.chaos.recovery import GIVE_UP_AFTER, Recoveries, are_all_fresh
from bench.chaos.request_timeline import Timeline, moments, peak
from bench.reporting import Report, rounded, say
from longstop.clock import SystemClock
from longstop_lab.simulator.faults import FaultKind

MATCHES = 50
SPEED = 10.0
WINDOW = 0.25
#: How much more than the mean may come in any one window.
PEAK_LIMIT = 2.0
#: Requests must spread over this many seconds after the outage; a shorter mean would be that of the stampede itself.
SPREAD = 2.0
FRESH_WITHIN = 10.0


async def outage(*, seed: int, minutes: float) -> Report:
    # Only one kind: a full poll of a Test match whose innings ended during the outage would distort the mean.
    plan = Plan(seed=seed, seconds=minutes * 60, matches=MATCHES, speed=SPEED, kinds="t20", settings={})
    figures, details = await run_suite(plan, lambda run: _fail_and_return(run, plan.seconds))
    is_soon = figures["fresh_again_s"] is not None and figures["fresh_again_s"] <= FRESH_WITHIN
    is_calm = figures["mean_250ms"] > 0 and figures["peak_250ms"] <= PEAK_LIMIT * figures["mean_250ms"]
    return Report(
        suite="chaos outage", is_ok=is_whole(figures) and is_soon and is_calm, figures=figures, details=details
    )


async def _fail_and_return(run: ChaosRun, seconds: float) -> Figures:
    deployment, timeline = run.deployment, Timeline(run.deployment)
    recoveries = Recoveries(deployment, are_all_fresh)
    await timeline.begin()
    async with sampled_gaps(deployment) as gaps:
        returned = await inject(deployment, gone(FaultKind.DROP, seconds))
        assert returned is not None
        say(f"gone until {returned:%H:%M:%S}")
        recoveries.begin(returned)
        await recoveries.all_done()
    await timeline.follow()
    came = moments(timeline.notes, returned, recoveries.last_at or SystemClock().now())
    meanwhile = sum(note.at < returned for note in timeline.notes)
    return {
        "fresh_again_s": rounded(max(recoveries.seconds, default=None)),
        **crowding(came, max(recoveries.seconds, default=GIVE_UP_AFTER)),
        "requests_while_gone": meanwhile,
        **gaps.figures(),
    }


def crowding(came: Sequence[float], fresh_after: float) -> Figures:
    """Return the most requests in any 250 ms, and their mean from the first request until all was fresh again."""
    span = max(fresh_after - came[0], SPREAD) if came else SPREAD
    return {"peak_250ms": peak(came, WINDOW), "mean_250ms": round(len(came) * WINDOW / span, 2)}
