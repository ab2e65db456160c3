"""The source seam: what to ask a site (`request`) and how to read the answer (`parse`). Both are pure."""

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from longstop.errors import UsageError
from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.base import LADDER, BrowserKind, Mode
from longstop.model.observation import Query


class Source(Protocol):
    """One site."""

    name: str
    #: The name of the sport whose views it reads.
    sport: str
    #: Paths of JSON that the site's pages ask for by themselves, such as `/api/v1/event/*`: a browser takes it as it
    #: goes by. What else is wanted is asked for from inside a page.
    calls: tuple[str, ...]
    #: Hosts of the pages that people see, such as `crex.com`.
    sites: tuple[str, ...]

    def request(self, query: Query) -> FetchRequest:
        """Return how to ask the site."""
        ...

    def parse(self, query: Query, body: bytes) -> Any:
        """Return what the body says, as a view of the sport, or raise a `ParseError` or `ObservationError`.

        `read_body` calls it, and turns any other error into a `LayoutChanged`.
        """
        ...

    def digest(self, query: Query, body: bytes) -> bytes:
        """Return the same for two bodies that say the same: clocks, odds and tokens must not count.

        A page that answers several queries is digested once, for the first of them: the digest must cover all that
        is read of the page. Where it raises, `wire.digest_of(body)` serves.
        """
        ...

    def match_of(self, url: str) -> str | None:
        """Return the match whose page this address leads to; `None` when it leads to none of this site."""
        ...


def not_offered(source: str, resource: str) -> UsageError:
    return UsageError(f"{source} has no {resource} pages: ask for another kind")


class SourceConfig(Struct, frozen=True, kw_only=True):
    """What an operator says about a site, from `config/sources.yaml`."""

    domain_id: str
    enabled: bool
    precedence_weight: int
    adapter_class: str
    #: The only hosts that may be asked, as `host` or `host:port`.
    hosts: tuple[str, ...]
    #: Whether private and loopback addresses are allowed: for a simulator, never for a real site.
    allow_private_addresses: bool
    #: Who gave leave to read this site, when and how; a real site stays disabled without it.
    permission: str | None
    metadata: Mapping[str, str]
    #: The browser that reads the site; `None` for none: it is asked by HTTP.
    browser: BrowserKind | None = None
    #: The ways in which the browser may be used.
    modes: tuple[Mode, ...] = LADDER
