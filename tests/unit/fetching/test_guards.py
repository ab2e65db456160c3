"""The guards around a fetcher, each with one concern."""

import asyncio

import pytest

from longstop.errors import (
    EmptyBody,
    FetchError,
    FetchTimeout,
    ForbiddenTarget,
    PageNotFound,
    SourceRefused,
    SourceUnreachable,
)
from longstop.fetching.base import FetchRequest, Page
from longstop.resilience.breaker import target_policy
from longstop.telemetry.events.sources import TimeoutsChanged
from longstop.testing import page, run_virtual
from tests.unit.fetching.site import ONCE, REQUEST, Site, now, saying


def test_a_fetch_within_its_deadline_passes() -> None:
    site = Site(saying(b"{}"), delay_seconds=9.9)

    assert run_virtual(site.fetcher.fetch(REQUEST)).body == b"{}"


def test_a_fetch_beyond_its_deadline_is_ended_at_that_moment_and_named() -> None:
    site = Site(saying(b"{}"), delay_seconds=3600, retry=ONCE)

    async def fetch() -> tuple[FetchTimeout, float]:
        with pytest.raises(FetchTimeout, match="within 10 s") as caught:
            await site.fetcher.fetch(REQUEST)
        return caught.value, now()

    error, ended_at = run_virtual(fetch())

    assert ended_at == 10
    assert (error.source, error.request) == ("crex", "GET https://crex.com/live")


def test_a_cancelled_fetch_stays_cancelled() -> None:
    site = Site(saying(b"{}"), delay_seconds=5)

    async def cancel() -> bool:
        task = asyncio.create_task(site.fetcher.fetch(REQUEST))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert run_virtual(cancel())


def test_a_host_outside_the_list_is_refused_before_anything_is_asked_or_counted() -> None:
    site = Site(saying(b"{}"))

    with pytest.raises(ForbiddenTarget) as caught:
        run_virtual(site.fetcher.fetch(FetchRequest(source="crex", url="https://evil.com/x")))

    assert (site.asked, site.care.retries) == (0, 0)
    assert str(caught.value) == "crex GET https://evil.com/x: evil.com:443 is not in the source's host list"


def test_an_error_of_the_fetcher_passes_through_unchanged() -> None:
    site = Site(saying(PageNotFound("answered 404")))

    with pytest.raises(PageNotFound, match="answered 404"):
        run_virtual(site.fetcher.fetch(REQUEST))


def test_closing_the_guards_closes_the_fetcher_within() -> None:
    site = Site(saying(b"{}"))

    run_virtual(site.fetcher.aclose())

    with pytest.raises(SourceUnreachable, match="closed"):
        run_virtual(site.inner.fetch(REQUEST))


@pytest.mark.req("CAP-8")
@pytest.mark.parametrize(("status", "body"), [(200, b""), (204, b""), (204, b"x")])
def test_a_good_answer_with_nothing_in_it_is_an_error(status: int, body: bytes) -> None:
    site = Site(saying(page(body, request=REQUEST, status=status)), retry=ONCE)

    with pytest.raises(EmptyBody, match=f"answered {status} with an empty body"):
        run_virtual(site.fetcher.fetch(REQUEST))


# --- the deadline follows the site ----------------------------------------------------------------------------------


@pytest.mark.req("FR-023")
def test_a_slow_site_is_given_more_time_and_a_fast_one_less_and_each_change_is_told() -> None:
    site = Site(saying(b"{}"), retry=ONCE)

    async def visit(delay_seconds: float) -> float:
        site.takes(delay_seconds)
        await site.fetch_often(10)
        return site.care.timeouts.fetch

    async def visits() -> list[float]:
        return [await visit(seconds) for seconds in (1.0, 2.5, 2.5, 1.0, 0.1)]

    assert run_virtual(visits()) == [10, 15, 15, 10, 8]
    assert site.sink.events[0] == TimeoutsChanged(
        source="crex",
        mean_seconds=2.5,
        fetch_seconds=15,
        page_seconds=45,
        navigation_seconds=45,
        selector_seconds=10,
    )
    assert [event.name for event in site.sink.events] == ["timeouts.changed"] * 3


@pytest.mark.req("FR-023")
def test_a_site_that_was_found_slow_is_really_waited_for() -> None:
    site = Site(saying(b"{}"), delay_seconds=12, retry=ONCE)

    async def visit() -> tuple[list[FetchError | Page], float]:
        outcomes = []
        for _ in range(10):
            outcomes.append(await site.fetch())
            await asyncio.sleep(60)  # the breaker closes meanwhile: this is about the time-out
        return [*outcomes, await site.fetch()], site.care.timeouts.fetch

    outcomes, seconds = run_virtual(visit())

    assert {type(outcome) for outcome in outcomes[:10]} == {FetchTimeout}
    assert isinstance(outcomes[10], Page)
    assert seconds == 15


@pytest.mark.parametrize(
    ("error", "fetch_seconds"),
    [
        (SourceUnreachable("refused at once"), 10),
        (SourceRefused("answered 403"), 8),
        (PageNotFound("answered 404"), 8),
    ],
)
def test_only_what_is_answered_or_never_comes_says_how_fast_a_site_is(error: FetchError, fetch_seconds: float) -> None:
    site = Site(saying(error), retry=ONCE, breaker=target_policy(threshold=1000))

    run_virtual(site.fetch_often(10))

    assert site.care.timeouts.fetch == fetch_seconds
