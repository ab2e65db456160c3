"""`python -m longstop` is `longstop`."""

from longstop.cli.main import main

main()
