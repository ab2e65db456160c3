"""The interface of fetchers: a request in, a page or a typed error out."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct
from pydantic import SecretStr

from longstop.model.match import Priority

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class FetchRequest(Struct, frozen=True, kw_only=True):
    source: str
    url: str
    method: str = "GET"
    #: JSON to post; `None` for a GET.
    body: bytes | None = None
    headers: Mapping[str, str] = _NO_HEADERS
    #: For a browser: the page whose script sends this request; empty if the URL is a page itself. HTTP ignores it.
    page: str = ""
    #: Whether to return the page as rendered by its script. HTTP ignores it and returns what the server sent.
    is_rendered: bool = False
    #: Decides which requests stop first when a month's bytes through the proxy run out.
    priority: Priority = Priority.LIVE

    def __str__(self) -> str:
        """Name the request in logs and errors, without the query, which may contain a secret."""
        return f"{self.method} {self.url.partition('?')[0]}"


class RawResponse(Struct, frozen=True, kw_only=True):
    """A response before it is checked."""

    status: int
    #: Names in lower case.
    headers: Mapping[str, str]
    body: bytes
    #: Bytes on the wire, still compressed.
    wire_bytes: int


class Page(RawResponse, frozen=True, kw_only=True):
    """A good response (2xx), complete and within the size limit."""

    request: FetchRequest
    #: How many attempts failed before.
    retries: int = 0


class HttpProxy(Struct, frozen=True, kw_only=True):
    """A proxy, and the credential for it. The password appears in no log or error."""

    server: str
    username: str
    password: SecretStr


class Fetcher(Protocol):
    async def fetch(self, request: FetchRequest) -> Page:
        """Return the page, or raise a `FetchError`."""

    async def aclose(self) -> None: ...
