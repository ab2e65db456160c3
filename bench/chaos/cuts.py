"""`cuts`: the network is gone for ten seconds out of every fifteen; no match stays behind, and nothing is lost."""

from bench.chaos.arena import COMPRESSED, Plan, in_arena, is_whole
from bench.chaos.episodes import CUTS, gone
from bench.chaos.network import run_acts
from bench.chaos.schedule import Act
from bench.frame import Report

MATCHES = 10
SPEED = 20.0
EVERY = 15.0
CUT_SECONDS = 10.0
#: After every return, each match must be fresh within this many seconds, even if further cuts follow.
RECOVER_WITHIN = 30.0


async def cuts(*, seed: int, minutes: float) -> Report:
    plan = Plan(seed=seed, seconds=minutes * 60, matches=MATCHES, speed=SPEED, settings=COMPRESSED)
    acts = cuts_in_turn(plan.seconds)
    figures, details = await in_arena(plan, lambda arena: run_acts(arena.deployment, acts, plan.seconds))
    is_back = not figures["never_recovered"] and figures["recover_max_s"] <= RECOVER_WITHIN
    return Report(suite="chaos cuts", is_ok=is_whole(figures) and is_back, figures=figures, details=details)


def cuts_in_turn(seconds: float) -> tuple[Act, ...]:
    """Return a cut at the beginning of each fifteen seconds: closed, reset and silent lines in turn."""
    count = max(1, int(seconds / EVERY))
    return tuple(
        Act(at=nth * EVERY, fault=gone(CUTS[nth % len(CUTS)], CUT_SECONDS), is_cut=True) for nth in range(count)
    )
