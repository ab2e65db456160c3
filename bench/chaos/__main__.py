"""`python -m bench.chaos NAME … [--seed N] [--minutes M]`: run chaos suites one after the other."""

import argparse
import sys
from collections.abc import Awaitable
from typing import NamedTuple, Protocol

from bench.chaos.browser import browser
from bench.chaos.capture import capture
from bench.chaos.cuts import cuts
from bench.chaos.hostile import hostile
from bench.chaos.hostile_schedule import PHASE_NAMES
from bench.chaos.network import network
from bench.chaos.outage import outage
from bench.chaos.poison import poison
from bench.chaos.processes import processes
from bench.chaos.ramp import ramp
from bench.chaos.stubborn import stubborn
from bench.reporting import Report, run


class _Run(Protocol):
    def __call__(self, *, seed: int, minutes: float) -> Awaitable[Report]: ...


class Suite(NamedTuple):
    run: _Run
    #: The default duration in minutes.
    minutes: float


SUITES = {
    "capture": Suite(capture, 1.0),
    "network": Suite(network, 1.0),
    "ramp": Suite(ramp, 2.0),
    "outage": Suite(outage, 1.0),
    "cuts": Suite(cuts, 10.0),
    "browser": Suite(browser, 1.0),
    "processes": Suite(processes, 1.0),
    "stubborn": Suite(stubborn, 1.0),
    "poison": Suite(poison, 1.0),
    "hostile": Suite(hostile, 2.0),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/chaos", description="Break things by a schedule; each suite ends in one JSON line."
    )
    parser.add_argument("names", nargs="+", choices=SUITES, metavar="NAME", help=f"one or more of {', '.join(SUITES)}")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same schedule and matches")
    lengths = ", ".join(f"{name} {suite.minutes:g}" for name, suite in SUITES.items())
    parser.add_argument("--minutes", type=float, help=f"how long things are broken; by default {lengths}")
    parser.add_argument("--kills", type=int, help="only for `processes`: the number of kills instead of a duration")
    parser.add_argument(
        "--only", nargs="+", choices=PHASE_NAMES, metavar="PHASE", help="only for `hostile`: these phases"
    )
    chosen = parser.parse_args()
    if chosen.minutes is not None and not 0 < chosen.minutes <= 24 * 60:
        parser.error("--minutes must be greater than 0 and at most a day")
    if chosen.only is not None:
        if chosen.names != ["hostile"]:
            parser.error("--only is for hostile alone")
        return run("hostile", hostile(seed=chosen.seed, minutes=chosen.minutes or 0.0, only=chosen.only))
    if chosen.kills is not None:
        if chosen.names != ["processes"] or chosen.kills < 1:
            parser.error("--kills is a number greater than 0, and for processes alone")
        return run("processes", processes(seed=chosen.seed, minutes=0, kills=chosen.kills))
    return max(
        run(name, SUITES[name].run(seed=chosen.seed, minutes=chosen.minutes or SUITES[name].minutes))
        for name in chosen.names
    )


if __name__ == "__main__":
    sys.exit(main())
