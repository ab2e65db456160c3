"""The source seam: how to request a resource of a site (`request`), and how to parse the response (`parse`). Pure."""

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from longstop.errors import UsageError
from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.browser_policy_and_stats import LADDER, BrowserKind, Mode
from longstop.model.source_queries_and_answers import Query


class Source(Protocol):
    """One site. A class that reads `SourceConfig.metadata` lists its keys in `metadata_keys`; others are refused."""

    name: str
    #: The name of the sport whose views `parse` returns.
    sport: str
    #: Paths of JSON that the site's own pages request, such as `/api/v1/event/*`. A browser intercepts these
    #: responses; everything else is fetched from inside the page.
    calls: tuple[str, ...]
    #: Hosts of the public pages, such as `crex.com`.
    sites: tuple[str, ...]

    def request(self, query: Query) -> FetchRequest:
        """Return the request for a resource."""
        ...

    def parse(self, query: Query, body: bytes) -> Any:
        """Return the body as a view of the sport, or raise a `ParseError` or `ObservationError`.

        `read_body` calls it, and turns any other error into a `LayoutChanged`.
        """
        ...

    def digest(self, query: Query, body: bytes) -> bytes:
        """Return the same digest for bodies with the same content: clocks, odds and tokens must not count.

        A page that answers several queries is digested once, for the first of them. So the digest must cover
        everything that is read from the page. If it raises, `bodies_and_urls.digest_of(body)` is used.
        """
        ...

    def match_of(self, url: str) -> str | None:
        """Return the source id of the match at this URL; `None` if the URL is not a match page of this site."""
        ...


def not_offered(source: str, resource: str) -> UsageError:
    return UsageError(f"{source} has no {resource} resource: choose another one")


class SourceConfig(Struct, frozen=True, kw_only=True):
    """One site as configured in `config/sources.yaml`."""

    domain_id: str
    adapter_class: str
    enabled: bool = False
    precedence_weight: int = 0
    #: The only hosts that may be contacted, as `host` or `host:port`.
    hosts: tuple[str, ...] = ()
    #: Whether private and loopback addresses are allowed. For a simulator, never for a real site.
    allow_private_addresses: bool = False
    #: Who gave permission to scrape this site, when and how. A real site cannot be enabled without it.
    permission: str | None = None
    metadata: Mapping[str, str] = {}
    #: The browser that loads the site; `None` for plain HTTP.
    browser: BrowserKind | None = None
    #: The fetch modes that the browser may use.
    modes: tuple[Mode, ...] = LADDER
