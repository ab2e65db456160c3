"""`cuts`: the network is gone for ten seconds out of every fifteen; no match stays behind, and nothing is lost."""

from bench.chaos.fault_schedule import Action
from bench.chaos.harness import COMPRESSED, Plan, is_whole, run_suite
from bench.chaos.network import run_acts
from bench.chaos.network_faults import CUTS, gone
from bench.reporting import Report

MATCHES = 10
SPEED = 20.0
EVERY = 15.0
CUT_SECONDS = 10.0
#: After every return, each match must be fresh within this many seconds, even if further cuts follow.
RECOVER_WITHIN = 30.0


async def cuts(*, seed: int, minutes: float) -> Report:
    plan = Plan(seed=seed, seconds=minutes * 60, matches=MATCHES, speed=SPEED, settings=COMPRESSED)
    actions = cuts_in_turn(plan.seconds)
    figures, details = await run_suite(plan, lambda run: run_acts(run.deployment, actions, plan.seconds))
    is_back = not figures["never_recovered"] and figures["recover_max_s"] <= RECOVER_WITHIN
    return Report(suite="chaos cuts", is_ok=is_whole(figures) and is_back, figures=figures, details=details)


def cuts_in_turn(seconds: float) -> tuple[Action, ...]:
    """Return a cut at the beginning of each fifteen seconds: closed, reset and silent lines in turn."""
    count = max(1, int(seconds / EVERY))
    return tuple(
        Action(at=nth * EVERY, fault=gone(CUTS[nth % len(CUTS)], CUT_SECONDS), is_cut=True) for nth in range(count)
    )
