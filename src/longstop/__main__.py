"""Runs the command line with `python -m longstop`."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C during the imports ends it as quietly as later."""
    try:
        from longstop.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
