"""`python -m bench NAME [--quick]`: run one benchmark."""

import argparse
import sys

from bench.browser import browser
from bench.health import health
from bench.live import live
from bench.modes import modes
from bench.reads import reads
from bench.reporting import run

SUITES = {"health": health, "live": live, "browser": browser, "modes": modes, "reads": reads}


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure, and end in one JSON line.")
    parser.add_argument("name", choices=SUITES, help="which suite")
    parser.add_argument("--quick", action="store_true", help="a shorter run: half a minute of measuring or less")
    chosen = parser.parse_args()
    return run(chosen.name, SUITES[chosen.name](is_quick=chosen.quick))


if __name__ == "__main__":
    sys.exit(main())
