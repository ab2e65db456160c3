"""Tools for tests of sources and sports, ours and third-party ones.

`check_source` is the contract suite of a source. `ScriptedFetcher` replaces a site, `run_virtual` and `VirtualClock`
replace time: a test with minutes of waiting takes milliseconds.
"""

import asyncio
import selectors
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from longstop.errors import FetchError, SourceError, SourceUnreachable
from longstop.fetching.base import FetchRequest, Page
from longstop.model.match import SOURCE_ID, MatchStatus
from longstop.model.source_queries_and_answers import LIST, LIVE, RENDERED, Listing, ListingEntry, Query
from longstop.sources.base import Source, SourceConfig
from longstop.sources.bodies_and_urls import host_of, mapping_errors
from longstop.sources.load_sources import problems_of
from longstop.sports.base import Sport
from longstop.sports.registry import sports

T = TypeVar("T")
ScriptedReply = bytes | Page | FetchError

START = datetime(2026, 1, 1, tzinfo=UTC)
#: Real seconds after which a loop without timers counts as stuck; only a thread could still wake it.
STUCK_AFTER_SECONDS = 5.0


# --- time ------------------------------------------------------------------------------------------------------------


class _JumpingSelector(selectors.DefaultSelector):
    """Advances its clock instead of waiting, unless a file is ready."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(STUCK_AFTER_SECONDS if timeout is None else 0)
        if not ready and timeout is None:
            raise RuntimeError("deadlock: every task waits, and no timer is set")
        if not ready and timeout is not None:
            self.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that jumps to the next timer instead of waiting.

    `sleep`, `timeout` and `TaskGroup` follow it. Use it in tests without sockets or threads: the clock does not wait
    for them.
    """

    def __init__(self) -> None:
        self._clock = _JumpingSelector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


class VirtualClock:
    """A `Clock` that shows the time of the running loop, counted from a start."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def run_virtual(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time that starts at zero."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)


# --- a scripted site -------------------------------------------------------------------------------------------------


class ScriptedFetcher:
    """A fetcher that replies from a script and records all requests.

    The script is a function that returns the reply to a request: a body, a page, or an error to raise.
    """

    def __init__(self, script: Callable[[FetchRequest], ScriptedReply], *, delay_seconds: float = 0) -> None:
        self._reply = script
        self._delay_seconds = delay_seconds
        self._is_closed = False
        self.requests: list[FetchRequest] = []

    async def fetch(self, request: FetchRequest) -> Page:
        try:
            if self._is_closed:
                raise SourceUnreachable("the fetcher is closed")
            self.requests.append(request)
            await asyncio.sleep(self._delay_seconds)
            return self._page(request)
        except SourceError as error:
            error.name(request.source, str(request))
            raise

    async def aclose(self) -> None:
        self._is_closed = True

    def _page(self, request: FetchRequest) -> Page:
        reply = self._reply(request)
        if isinstance(reply, FetchError):
            raise copy(reply)  # one error may be raised many times, each for its own request
        return reply if isinstance(reply, Page) else page(reply, request=request)


def page(body: bytes, *, request: FetchRequest, status: int = 200, headers: Mapping[str, str] | None = None) -> Page:
    return Page(request=request, status=status, headers=headers or {}, body=body, wire_bytes=len(body))


# --- the contract of a source ----------------------------------------------------------------------------------------

#: Bodies that no parser may choke on: it returns a view, or raises a `SourceError`.
GARBAGE = (b"", b"null", b"{}", b"[]", b"[{}]", b'{"id":', b"<html>502</html>", b"\xff\xfe\x00", b"[" * 5_000)
#: Digests are kept in memory for every match.
MAX_DIGEST_BYTES = 64
#: Addresses that are not match pages of any site.
NO_MATCH_URLS = ("", "match", "https://", "https://other.invalid/match/1", "https://[", "x" * 5_000)


def check_source(
    source: Source,
    bodies: Iterable[tuple[Query, bytes]],
    *,
    config: SourceConfig,
    match_urls: Mapping[str, str] | None = None,
) -> None:
    """Raise an `AssertionError` that says where a source breaks its contract, and what to do.

    `bodies` are recorded bodies, each with the query that it answers: at least one of the list and one of the live
    state, and two that differ for each resource whose digest matters. `config` is what the source was created with; its
    `hosts` are those that may be requested. `match_urls` maps addresses of match pages to source ids.
    """
    bodies = list(bodies)
    _check_members(source, config)
    sport = sports()[source.sport]
    missing = {LIST, LIVE} - {query.resource for query, _ in bodies}
    _require(not missing, f"record a body of each resource; missing: {', '.join(sorted(missing))}")
    for query, body in bodies:
        with mapping_errors(AssertionError, f"request({query}) must return FetchRequest(source=…, url='https://…')"):
            _check_request(source, query, config.hosts)
        with mapping_errors(AssertionError, f"parse({query}) must return a view whose fields have the declared types"):
            _check_view(sport, query, _parse(source, query, body))
        _check_other_match(source, query, body)
        _check_garbage(source, query, body)
    with mapping_errors(AssertionError, "digest() of a recorded body must return digest_of(what you parse)"):
        _check_digests(source, bodies)
    with mapping_errors(AssertionError, "match_of() must return a source id or None for any text"):
        for url, source_id in (match_urls or {}).items():
            found = source.match_of(url)
            _require(
                found == source_id,
                f"match_of({url!r}) returned {found!r}, not {source_id!r}: correct match_of, or the line in match_urls",
            )
        for url in NO_MATCH_URLS:
            _require(
                source.match_of(url) is None,
                f"match_of({url[:40]!r}) must return None, because it is no page of this site: check the address with "
                "bodies_and_urls.split_site_url(url, self.sites)",
            )


def _require(is_kept: bool, message: str) -> None:
    if not is_kept:
        raise AssertionError(message)


def _check_members(source: Source, config: SourceConfig) -> None:
    problems = list(problems_of(source))
    _require(
        not problems, f"{'; '.join(problems)}: write what docs/howto/add-a-source.md lists under 'Write the class'"
    )
    _require(
        source.name == config.domain_id,
        f"name is {source.name!r}, but the domain_id of the configuration is {config.domain_id!r}: "
        "write self.name = config.domain_id",
    )
    keys = getattr(source, "metadata_keys", None)
    advice = "list the keys of config.metadata that the class reads, or write metadata_keys = ()"
    _require(isinstance(keys, tuple), f"metadata_keys must be a tuple: {advice}")
    installed = ", ".join(sports())
    _require(
        source.sport in sports(),
        f"sport {source.sport!r} is not installed; installed: {installed}. Use one of these, or install its package",
    )


def _check_request(source: Source, query: Query, hosts: Collection[str]) -> None:
    request = source.request(query)
    _require(
        isinstance(request, FetchRequest),
        f"request({query}) returned {type(request).__name__}: return FetchRequest(source=self.name, url=…)",
    )
    _require(
        request.source == source.name,
        f"request({query}) has source {request.source!r}, not {source.name!r}: write source=self.name",
    )
    host = host_of(request.url)
    _require(
        host in hosts,
        f"request({query}) goes to {host or request.url!r}, which is not in hosts: correct the URL, or add the host to "
        "hosts of the configuration",
    )


def _parse(source: Source, query: Query, body: bytes) -> object:
    try:
        return source.parse(query, body)
    except (Exception, SystemExit) as error:
        raise AssertionError(
            f"parse({query}) of a recorded body raised {error!r}: make it return a view, or record a body of {query}"
        ) from error


def _check_view(sport: Sport[Any], query: Query, view: object) -> None:
    """Check that a body becomes a view of the sport, and one that can be printed."""
    if query.resource == LIST:
        _require(isinstance(view, Listing), f"parse({query}) returned {type(view).__name__}: return Listing(boards=…)")
        entries = view.boards if isinstance(view, Listing) else ()
        wrong = [entry.source_id for entry in entries if not SOURCE_ID.fullmatch(entry.source_id)]
        _require(
            not wrong,
            f"parse({query}) returned the source ids {wrong}: use an id of letters, digits and dashes only",
        )
    elif query.resource in (LIVE, RENDERED):
        board = _board_type(sport) if query.resource == LIVE else sport.dom_board or ListingEntry
        _require(isinstance(view, board), f"parse({query}) returned {type(view).__name__}: return a {board.__name__}")
        shown = view.source_id if isinstance(view, ListingEntry) else ""
        _require(query.source_id in ("", shown), f"parse({query}) returned match {shown!r}: raise WrongMatch for it")
    else:
        _require(
            query.resource in sport.resources,
            f"{sport.name} has no resource {query.resource!r}: use one of {', '.join(sport.resources)} in the Query",
        )
        package = type(sport).__module__.rpartition(".")[0]
        for part in view if isinstance(view, tuple | list) else (view,):
            kind = type(part)
            _require(
                kind.__module__.startswith(package),
                f"parse({query}) returned {kind.__name__}: return a view of {package}.model",
            )
    for entry in view.boards if isinstance(view, Listing) else [view]:
        if isinstance(entry, ListingEntry):
            is_typed = isinstance(entry.status, MatchStatus)
            _require(is_typed, f"parse({query}) returned status {entry.status!r}: map it to a MatchStatus")
    msgspec.to_builtins(view)


def _check_other_match(source: Source, query: Query, body: bytes) -> None:
    """Check that a live state is refused if it answers the query of another match, as a wrong cache does."""
    if query.resource != LIVE:
        return
    shown = source.parse(query, body).source_id
    other = msgspec.structs.replace(query, source_id=f"{shown}1")
    try:
        view = source.parse(other, body)
    except SourceError:
        return
    # A body that does not name its match takes the id of the query.
    is_named = view.source_id == other.source_id
    _require(is_named, f"parse({other}) accepted the body of match {shown!r}: raise WrongMatch")


def _board_type(sport: Sport[Any]) -> type[ListingEntry]:
    hint = get_type_hints(sport.state)["board"]
    return next(kind for kind in (hint, *get_args(hint)) if isinstance(kind, type) and issubclass(kind, ListingEntry))


def _check_garbage(source: Source, query: Query, body: bytes) -> None:
    for garbage in (*GARBAGE, body[: len(body) // 2], body + b"]"):
        try:
            source.parse(query, garbage)
        except SourceError:
            continue
        except (Exception, SystemExit) as error:
            raise AssertionError(
                f"parse({query}) of {garbage[:20]!r} raised {error!r}: raise a ParseError or an ObservationError, "
                "as bodies_and_urls.decode(body, Shape) does"
            ) from error


def _check_digests(source: Source, bodies: Sequence[tuple[Query, bytes]]) -> None:
    """Check that equal bodies have equal digests, and that a digest covers everything that is parsed."""
    for query, body in bodies:
        digest = source.digest(query, body)
        _require(
            isinstance(digest, bytes),
            f"digest({query}) returned {type(digest).__name__}: return digest_of(…), which is bytes",
        )
        _require(
            len(digest) <= MAX_DIGEST_BYTES,
            f"digest({query}) must be at most {MAX_DIGEST_BYTES} bytes, not {len(digest)}: "
            "return digest_of(what you parse)",
        )
        _require(
            digest == source.digest(query, body),
            f"digest({query}) differs for the same body: digest nothing but what you parse, and no clock or counter",
        )
        for other, changed in bodies:
            is_other_view = other == query and source.parse(query, changed) != source.parse(query, body)
            is_covered = not is_other_view or source.digest(query, changed) != digest
            _require(
                is_covered,
                f"digest({query}) is the same for two bodies with different views, so a change is missed: digest "
                "everything that parse reads",
            )
