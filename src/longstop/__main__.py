"""`python -m longstop` is `longstop`."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is still being loaded ends it as quietly as later on."""
    try:
        from longstop.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
