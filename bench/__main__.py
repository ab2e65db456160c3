"""`python -m bench NAME [--quick]`: run one benchmark."""

import argparse
import sys

from bench.frame import run
from bench.live import live

SUITES = {"live": live}


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure, and end in one JSON line.")
    parser.add_argument("name", choices=SUITES, help="which suite")
    parser.add_argument("--quick", action="store_true", help="half a minute of measuring instead of five")
    chosen = parser.parse_args()
    return run(chosen.name, SUITES[chosen.name](is_quick=chosen.quick))


if __name__ == "__main__":
    sys.exit(main())
