"""What every fetcher promises: a whole page or one typed error with its name on it, and no trace after a cancel."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from longstop.clock import SystemClock
from longstop.errors import (
    BodyTooLarge,
    BodyTruncated,
    EmptyBody,
    FetchError,
    FetchTimeout,
    ForbiddenTarget,
    PageNotFound,
    SourceFailed,
    SourceRefused,
    SourceUnreachable,
)
from longstop.fetching.base import Fetcher, FetchRequest
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy, GuardedFetcher, GuardPolicy
from longstop.fetching.http import HttpFetcher
from longstop.resilience.retry_policy import RetryPolicy
from longstop.telemetry.bus import Bus
from longstop.testing import ScriptedFetcher, ScriptedReply
from tests.servers import OK_BODY, fault_server

SECRET = "hidden"

#: Path, what it must become.
FAULTS: list[tuple[str, type[FetchError]]] = [
    ("/status?is=401", SourceRefused),
    ("/status?is=403", SourceRefused),
    ("/status?is=404", PageNotFound),
    ("/status?is=410", PageNotFound),
    ("/status?is=429", SourceRefused),
    ("/status?is=451", SourceRefused),
    ("/status?is=500", SourceFailed),
    ("/status?is=503", SourceFailed),
    ("/short", BodyTruncated),
    ("/chunked-without-end", BodyTruncated),
    ("/partial", BodyTruncated),
    ("/broken-gzip", BodyTruncated),
    ("/reset", SourceUnreachable),
    ("/no-answer", SourceUnreachable),
    ("/nonsense", SourceUnreachable),
    ("/strange-headers", SourceFailed),
    ("/endless-headers", SourceUnreachable),
    ("/empty", EmptyBody),
    ("/huge", BodyTooLarge),
    ("/endless", BodyTooLarge),
    ("/gzip-bomb", BodyTooLarge),
    ("/double-bomb", BodyTooLarge),
    ("/loop", ForbiddenTarget),
    ("/redirect", SourceFailed),
]
Ask = Callable[[str], FetchRequest]
Seam = tuple[Fetcher, Ask]


def _scripted(request: FetchRequest) -> ScriptedReply:
    path = "/" + request.url.split("/", 3)[3]
    expected = dict(FAULTS).get(path)
    return OK_BODY if expected is None else expected("as the script says")


@asynccontextmanager
async def _opened(kind: str, *, deadline_seconds: float) -> AsyncIterator[Seam]:
    async with fault_server() as server:
        policy = FetchPolicy(hosts=(server.authority,), allow_private_addresses=True, deadline_seconds=deadline_seconds)
        inner = HttpFetcher(policy, SystemClock()) if kind == "http" else ScriptedFetcher(_scripted)
        guards = GuardPolicy(retry=RetryPolicy(attempts=1))
        fetcher = GuardedFetcher(inner, policy, clock=SystemClock(), bus=Bus(), guards=guards)
        yield fetcher, lambda path: FetchRequest(source="crex", url=server.url(path))
        await fetcher.aclose()


@pytest.fixture(params=["http", "scripted"])
async def seam(request: pytest.FixtureRequest) -> AsyncIterator[Seam]:
    async with _opened(request.param, deadline_seconds=20) as opened:
        yield opened


async def test_a_good_answer_is_a_whole_page(seam: Seam) -> None:
    fetcher, ask = seam

    page = await fetcher.fetch(ask("/ok"))

    assert (page.status, page.body, page.request) == (200, OK_BODY, ask("/ok"))
    assert page.wire_bytes >= len(OK_BODY)


@pytest.mark.parametrize(("path", "expected"), FAULTS)
async def test_a_bad_answer_is_one_typed_error_with_source_and_request(
    seam: Seam, path: str, expected: type[FetchError]
) -> None:
    fetcher, ask = seam
    request = ask(path)

    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(request)

    assert type(caught.value) is expected
    assert (caught.value.source, caught.value.request) == ("crex", str(request))
    assert caught.value.reason


@pytest.mark.parametrize("path", ["/stall", "/slow-drip"])
async def test_an_answer_that_takes_too_long_is_ended_and_the_next_fetch_is_good(path: str) -> None:
    async with _opened("http", deadline_seconds=2.5) as (fetcher, ask):
        with pytest.raises(FetchTimeout) as caught:
            await fetcher.fetch(ask(path))

        assert (caught.value.source, caught.value.request) == ("crex", str(ask(path)))
        assert (await fetcher.fetch(ask("/ok"))).body == OK_BODY


@pytest.mark.parametrize(("path", "_expected"), FAULTS)
async def test_the_next_fetch_after_a_bad_answer_is_good(seam: Seam, path: str, _expected: type[FetchError]) -> None:
    fetcher, ask = seam
    with pytest.raises(FetchError):
        await fetcher.fetch(ask(path))

    assert (await fetcher.fetch(ask("/ok"))).body == OK_BODY


async def test_a_query_never_shows_in_an_error(seam: Seam) -> None:
    fetcher, _ = seam

    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(FetchRequest(source="crex", url=f"https://elsewhere.com/?key={SECRET}"))

    assert SECRET not in str(caught.value)


async def test_many_fetches_at_once_each_get_their_own_page(seam: Seam) -> None:
    fetcher, ask = seam
    requests = [ask(f"/ok?n={number}") for number in range(100)]

    pages = await asyncio.gather(*map(fetcher.fetch, requests))

    assert [page.request for page in pages] == requests


async def test_a_closed_fetcher_raises_an_error_of_ours(seam: Seam) -> None:
    fetcher, ask = seam
    await fetcher.fetch(ask("/ok"))
    await fetcher.aclose()

    with pytest.raises(SourceUnreachable):
        await fetcher.fetch(ask("/ok"))


async def test_closing_twice_is_harmless(seam: Seam) -> None:
    fetcher, ask = seam

    await fetcher.aclose()
    await fetcher.aclose()

    with pytest.raises(FetchError):
        await fetcher.fetch(ask("/ok"))
