"""Values that the parts of the browser fetcher share."""

from enum import StrEnum

from msgspec import Struct

from longstop.model.scraper_report import Usage


class BrowserStats(Struct, frozen=True, kw_only=True):
    source: str
    age_seconds: float
    #: How many pages it has opened since its start, and the URLs of those still open, without the query.
    pages_served: int
    addresses: tuple[str, ...]
    contexts: int
    #: Of the whole process tree, driver and display included; `None` if it was not measured yet.
    usage: Usage | None
    #: Mean latency of the first and of the latest probes; `None` until there are enough.
    first_latency: float | None = None
    last_latency: float | None = None
    #: Consecutive time-outs of pages.
    timeouts: int = 0

    @property
    def pages(self) -> int:
        return len(self.addresses)

    @property
    def pss_per_page(self) -> int | None:
        """The memory per open page, the browser's own included; the cost of a match where each has its own page."""
        if self.usage is None or self.usage.pss_bytes is None or not self.addresses:
            return None
        return self.usage.pss_bytes // len(self.addresses)


class BrowserKind(StrEnum):
    """How complete a browser a site needs; some sites detect the difference."""

    #: The old headless browser without a user interface: the lightest.
    SHELL = "shell"
    #: The complete browser, without a window.
    HEADLESS = "headless"
    #: The complete browser with its window, on a virtual display where there is no other.
    HEADED = "headed"


class Egress(Struct, frozen=True, kw_only=True):
    """Where a browser may connect to: a site's hosts, or a proxy and nothing else."""

    #: The only hosts whose names it resolves, with or without a port; if empty, every host name is resolved.
    hosts: tuple[str, ...] = ()
    #: Whether the only host is the proxy, which resolves the others: nothing may be sent without it.
    is_proxied: bool = False


ANYWHERE = Egress()


class Mode(StrEnum):
    """A fetch mode, the most expensive first."""

    #: Load the page and capture what its script requests.
    NAVIGATE = "navigate"
    #: Keep the page open and capture what it requests by itself.
    PASSIVE = "passive"
    #: Send the request from inside the open page.
    PAGE = "page"
    #: Send the request by HTTP, with the session's cookies.
    HTTP = "http"


LADDER = tuple(Mode)


class BrowserPolicy(Struct, frozen=True, kw_only=True):
    """How one source is read with a browser."""

    #: The modes that may be used; navigation always may.
    modes: tuple[Mode, ...] = LADDER
    #: Paths of JSON that the site's pages request by themselves. It is captured; everything else is requested from
    #: inside a page. If empty, every GET counts as requested by the page.
    calls: tuple[str, ...] = ()
    is_style_blocked: bool = True
    #: From the request to the response, in any mode.
    page_seconds: float = 30.0
    #: Until a page that is loading gets its first response.
    navigation_seconds: float = 30.0
    #: How long to wait for an open page to request something by itself.
    passive_seconds: float = 10.0
    #: A response that an open page received longer ago is not returned as new.
    max_capture_age_seconds: float = 1.0
    #: A page loaded this recently is not loaded again for another response of the same load.
    fresh_seconds: float = 2.0
    idle_seconds: float = 60.0
    #: A page that received this much since it was loaded is replaced by a new one: the browser keeps all of it.
    max_responses: int = 1000
    max_response_bytes: int = 10_000_000
    #: Between two such replacements.
    rotation_seconds: float = 5.0
    #: Open pages of one session; idle ones are closed to stay below it, pages in use may exceed it.
    max_tabs: int = 64
    #: Pages that load at the same time.
    max_loads: int = 4
    #: How long a page waits for its turn to load.
    queue_seconds: float = 10.0
    probe_seconds: float = 2.0
    #: How long a page may take to render what it received; after that it is read as it is.
    settle_seconds: float = 3.0
    #: An open page that received nothing for this long is loaded again before it is read.
    active_seconds: float = 10.0
    screenshot_seconds: float = 5.0
    #: Selects the profile (operating system, screen) that the source's sessions show.
    profile_seed: int = 0
