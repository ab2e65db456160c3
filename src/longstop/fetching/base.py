"""The fetch seam: a request goes in, a page comes out, or one typed error says why not."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from longstop.model.match import Priority

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class FetchRequest(Struct, frozen=True, kw_only=True):
    """One question to one site."""

    source: str
    url: str
    method: str = "GET"
    #: JSON to post; `None` for a GET.
    body: bytes | None = None
    headers: Mapping[str, str] = _NO_HEADERS
    #: For a browser: the page whose script asks for this; empty when the URL is a page itself. HTTP ignores it.
    page: str = ""
    #: The page as its script has drawn it, not as the server sent it. HTTP ignores it, and brings what was sent.
    is_rendered: bool = False
    #: Who goes on when not all may: the last of a month's bytes through a proxy are for live matches.
    priority: Priority = Priority.LIVE

    def __str__(self) -> str:
        """Name the request in logs and errors: without the query, which may carry a secret."""
        return f"{self.method} {self.url.partition('?')[0]}"


class Page(Struct, frozen=True, kw_only=True):
    """A good answer (2xx), whole, within the size cap."""

    request: FetchRequest
    status: int
    headers: Mapping[str, str]
    body: bytes
    elapsed_seconds: float
    #: Bytes that came over the wire, still compressed.
    wire_bytes: int
    #: How often it was asked for before, in vain.
    retries: int = 0


class Fetcher(Protocol):
    """Whoever can bring a page."""

    async def fetch(self, request: FetchRequest) -> Page:
        """Return the page, or raise a `FetchError`."""
        ...

    async def aclose(self) -> None: ...
