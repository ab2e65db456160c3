"""Reading the address of a match's page, as a person copies it from a browser. Pure."""

from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

MAX_CHARACTERS = 2_000


def host_of(url: str) -> str:
    """Return the host of an address, with its port where one is written; empty for what is no address."""
    parts = _split(url)
    return parts.netloc.lower() if parts else ""


def at_site(url: str, sites: Collection[str]) -> SplitResult | None:
    """Return the parts of an address of one of these hosts; `None` for any other text."""
    parts = _split(url)
    return parts if parts and parts.netloc.lower() in sites else None


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url.strip()) if len(url) <= MAX_CHARACTERS else None
    except ValueError:  # brackets that do not close, characters that look like others
        return None
    return parts if parts and parts.scheme in ("http", "https") and parts.netloc else None
