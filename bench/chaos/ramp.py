"""`ramp`: responses get slower and fail more often, then recover; cadence and time-outs follow in steps, and return.

Latency goes from 100 to 3,000 ms and back, and errors, half of them 503 and half resets, from none to a fifth of all
requests and back. The errors start when the latency decreases: with three seconds for each response there are so few
requests that a fifth of them would hardly be five errors a minute, and the cadence would not change. The steps are read
from the scraper's log. `amplification` covers the ramp alone, against a perfect client with the same latency and the
cadence that the product reported (see `demand`).
"""

import asyncio
from datetime import datetime, timedelta
from time import monotonic

from bench.chaos.adaptation_steps import (
    Ladders,
    level,
    pace_by_errors,
    paces,
    read_events,
    slowed,
    steps,
    swings,
    time_outs,
)
from bench.chaos.fault_schedule import Action
from bench.chaos.gradual_faults import GradualFault, acts_of
from bench.chaos.harness import COMPRESSED, ChaosRun, Figures, Plan, inject, is_whole, run_schedule, run_suite
from bench.chaos.needed_requests import Pace, requests_to_follow
from bench.chaos.request_timeline import Timeline
from bench.reporting import Report, rounded, say
from longstop.clock import SystemClock
from longstop_lab.deployment import Deployment
from longstop_lab.simulator.faults import Fault, FaultKind
from longstop_lab.simulator.truth import read_truth

MATCHES = 10
SPEED = 40.0
#: They last longer than the ramp, and are read whole at an innings' end with few pages; a Test match needs hundreds.
KIND = "odi"
FOOT_SECONDS = 0.1
TOP_SECONDS = 3.0
TOP_ERRORS = 0.2
LATE, FAILING = (0.0, 0.6), (0.4, 1.0)
MAX_AMPLIFICATION = 1.3
INTERVAL = 0.5
TIME_OUT = 10.0
CALM_SECONDS = 30.0
#: A step that is taken back sooner is an oscillation. It is shorter than the calm, which may be counted from the
#: start of a poll and is reported at its end.
SWING_SECONDS = 10.0
#: Errors of the last minute count; then it must have been calm, and a step may take one more poll.
BACK_WITHIN = 60.0 + 2 * CALM_SECONDS

_SETTINGS = {
    **COMPRESSED,
    "POLLING_INTERVAL_SECONDS": f"{INTERVAL:g}",
    "CALM_AFTER_ERRORS_SECONDS": f"{CALM_SECONDS:g}",
    "FETCH_TIMEOUT_SECONDS": f"{TIME_OUT:g}",
    # A response that takes three seconds must not count as a break.
    "BREAK_AFTER_SECONDS": "60",
}


async def ramp(*, seed: int, minutes: float) -> Report:
    plan = Plan(seed=seed, seconds=minutes * 60, matches=MATCHES, speed=SPEED, kinds=KIND, settings=_SETTINGS)
    slope = GradualFault(
        seconds=plan.seconds,
        foot_seconds=FOOT_SECONDS,
        top_seconds=TOP_SECONDS,
        top_errors=TOP_ERRORS,
        late_from_to=LATE,
        failing_from_to=FAILING,
    )
    figures, details = await run_suite(plan, lambda run: _climb(run, slope))
    has_stepped = all(figures[f"{kind}_{way}"] for kind in ("pace", "timeouts") for way in ("up", "down"))
    is_steady = not figures["oscillations"] and not figures["not_back"]
    is_ok = is_whole(figures) and has_stepped and is_steady and figures["amplification"] <= MAX_AMPLIFICATION
    return Report(suite="chaos ramp", is_ok=is_ok, figures=figures, details=details)


async def _climb(run: ChaosRun, slope: GradualFault) -> Figures:
    deployment, timeline = run.deployment, Timeline(run.deployment)
    await timeline.begin()
    began = SystemClock().now()

    async def do(action: Action) -> None:
        assert action.fault is not None
        await inject(deployment, action.fault)

    await run_schedule(acts_of(slope), slope.seconds, do)
    await inject(deployment, Fault(kind=FaultKind.LATENCY, seconds=slope.foot_seconds))
    await timeline.follow()
    say("down again; waiting for pace and time-outs to come back")
    back_s = await _until_back(deployment)
    needed = requests_to_follow(
        read_truth(deployment.truth),
        began=began,
        seconds=slope.seconds,
        pace=_told_pace(deployment, began),
        latency=slope.latency,
    )
    sent = len(timeline.notes)
    return {
        **_stepped(deployment, began),
        "back_s": back_s,
        "requests": sent,
        "amplification": rounded(sent / needed, 2),
    }


def _ladders(deployment: Deployment) -> dict[str, tuple[Ladders, float]]:
    """Return the steps of each subject, and the base of each kind."""
    return {
        "pace": (pace_by_errors(read_events(deployment.log, "cadence.changed"), INTERVAL), INTERVAL),
        "timeouts": (time_outs(read_events(deployment.log, "timeouts.changed")), TIME_OUT),
    }


def _not_back(deployment: Deployment) -> int:
    """Return how many matches are still slowed down, and sources given more time."""
    sources = time_outs(read_events(deployment.log, "timeouts.changed")).values()
    patient = sum(levels[-1].seconds > TIME_OUT for levels in sources)
    return patient + len(slowed(read_events(deployment.log, "cadence.changed")))


async def _until_back(deployment: Deployment) -> float | None:
    """Wait until all are back, and return how long that took; `None` when they are not."""
    began = monotonic()
    while monotonic() - began < BACK_WITHIN:
        # Before the calm is over, a foot may only be one that was not left yet.
        if not _not_back(deployment) and monotonic() - began > CALM_SECONDS:
            return round(monotonic() - began, 1)
        await asyncio.sleep(1)
    return None


def _stepped(deployment: Deployment, began: datetime) -> Figures:
    figures: Figures = {}
    restless = 0
    for kind, (ladders, foot) in _ladders(deployment).items():
        taken = {subject: steps(levels, since=began, base=foot) for subject, levels in ladders.items()}
        ups = sum(step.is_up for each in taken.values() for step in each)
        figures |= {f"{kind}_up": ups, f"{kind}_down": sum(map(len, taken.values())) - ups}
        for subject, each in taken.items():
            for there, back in swings(each, SWING_SECONDS):
                restless += 1
                say(f"{kind} of {subject} swung: {'up' if there.is_up else 'down'} {there.at:%T}, back {back.at:%T}")
    return {**figures, "oscillations": restless, "not_back": _not_back(deployment)}


def _told_pace(deployment: Deployment, began: datetime) -> Pace:
    """Return the cadence that the product reported; the interval where it reported none."""
    ladders = paces(read_events(deployment.log, "cadence.changed"))

    def interval_of(ref: str, after: float) -> float:
        return level(ladders.get(ref, ()), began + timedelta(seconds=after), INTERVAL)

    def pace(match: str | None, after: float) -> float:
        if match is not None:
            return interval_of(f"crex_{match}", after)
        return min([interval_of(ref, after) for ref in ladders] if len(ladders) >= MATCHES else [INTERVAL])

    return pace
