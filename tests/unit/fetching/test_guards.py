"""The guards around a fetcher."""

import asyncio

import pytest

from longstop.errors import FetchTimeout, ForbiddenTarget, PageNotFound
from longstop.fetching.base import FetchRequest
from longstop.fetching.guards import FetchPolicy, guarded
from longstop.testing import ScriptedFetcher, run_virtual

POLICY = FetchPolicy(hosts=("crex.com",), deadline_seconds=10)
REQUEST = FetchRequest(source="crex", url="https://crex.com/live?token=secret")


def test_a_fetch_within_its_deadline_passes() -> None:
    fetcher = guarded(ScriptedFetcher(lambda _: b"{}", delay_seconds=9.9), POLICY)

    assert run_virtual(fetcher.fetch(REQUEST)).body == b"{}"


def test_a_fetch_beyond_its_deadline_is_ended_at_that_moment_and_named() -> None:
    fetcher = guarded(ScriptedFetcher(lambda _: b"{}", delay_seconds=3600), POLICY)

    async def fetch() -> tuple[FetchTimeout, float]:
        with pytest.raises(FetchTimeout) as caught:
            await fetcher.fetch(REQUEST)
        return caught.value, asyncio.get_running_loop().time()

    error, ended_at = run_virtual(fetch())

    assert ended_at == 10
    assert (error.source, error.request) == ("crex", "GET https://crex.com/live")


def test_a_cancelled_fetch_stays_cancelled() -> None:
    fetcher = guarded(ScriptedFetcher(lambda _: b"{}", delay_seconds=5), POLICY)

    async def cancel() -> bool:
        task = asyncio.create_task(fetcher.fetch(REQUEST))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert run_virtual(cancel())


def test_a_host_outside_the_list_is_refused_before_anything_is_asked() -> None:
    inner = ScriptedFetcher(lambda _: b"{}")

    with pytest.raises(ForbiddenTarget) as caught:
        run_virtual(guarded(inner, POLICY).fetch(FetchRequest(source="crex", url="https://evil.com/x")))

    assert inner.requests == []
    assert str(caught.value) == "crex GET https://evil.com/x: evil.com:443 is not in the source's host list"


def test_an_error_of_the_fetcher_passes_through_unchanged() -> None:
    fetcher = guarded(ScriptedFetcher(lambda _: PageNotFound("answered 404")), POLICY)

    with pytest.raises(PageNotFound, match="answered 404"):
        run_virtual(fetcher.fetch(REQUEST))


def test_closing_the_guards_closes_the_fetcher_within() -> None:
    class Door(ScriptedFetcher):
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    inner = Door(lambda _: b"")

    run_virtual(guarded(inner, POLICY).aclose())

    assert inner.closed == 1
