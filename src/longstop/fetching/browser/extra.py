"""The extra `browser`: the packages without which no source can be read by a browser."""

from importlib.util import find_spec

PACKAGES = ("playwright", "playwright_stealth")
INSTALL = "pip install 'longstop[browser]'"


def missing_packages() -> list[str]:
    """Return those that are not installed here."""
    return [name for name in PACKAGES if find_spec(name) is None]
