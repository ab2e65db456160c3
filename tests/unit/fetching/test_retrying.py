"""The guard that asks again."""

import asyncio
from random import Random

import pytest

from longstop.errors import (
    EmptyBody,
    FetchError,
    FetchTimeout,
    PageNotFound,
    SourceChallenged,
    SourceFailed,
    SourceRefused,
    SourceUnreachable,
)
from longstop.fetching.base import Page
from longstop.resilience.breaker import target_policy
from longstop.resilience.retry import policies
from longstop.telemetry.events.sources import RequestRetried
from longstop.testing import run_virtual
from tests.unit.fetching.site import REQUEST, Site, now, saying, types

FAILED = SourceFailed("answered 502")
REFUSED = SourceRefused("answered 429")
#: A breaker that never gets in the way.
PATIENT = target_policy(threshold=1000)


def _visit(site: Site) -> tuple[Page | FetchError, float]:
    async def visit() -> tuple[Page | FetchError, float]:
        return await site.fetch(), now()

    return run_virtual(visit())


@pytest.mark.req("FR-002", "FR-017")
@pytest.mark.parametrize("error", [FAILED, SourceUnreachable("reset"), FetchTimeout("late"), EmptyBody("empty")])
def test_what_fails_for_a_moment_is_asked_again_after_the_stated_delays(error: FetchError) -> None:
    site = Site(saying(error, error, b"{}"))

    outcome, took = _visit(site)

    assert isinstance(outcome, Page)
    assert (outcome.retries, took, site.asked) == (2, 3, 3)
    assert [event.wait_seconds for event in site.sink.events if isinstance(event, RequestRetried)] == [1, 2]


def test_a_page_that_came_at_once_was_not_retried() -> None:
    site = Site(saying(b"{}"))

    outcome, _ = _visit(site)

    assert isinstance(outcome, Page)
    assert (outcome.retries, site.care.retries, site.sink.events) == (0, 0, [])


@pytest.mark.req("FR-002", "FR-017")
def test_the_network_policy_asks_five_times_more_and_then_says_the_last_error() -> None:
    site = Site(saying(*[FAILED] * 5, SourceUnreachable("reset")), retry=policies().network, breaker=PATIENT)
    for _ in range(10):
        site.care.budget.earn()

    outcome, took = _visit(site)

    assert isinstance(outcome, SourceUnreachable)
    assert (outcome.retries, took, site.asked) == (5, 31, 6)


def test_when_all_attempts_are_used_up_the_last_error_says_how_many_there_were() -> None:
    site = Site(saying(FAILED))

    outcome, took = _visit(site)

    assert isinstance(outcome, SourceFailed)
    assert (outcome.retries, took, site.asked) == (2, 3, 3)
    assert str(outcome) == "crex GET https://crex.com/live: answered 502"


def test_each_retry_is_told_without_the_query() -> None:
    site = Site(saying(FAILED, b"{}"))

    _visit(site)

    assert site.sink.events == [
        RequestRetried(
            source="crex",
            request="GET https://crex.com/live",
            attempt=2,
            error_type="SourceFailed",
            error_message="answered 502",
            wait_seconds=1.0,
        )
    ]


@pytest.mark.req("CAP-8")
@pytest.mark.parametrize("error", [PageNotFound("404"), SourceChallenged("a captcha"), REFUSED])
def test_what_another_second_cannot_mend_is_not_asked_again(error: FetchError) -> None:
    site = Site(saying(error))

    outcome, took = _visit(site)

    assert type(outcome) is type(error)
    assert (took, site.asked) == (0, 1)


@pytest.mark.req("FR-017")
def test_all_attempts_together_end_after_45_seconds() -> None:
    site = Site(saying(b"{}"), delay_seconds=3600, breaker=PATIENT)
    for _ in range(10):  # a slow site: 15 s for each attempt
        site.care.adaptive.observe(3.0)

    outcome, took = _visit(site)

    assert isinstance(outcome, FetchTimeout)
    assert (took, outcome.retries) == (45, 2)
    assert outcome.reason == "no whole answer within 45 s"


def test_a_failure_that_says_after_how_long_is_asked_again_just_then() -> None:
    site = Site(saying(SourceFailed("503", retry_after_seconds=20), b"{}"))

    outcome, took = _visit(site)

    assert isinstance(outcome, Page)
    assert (outcome.retries, took) == (1, 20)


@pytest.mark.parametrize("seed", range(20))
def test_whoever_waits_for_a_rest_to_end_is_never_held_by_it(seed: int) -> None:
    site = Site(saying(SourceFailed("503", retry_after_seconds=20), b"{}"), random=Random(seed))

    outcome, took = _visit(site)

    assert isinstance(outcome, Page)
    assert 20 <= took <= 20 * 1.1 * 1.25


def test_a_refusal_is_told_at_once_and_waited_out_by_nobody() -> None:
    site = Site(saying(SourceRefused("429", retry_after_seconds=20), b"{}"))

    outcome, took = _visit(site)

    assert isinstance(outcome, SourceRefused)
    assert (took, site.asked, outcome.retry_after_seconds) == (0, 1, 20)


def test_a_rest_that_does_not_fit_is_told_at_once() -> None:
    site = Site(saying(SourceFailed("503", retry_after_seconds=60), b"{}"))

    outcome, took = _visit(site)

    assert isinstance(outcome, SourceFailed)
    assert (took, site.asked, outcome.retry_after_seconds) == (0, 1, 60)


def test_if_the_circuit_opens_under_way_the_real_error_is_told_and_nobody_waits() -> None:
    site = Site(saying(FAILED), breaker=target_policy(threshold=2))

    outcome, took = _visit(site)

    assert isinstance(outcome, SourceFailed)
    assert (outcome.retries, took, site.asked) == (1, 1, 2)


def test_if_the_circuit_opens_while_one_waits_the_real_error_is_told() -> None:
    site = Site(saying(FAILED), breaker=target_policy(threshold=4))

    async def together() -> tuple[list[Page | FetchError], float]:
        # Three fail at once and wait a second; a fourth, half a second later, opens the circuit.
        waiting = [asyncio.create_task(site.fetch()) for _ in range(3)]
        await asyncio.sleep(0.5)
        await site.fetch()
        return await asyncio.gather(*waiting), now()

    outcomes, ended_at = run_virtual(together())

    assert types(outcomes) == ["SourceFailed"] * 3
    assert [outcome.retries for outcome in outcomes] == [0] * 3
    assert (ended_at, site.asked) == (1, 4)


@pytest.mark.req("FR-002")
def test_retries_stay_below_a_fifth_of_the_traffic_however_long_it_fails() -> None:
    site = Site(saying(FAILED), breaker=PATIENT)

    run_virtual(site.fetch_often(500))

    assert site.asked == 500 + site.care.retries
    assert 100 <= site.care.retries <= 103


def test_what_was_held_back_earns_no_retries() -> None:
    site = Site(saying(SourceRefused("429", retry_after_seconds=900)))

    run_virtual(site.fetch_often(100))

    assert site.asked == 1
    assert [site.care.budget.spend() for _ in range(4)] == [True, True, True, False]


def test_a_wait_can_be_cancelled() -> None:
    site = Site(saying(FAILED))

    async def cancel() -> tuple[bool, float]:
        task = asyncio.create_task(site.fetcher.fetch(REQUEST))
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled(), now()

    assert run_virtual(cancel()) == (True, 0.5)
    assert site.asked == 1
