"""Queries to one source: the source builds the request and parses the body, the fetcher sends it.

Admission control decides before each query, and learns the outcome.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from longstop.clock import Clock, SystemClock
from longstop.daemon_thread import DaemonThread
from longstop.errors import (
    CircuitOpen,
    IllegalTransition,
    LimitExceeded,
    PageNotFound,
    SourceError,
    UsageError,
    without_frames,
)
from longstop.fetching.base import Fetcher, FetchRequest, Page
from longstop.matches.limits import Limits
from longstop.model.match import SOURCE_ID, Priority
from longstop.model.source_queries_and_answers import LIST, LIVE, Listing, ListingEntry, Query
from longstop.resilience.poll_attempt_states import TRANSITIONS, AttemptState
from longstop.resilience.taxonomy import FailureKind, kind_of
from longstop.sources.base import Source
from longstop.sources.bodies_and_urls import digest_of, mapping_errors, read_body

#: Larger bodies are parsed outside the event loop.
LARGE_BODY_BYTES = 256 << 10
#: How many calls of a source may take too long at once; until one ends, further large pages are postponed.
MAX_LONG_CALLS = 3

View = TypeVar("View")
#: Identifies a request within one poll: method, URL, body.
_PageKey = tuple[str, str, bytes | None]


class _Outcome(Enum):
    """Outcomes of a query other than a view."""

    UNCHANGED = "unchanged"
    MISSING = "missing"


#: Takes the error of an admitted query if there was one, the body, and the address of the page.
RecordOutcome = Callable[[BaseException | None, bytes | None, str], None]


class Admission(Protocol):
    """Decides whether a source may be queried, and learns the outcome."""

    def admit(self, resource: str, source_id: str = "") -> RecordOutcome:
        """Return what records the outcome of the query, or raise `CircuitOpen`. A listing has no source id."""
        ...

    def retry_now(self) -> bool:
        """Admit the next queries although a circuit is open; return whether one was."""
        ...


class OpenAdmission:
    """Admits every query: for single reads by an operator, and for tests."""

    def admit(self, resource: str, source_id: str = "") -> RecordOutcome:
        return lambda error, body, page: None

    def retry_now(self) -> bool:
        return False


class PollAttempt:
    """The progress of one poll: the stage it reached, its answers, and its errors, including retried ones.

    It is filled during the poll, so that a failed poll has one too.
    """

    def __init__(self) -> None:
        self.answers = 0
        #: The stage that the poll has reached.
        self.state = AttemptState.INIT
        #: The number of errors by type.
        self.errors: dict[str, int] = {}
        #: Bytes of its pages, and seconds spent on parsing and comparing them.
        self.bytes = 0
        self.busy_seconds = 0.0

    def reach(self, state: AttemptState) -> None:
        """Move to the next stage, unless the attempt is already there."""
        if state is not self.state:
            if state not in TRANSITIONS[self.state]:
                raise IllegalTransition(f"an attempt cannot move from {self.state} to {state}")
            self.state = state

    def answered(self, page: Page) -> None:
        self.answers += 1
        self.bytes += len(page.body)
        if page.retries:
            self._count("Retried", page.retries)

    def failed(self, error: SourceError) -> None:
        """Count an error once, with its retries; ignore canaries and queries that were not sent."""
        if kind_of(error) is not FailureKind.NOT_SENT and not (error.is_canary or error.is_counted):
            error.is_counted = True
            self._count(type(error).__name__, 1 + error.retries)

    @contextmanager
    def working(self, clock: Clock) -> Iterator[None]:
        """Count the time until the end of the block as work."""
        started = clock.monotonic()
        try:
            yield
        finally:
            self.busy_seconds += clock.monotonic() - started

    @property
    def error_count(self) -> int:
        return sum(self.errors.values())

    def _count(self, kind: str, times: int) -> None:
        self.errors[kind] = self.errors.get(kind, 0) + times


class SourceClient:
    """A source with its fetcher and its admission control."""

    def __init__(
        self,
        source: Source,
        fetcher: Fetcher,
        admission: Admission | None = None,
        *,
        is_browser_based: bool = False,
        on_suspect: Callable[[], None] = lambda: None,
        limits: Limits | None = None,
    ) -> None:
        self.source = source
        self.limits = limits or Limits()
        #: Called when a poll is not believed because an answer may have been altered.
        self.on_suspect = on_suspect
        self.fetcher = fetcher
        self.admission = admission or OpenAdmission()
        #: Whether the fetcher is a browser, which runs the scripts of a page.
        self._is_browser_based = is_browser_based
        self._listing: Listing | None = None
        self._listing_digest: Mapping[str, bytes] = {}
        #: For long calls, one at a time. Only one that took too long, or whose poll was cancelled, runs beside others.
        self._turn = asyncio.Lock()
        self._threads = [DaemonThread(f"parsing of {source.name}") for _ in range(MAX_LONG_CALLS)]

    async def run_apart(self, call: Callable[[], View], what: str, attempt: PollAttempt, clock: Clock) -> View:
        """Make a long call outside the event loop, one at a time; raise if it takes too long.

        A call cannot be stopped. After one that took too long, the next one has another thread.
        """
        seconds = self.limits.parse_seconds
        async with self._turn:
            if not self._threads:
                raise CircuitOpen(
                    f"{what} must wait: {MAX_LONG_CALLS} calls that took more than {seconds:g} s have not ended"
                )
            thread = self._threads.pop()
            job = asyncio.ensure_future(thread.run(call))
            job.add_done_callback(partial(self._ended, thread))
            with attempt.working(clock):
                done, _ = await asyncio.wait({job}, timeout=seconds)
        if not done:
            raise LimitExceeded(f"{what} took more than {seconds:g} s (SCRAPER_MAX_PARSE_SECONDS)")
        result: View = job.result()
        return result

    def _ended(self, thread: DaemonThread, job: asyncio.Future[Any]) -> None:
        self._threads.append(thread)
        if not job.cancelled():
            job.exception()  # the poll may have ended

    def use_source(self, source: Source) -> None:
        """Use a new configuration of the source from now on."""
        self.source = source
        self._listing, self._listing_digest = None, {}

    def page_of(self, source_id: str) -> str:
        """Return the address of a match's page; empty when the site has none."""
        with mapping_errors(Exception, f"{self.source.name}: request() failed"):
            return self.source.request(Query(resource=LIVE, source_id=source_id)).page

    @property
    def can_render(self) -> bool:
        """Return whether a match's rendered page may be read: by a browser, if its script requests the data."""
        return self._is_browser_based and bool(self.source.calls)

    async def listing(self) -> Listing:
        """Return the site's list of matches. An unchanged body is not parsed again."""
        query, client = Query(resource=LIST), PollClient(self, known=self._listing_digest)
        is_unchanged = await client.are_unchanged(query)
        if self._listing is None or not is_unchanged:
            self._listing = await client.ask(query, Listing)
            self._listing_digest = client.digests
        return self._listing

    async def entry(
        self, source_id: str, attempt: PollAttempt | None = None, priority: Priority = Priority.LIVE
    ) -> ListingEntry:
        """Return the live state that a match's own page shows."""
        client = PollClient(self, attempt=attempt, priority=priority)
        return await client.ask(Query(resource=LIVE, source_id=source_id), ListingEntry)


class PollClient:
    """Queries a source during one poll. A page that several queries need is fetched once."""

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
        #: Digests of the first bodies of the last poll, and of this one.
        self._known = known or {}
        self.digests: dict[str, bytes] = {}
        #: Why answers of this poll may have been altered; an answer that is read again replaces its own.
        self._suspicions: dict[Query, tuple[str, ...]] = {}
        self._clock = clock or SystemClock()
        #: Replaces the source's keys of players and teams by the stored ones.
        self._rekey = rekey
        #: The pages fetched so far, and the items in the lists of those that were parsed: both since `forget`.
        self._pages: dict[_PageKey, Page] = {}
        self._page_digests: dict[_PageKey, bytes] = {}
        self._views: dict[Query, Any] = {}
        self._items = 0

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def forget(self) -> None:
        """Discard the pages fetched so far; later queries fetch them again, and only their bytes still count."""
        self._pages.clear()
        self._page_digests.clear()
        self._views.clear()
        self._items = 0
        self.digests.clear()

    @property
    def suspicions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each for found in self._suspicions.values() for each in found))

    def use_keys(self, rekey: Callable[[Any], Any]) -> None:
        """Parse with other keys from now on; fetched pages stay."""
        self._rekey = rekey
        self._views.clear()
        self._items = 0

    async def ask(self, query: Query, kind: type[View]) -> View:
        reading = await self._read(query)
        if not isinstance(reading, kind):
            name = self._client.source.name
            raise TypeError(
                f"source {name} returned {type(reading).__name__} for {query.resource}; expected {kind.__name__}"
            )
        return reading

    async def ask_if_there(self, query: Query, kind: type[View]) -> View | None:
        query = query if query.is_optional else msgspec.structs.replace(query, is_optional=True)
        if await self._read(query) is _Outcome.MISSING:
            return None
        return await self.ask(query, kind)

    async def are_unchanged(self, *queries: Query) -> bool:
        """Return whether all bodies have the digests of the last poll; unchanged ones are not parsed."""
        outcomes = [await self._read(query, is_head=True) for query in queries]
        return all(outcome is _Outcome.UNCHANGED for outcome in outcomes)

    async def _read(self, query: Query, *, is_head: bool = False) -> Any:
        if query in self._views:
            return self._views[query]
        self._attempt.reach(AttemptState.INTERCEPTING)
        source, record = self._client.source, self._client.admission.admit(query.resource, query.source_id)
        body: bytes | None = None
        address = ""
        try:
            with mapping_errors(Exception, f"{source.name}: request() failed"):
                request = source.request(query)
            address = request.page or request.url
            body = (await self._page(request)).body
            self._attempt.reach(AttemptState.CAPTURED)
            if is_head and self._is_known(query, await self._digest(query, request, body)):
                reading: Any = _Outcome.UNCHANGED
            else:
                reading = self._views[query] = await self._parse(query, body)
                self._suspicions[query] = getattr(reading, "suspicions", ())
        except BaseException as error:
            # A source need not offer an optional resource.
            is_missing = query.is_optional and isinstance(error, PageNotFound | UsageError)
            if isinstance(error, SourceError) and not is_missing:
                error.name(source.name, str(query))
                self._attempt.failed(error)
            record(error, body, address)
            if not is_missing:
                raise
            without_frames(error)
            self._views[query] = _Outcome.MISSING
            is_same = is_head and self._is_known(query, b"")
            return _Outcome.UNCHANGED if is_same else _Outcome.MISSING
        record(None, body, address)
        return reading

    async def _parse(self, query: Query, body: bytes) -> Any:
        """Return the view of a body with the stored keys, or raise if it exceeds a limit."""
        reading, size = await self._run(partial(_parsed, self._client, self._rekey, query, body), query, body)
        self._items += size
        self._client.limits.check("events", self._items, "items in the lists of one poll")
        return reading

    async def _run(self, call: Callable[[], View], query: Query, body: bytes) -> View:
        """Make a call that takes long if the body is large, then outside the event loop."""
        if len(body) >= LARGE_BODY_BYTES:
            what = f"a page of {len(body):,} bytes ({query})"
            return await self._client.run_apart(call, what, self._attempt, self._clock)
        with self._attempt.working(self._clock):
            return call()

    def _is_known(self, query: Query, digest: bytes) -> bool:
        """Store a digest; return whether the last poll had the same."""
        self.digests[query.resource] = digest
        return self._known.get(query.resource) == digest

    async def _digest(self, query: Query, request: FetchRequest, body: bytes) -> bytes:
        """Return the digest of a page, computed once for all its queries."""
        key = _page_key(request)
        if key not in self._page_digests:
            call = partial(_digested, self._client.source, query, body)
            self._page_digests[key] = await self._run(call, query, body)
        return self._page_digests[key]

    async def _page(self, request: FetchRequest) -> Page:
        key = _page_key(request)
        if key not in self._pages:
            page = await self._client.fetcher.fetch(msgspec.structs.replace(request, priority=self._priority))
            self._attempt.answered(page)
            self._pages[key] = page
            self._client.limits.check("poll_pages", len(self._pages), "pages in one poll")
            self._client.limits.check("poll_bytes", self._attempt.bytes, "bytes in one poll")
        return self._pages[key]


def _parsed(client: SourceClient, rekey: Callable[[Any], Any] | None, query: Query, body: bytes) -> tuple[Any, int]:
    """Return the view of a body, and the size of its longest list; raise if it exceeds a limit."""
    reading = read_body(client.source, query, body)
    if isinstance(reading, Listing):
        client.limits.check("entries", len(reading.boards) + len(reading.unreadable), "entries in the listing")
        return _usable(reading, client.limits), 0
    size = client.limits.check_view(reading)
    return (rekey(reading) if rekey else reading), size


def _digested(source: Source, query: Query, body: bytes) -> bytes:
    try:
        return source.digest(query, body)
    except (Exception, SystemExit):  # parsing the body raises the proper error
        return digest_of(body)


def _page_key(request: FetchRequest) -> _PageKey:
    return request.method, request.url, request.body


def _usable(listing: Listing, limits: Limits) -> Listing:
    """Return the listing without matches whose ids cannot be used in URLs and commands, or whose texts are too long."""
    boards, unusable = list[ListingEntry](), list[str]()
    for entry in listing.boards:
        # The fingerprint has the texts of an entry.
        is_short = max(len(entry.fingerprint), len(entry.headline), *map(len, entry.teams)) <= limits.text
        if is_short and SOURCE_ID.fullmatch(entry.source_id):
            boards.append(entry)
        else:
            unusable.append(entry.source_id[:80])
    if not unusable:
        return listing
    return Listing(boards=tuple(boards), unreadable=(*listing.unreadable, *unusable))
