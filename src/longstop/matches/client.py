"""Asking one source: the source says how, the fetcher goes, the source reads, and the admission learns how it went."""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Protocol, TypeVar

import msgspec

from longstop.clock import Clock, SystemClock
from longstop.errors import IllegalTransition, PageNotFound, SourceError
from longstop.fetching.base import Fetcher, FetchRequest, Page
from longstop.model.match import SOURCE_ID, Priority
from longstop.model.observation import LIST, LIVE, RENDERED, Listing, ListingEntry, Query
from longstop.resilience.taxonomy import TRANSITIONS, AttemptState, FailureKind, kind_of
from longstop.sources.base import Source
from longstop.sources.parsing import digest_of, read_body

View = TypeVar("View")
#: What makes two requests of one poll the same: method, address, body.
_PageKey = tuple[str, str, bytes | None]


class _Outcome(Enum):
    """What a query may end in beside a view."""

    UNCHANGED = "unchanged"
    MISSING = "missing"


class Admission(Protocol):
    """Decides whether a source may be asked, and learns what came of it."""

    def admit(self, resource: str) -> object:
        """Return a pass, or raise `CircuitOpen`."""
        ...

    def record(
        self, passed: object, resource: str, error: BaseException | None, body: bytes | None, page: str = ""
    ) -> None:
        """Take note of how it ended: with an error or without, with which body, and at which page's address."""
        ...


class OpenAdmission:
    """Lets every query pass: for reading by hand, and for tests of what lies behind."""

    def admit(self, resource: str) -> object:
        return resource

    def record(
        self, passed: object, resource: str, error: BaseException | None, body: bytes | None, page: str = ""
    ) -> None: ...


class PollAttempt:
    """One poll as an attempt: how far it came, its answers, and the errors on the way, also those made good.

    It is filled while the poll goes on, so that a failed poll shows its own too.
    """

    def __init__(self) -> None:
        self.answers = 0
        #: How far the poll has come.
        self.state = AttemptState.INIT
        #: How many errors of each type were met.
        self.errors: dict[str, int] = {}
        self._last: SourceError | None = None

    def reach(self, state: AttemptState) -> None:
        """Take the next step of the attempt, unless it is there already."""
        if state is not self.state:
            if state not in TRANSITIONS[self.state]:
                raise IllegalTransition(f"an attempt cannot go from {self.state} to {state}")
            self.state = state

    def answered(self, page: Page) -> None:
        self.answers += 1
        if page.retries:
            self._count("Retried", page.retries)

    def failed(self, error: SourceError) -> None:
        """Count an error once, and the tries before it; not a canary's, nor one for which no site was asked."""
        is_counted, self._last = error is self._last, error
        if kind_of(error) is not FailureKind.NOT_SENT and not (error.is_canary or is_counted):
            self._count(type(error).__name__, 1 + error.retries)

    @property
    def error_count(self) -> int:
        return sum(self.errors.values())

    def _count(self, kind: str, times: int) -> None:
        self.errors[kind] = self.errors.get(kind, 0) + times


class SourceClient:
    """One source as it is asked: by its description, through its fetcher, past its admission."""

    def __init__(
        self, source: Source, fetcher: Fetcher, admission: Admission | None = None, *, is_browsed: bool = False
    ) -> None:
        self.source = source
        self.fetcher = fetcher
        self.admission = admission or OpenAdmission()
        #: Whether a browser fetches, whose pages have scripts that draw.
        self._is_browsed = is_browsed
        self._listing: Listing | None = None
        self._listing_digest: Mapping[str, bytes] = {}

    def read_by(self, source: Source) -> None:
        """Ask and read by this description of the site from here on."""
        self.source = source
        self._listing, self._listing_digest = None, {}

    def page_of(self, source_id: str) -> str:
        """Return the address of a match's page; empty where the site has none to open."""
        return self.source.request(Query(resource=LIVE, source_id=source_id)).page

    @property
    def can_draw(self) -> bool:
        """Return whether a match's page may be read as drawn: by a browser, where a script draws what it asks for."""
        return self._is_browsed and bool(self.source.calls)

    async def listing(self) -> Listing:
        """Return the site's list of matches; one whose body says the same as before is not read again."""
        query, client = Query(resource=LIST), PollClient(self, known=self._listing_digest)
        is_unchanged = await client.are_unchanged(query)
        if self._listing is None or not is_unchanged:
            self._listing = _addressable(await client.ask(query, Listing))
            self._listing_digest = client.digests
        return self._listing

    async def entry(self, source_id: str) -> ListingEntry:
        """Return what a match's own page shows at a glance."""
        return await PollClient(self).ask(Query(resource=LIVE, source_id=source_id), ListingEntry)


class PollClient:
    """Asks a source's site during one poll: a page that several queries need is fetched once."""

    def __init__(
        self,
        client: SourceClient,
        *,
        attempt: PollAttempt | None = None,
        priority: Priority = Priority.LIVE,
        known: Mapping[str, bytes] | None = None,
        clock: Clock | None = None,
        rekey: Callable[[Any], Any] | None = None,
    ) -> None:
        self._client = client
        self._attempt = attempt or PollAttempt()
        self._priority = priority
        #: Digests of the bodies that the last poll began with, and of those of this one.
        self._known = known or {}
        self.digests: dict[str, bytes] = {}
        self._clock = clock or SystemClock()
        #: Replaces the source's keys of players and teams by those stored.
        self._rekey = rekey
        self._pages: dict[_PageKey, Page] = {}
        self._page_digests: dict[_PageKey, bytes] = {}
        self._views: dict[Query, Any] = {}

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def forget(self) -> None:
        """Fetch again what is asked from here on; what was fetched before is not what this poll goes by."""
        self._pages.clear()
        self._page_digests.clear()
        self._views.clear()
        self.digests.clear()

    def read_again(self, rekey: Callable[[Any], Any]) -> None:
        """Read with other keys from here on; what was fetched stays."""
        self._rekey = rekey
        self._views.clear()

    async def ask(self, query: Query, kind: type[View]) -> View:
        reading = await self._read(query)
        if not isinstance(reading, kind):
            name = self._client.source.name
            raise TypeError(f"source {name} reads {query.resource} as {type(reading).__name__}, not {kind.__name__}")
        return reading

    async def ask_if_there(self, query: Query, kind: type[View]) -> View | None:
        query = query if query.is_optional else msgspec.structs.replace(query, is_optional=True)
        if await self._read(query) is _Outcome.MISSING:
            return None
        return await self.ask(query, kind)

    async def drawn(self, source_id: str, kind: type[View]) -> View:
        """Return what a match's page shows, as its script has drawn it."""
        return await self.ask(Query(resource=RENDERED, source_id=source_id), kind)

    async def are_unchanged(self, *queries: Query) -> bool:
        """Return whether all answers say what they said at the last poll; those that do are not read."""
        outcomes = [await self._read(query, is_head=True) for query in queries]
        return all(outcome is _Outcome.UNCHANGED for outcome in outcomes)

    async def _read(self, query: Query, *, is_head: bool = False) -> Any:
        if query in self._views:
            return self._views[query]
        self._attempt.reach(AttemptState.INTERCEPTING)
        admission, source = self._client.admission, self._client.source
        passed = admission.admit(query.resource)
        body: bytes | None = None
        address = ""
        try:
            request = source.request(query)
            address = request.page or request.url
            body = (await self._page(request)).body
            self._attempt.reach(AttemptState.CAPTURED)
            if is_head and self._is_known(query, self._digest(query, request, body)):
                reading: Any = _Outcome.UNCHANGED
            else:
                reading = read_body(source, query, body)
                reading = self._views[query] = self._rekey(reading) if self._rekey else reading
        except PageNotFound as error:
            admission.record(passed, query.resource, error, body, address)
            if not query.is_optional:
                error.name(source.name, str(query))
                self._attempt.failed(error)
                raise
            self._views[query] = _Outcome.MISSING
            is_same = is_head and self._is_known(query, b"")
            return _Outcome.UNCHANGED if is_same else _Outcome.MISSING
        except BaseException as error:
            if isinstance(error, SourceError):
                error.name(source.name, str(query))
                self._attempt.failed(error)
            admission.record(passed, query.resource, error, body, address)
            raise
        admission.record(passed, query.resource, None, body)
        return reading

    def _is_known(self, query: Query, digest: bytes) -> bool:
        """Remember a digest; return whether it is that of the last poll."""
        self.digests[query.resource] = digest
        return self._known.get(query.resource) == digest

    def _digest(self, query: Query, request: FetchRequest, body: bytes) -> bytes:
        """Return the digest of a page; one that answers several queries is digested once."""
        key = _page_key(request)
        if key not in self._page_digests:
            self._page_digests[key] = _digest(self._client.source, query, body)
        return self._page_digests[key]

    async def _page(self, request: FetchRequest) -> Page:
        key = _page_key(request)
        if key not in self._pages:
            page = await self._client.fetcher.fetch(msgspec.structs.replace(request, priority=self._priority))
            self._attempt.answered(page)
            self._pages[key] = page
        return self._pages[key]


def _page_key(request: FetchRequest) -> _PageKey:
    return request.method, request.url, request.body


def _digest(source: Source, query: Query, body: bytes) -> bytes:
    try:
        return source.digest(query, body)
    except Exception:  # whatever is wrong with the body, reading it says so
        return digest_of(body)


def _addressable(listing: Listing) -> Listing:
    """Return the listing without matches whose ids cannot be parts of addresses and commands."""
    strange = tuple(line.source_id for line in listing.boards if not SOURCE_ID.fullmatch(line.source_id))
    if not strange:
        return listing
    boards = tuple(line for line in listing.boards if line.source_id not in strange)
    return Listing(boards=boards, unreadable=(*listing.unreadable, *strange))
