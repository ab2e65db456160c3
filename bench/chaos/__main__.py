"""`python -m bench.chaos NAME … [--seed N] [--minutes M]`: run chaos suites one after the other."""

import argparse
import sys

from bench.chaos.capture import capture
from bench.frame import run

SUITES = {"capture": capture}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/chaos", description="Break things by a schedule; each suite ends in one JSON line."
    )
    parser.add_argument("names", nargs="+", choices=SUITES, metavar="NAME", help=f"one or more of {', '.join(SUITES)}")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same schedule and matches")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long things are broken")
    chosen = parser.parse_args()
    if not 0 < chosen.minutes <= 24 * 60:
        parser.error("--minutes must be greater than 0 and at most a day")
    return max(run(name, SUITES[name](seed=chosen.seed, minutes=chosen.minutes)) for name in chosen.names)


if __name__ == "__main__":
    sys.exit(main())
