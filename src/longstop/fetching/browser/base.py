"""What the parts of the browser engine tell each other."""

from enum import StrEnum

from msgspec import Struct


class Usage(Struct, frozen=True, kw_only=True):
    """What a family of processes holds. `None` where the kernel would not say: never a zero in its place."""

    processes: int
    #: Shared pages count once for each process.
    rss_bytes: int | None
    #: Shared pages count once in all: what would be free without the family.
    pss_bytes: int | None
    cpu_seconds: float


def held_bytes(usage: Usage) -> int:
    """Return what would be free without the family, as closely as is known."""
    return usage.rss_bytes or 0 if usage.pss_bytes is None else usage.pss_bytes


class BrowserCensus(Struct, frozen=True, kw_only=True):
    """Who lives in one browser, and what they hold between them."""

    source: str
    generation: int
    #: Of the browser's first process; `None` until it is known.
    pid: int | None
    age_seconds: float
    #: Requests that use it now.
    users: int
    #: Pages that it has opened since its start, and those that are open: their addresses, without the query.
    pages_served: int
    addresses: tuple[str, ...]
    contexts: int
    #: What the whole tree holds, driver and display included; `None` when it was not measured yet.
    usage: Usage | None

    @property
    def pages(self) -> int:
        """How many pages are open."""
        return len(self.addresses)

    @property
    def pss_per_page(self) -> int | None:
        """What one open page costs, the browser's own share included: what a match costs where each has its page."""
        if self.usage is None or self.usage.pss_bytes is None or not self.addresses:
            return None
        return self.usage.pss_bytes // len(self.addresses)


class BrowserKind(StrEnum):
    """How much of a browser a site needs to see; some sites tell them apart."""

    #: The old headless browser without a user interface: the lightest.
    SHELL = "shell"
    #: The whole browser, without a window.
    HEADLESS = "headless"
    #: The whole browser with its window, on a display of its own where there is none.
    HEADED = "headed"


class Egress(Struct, frozen=True, kw_only=True):
    """The ways out of a browser: to a site's hosts, or to a proxy and nowhere else."""

    #: The site's hosts, with or without a port; without any, every host is found.
    hosts: tuple[str, ...] = ()
    #: The proxy's host; empty without one. Names are looked up there, so that no other host has to be found here.
    proxy: str = ""

    @property
    def is_proxied(self) -> bool:
        """Whether nothing may leave without the proxy."""
        return bool(self.proxy)

    @property
    def reachable(self) -> tuple[str, ...]:
        return (self.proxy,) if self.proxy else self.hosts


ANYWHERE = Egress()


class Mode(StrEnum):
    """A way to read a source, the dearest first."""

    #: Load the page afresh and take what its script asks for.
    NAVIGATE = "navigate"
    #: Leave the page open and listen to what it asks for by itself.
    PASSIVE = "passive"
    #: Query from inside the open page.
    PAGE = "page"
    #: Query by HTTP, with the session's cookies.
    HTTP = "http"


LADDER = tuple(Mode)
