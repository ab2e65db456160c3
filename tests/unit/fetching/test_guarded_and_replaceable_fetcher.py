"""One source's guards, and the fetcher behind them that can be replaced in use."""

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.errors import (
    CircuitOpen,
    EmptyBody,
    FetchError,
    FetchTimeout,
    ForbiddenTarget,
    LayoutChanged,
    PageNotFound,
    SourceChallenged,
    SourceFailed,
    SourceRefused,
    SourceUnreachable,
)
from longstop.fetching.base import FetchRequest, Page
from longstop.fetching.guarded_and_replaceable_fetcher import ReplaceableFetcher, RetryBudget
from longstop.model.request_pause import PauseKind
from longstop.resilience.breaker import target_policy
from longstop.resilience.retry_policy import RetryPolicy, policies
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.sources import (
    CircuitClosed,
    CircuitHalfOpened,
    CircuitOpened,
    RequestRetried,
    SourceRateLimited,
    TimeoutsChanged,
)
from longstop.testing import ScriptedFetcher, ScriptedReply, VirtualClock, page, run_virtual
from longstop.watching.stored_pauses import StoredPauses
from tests.memory import MemoryPauses
from tests.unit.fetching.site import API_REQUEST, ONCE, REQUEST, Site, now, saying, types


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

    assert (site.asked, site.retries) == (0, 0)
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
def test_a_slow_site_is_given_more_time_and_a_fast_one_less_and_each_change_is_reported() -> None:
    site = Site(saying(b"{}"), retry=ONCE)

    async def visit(delay_seconds: float) -> float:
        site.takes(delay_seconds)
        await site.fetch_often(10)
        return site.fetcher.timeouts.now.fetch

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
def test_a_slow_site_gets_the_longer_deadline() -> None:
    site = Site(saying(b"{}"), delay_seconds=12, retry=ONCE)

    async def visit() -> tuple[list[FetchError | Page], float]:
        outcomes = []
        for _ in range(10):
            outcomes.append(await site.fetch())
            await asyncio.sleep(60)  # the breaker closes meanwhile: this is about the time-out
        return [*outcomes, await site.fetch()], site.fetcher.timeouts.now.fetch

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

    assert site.fetcher.timeouts.now.fetch == fetch_seconds


# --- retries --------------------------------------------------------------------------------------------------------


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
def test_transient_errors_are_retried_after_the_stated_delays(error: FetchError) -> None:
    site = Site(saying(error, error, b"{}"))

    outcome, took = _visit(site)

    assert isinstance(outcome, Page)
    assert (outcome.retries, took, site.asked) == (2, 3, 3)
    assert [event.wait_seconds for event in site.sink.events if isinstance(event, RequestRetried)] == [1, 2]


def test_a_page_that_came_at_once_was_not_retried() -> None:
    site = Site(saying(b"{}"))

    outcome, _ = _visit(site)

    assert isinstance(outcome, Page)
    assert (outcome.retries, site.retries, site.sink.events) == (0, 0, [])


@pytest.mark.req("FR-002", "FR-017")
def test_the_network_policy_asks_five_times_more_and_then_says_the_last_error() -> None:
    site = Site(saying(*[FAILED] * 5, SourceUnreachable("reset")), retry=policies().network, breaker=PATIENT)
    for _ in range(10):
        site.fetcher.budget.earn()

    outcome, took = _visit(site)

    assert isinstance(outcome, SourceUnreachable)
    assert (outcome.retries, took, site.asked) == (5, 31, 6)


def test_when_all_attempts_are_used_up_the_last_error_says_how_many_there_were() -> None:
    site = Site(saying(FAILED))

    outcome, took = _visit(site)

    assert isinstance(outcome, SourceFailed)
    assert (outcome.retries, took, site.asked) == (2, 3, 3)
    assert str(outcome) == "crex GET https://crex.com/live: answered 502"


def test_each_retry_is_reported_without_the_query() -> None:
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
def test_errors_that_a_retry_cannot_fix_are_not_retried(error: FetchError) -> None:
    site = Site(saying(error))

    outcome, took = _visit(site)

    assert type(outcome) is type(error)
    assert (took, site.asked) == (0, 1)


@pytest.mark.req("FR-017")
def test_all_attempts_together_end_after_45_seconds() -> None:
    site = Site(saying(b"{}"), delay_seconds=3600, breaker=PATIENT)
    for _ in range(10):  # a slow site: 15 s for each attempt
        site.fetcher.timeouts.observe(3.0)

    outcome, took = _visit(site)

    assert isinstance(outcome, FetchTimeout)
    assert (took, outcome.retries) == (45, 2)
    assert outcome.reason == "no complete response within 45 s"


def test_the_deadline_over_all_attempts_says_nothing_about_the_site() -> None:
    retry = RetryPolicy(attempts=1, total_seconds=5)
    site = Site(saying(b"{}"), delay_seconds=3600, retry=retry, breaker=target_policy(threshold=1))

    outcomes = run_virtual(site.fetch_often(15))

    assert types(outcomes) == ["FetchTimeout"] * 15
    assert (site.asked, site.rejected, site.sink.events) == (15, 0, [])


def test_a_failure_that_says_after_how_long_is_asked_again_just_then() -> None:
    site = Site(saying(SourceFailed("503", retry_after_seconds=20), b"{}"))

    outcome, took = _visit(site)

    assert isinstance(outcome, Page)
    assert (outcome.retries, took) == (1, 20)


@pytest.mark.parametrize("seed", range(20))
def test_a_retry_after_the_rate_limit_is_never_rejected_by_it(seed: int) -> None:
    site = Site(saying(SourceFailed("503", retry_after_seconds=20), b"{}"), random=Random(seed))

    outcome, took = _visit(site)

    assert isinstance(outcome, Page)
    assert 20 <= took <= 20 * 1.1 * 1.25


def test_a_refusal_is_raised_at_once_and_not_retried() -> None:
    site = Site(saying(SourceRefused("429", retry_after_seconds=20), b"{}"))

    outcome, took = _visit(site)

    assert isinstance(outcome, SourceRefused)
    assert (took, site.asked, outcome.retry_after_seconds) == (0, 1, 20)


def test_a_retry_after_beyond_the_deadline_is_raised_at_once() -> None:
    site = Site(saying(SourceFailed("503", retry_after_seconds=60), b"{}"))

    outcome, took = _visit(site)

    assert isinstance(outcome, SourceFailed)
    assert (took, site.asked, outcome.retry_after_seconds) == (0, 1, 60)


def test_if_the_circuit_opens_meanwhile_the_real_error_is_raised_without_a_wait() -> None:
    site = Site(saying(FAILED), breaker=target_policy(threshold=2))

    outcome, took = _visit(site)

    assert isinstance(outcome, SourceFailed)
    assert (outcome.retries, took, site.asked) == (1, 1, 2)


def test_if_the_circuit_opens_during_a_wait_the_real_error_is_raised() -> None:
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

    assert site.asked == 500 + site.retries
    assert 100 <= site.retries <= 103


def test_rejected_requests_earn_no_retries() -> None:
    site = Site(saying(SourceRefused("429", retry_after_seconds=900)))

    run_virtual(site.fetch_often(100))

    assert site.asked == 1
    assert [site.fetcher.budget.spend() for _ in range(4)] == [True, True, True, False]


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


# --- the circuit of a host ------------------------------------------------------------------------------------------


RESET = SourceUnreachable("reset")


class Net:
    """A way to the site that can be cut."""

    is_cut = True

    def __call__(self, _request: FetchRequest) -> ScriptedReply:
        return RESET if self.is_cut else b"{}"


def _breaker_events(site: Site) -> list[Telemetry]:
    return [event for event in site.sink.events if event.name.startswith("circuit_")]


@pytest.mark.req("FR-003")
def test_five_connection_failures_in_a_row_open_the_circuit_and_nothing_more_is_sent() -> None:
    site = Site(saying(RESET), retry=ONCE)

    outcomes = run_virtual(site.fetch_often(8))

    assert types(outcomes) == ["SourceUnreachable"] * 5 + ["CircuitOpen"] * 3
    assert (site.asked, site.rejected) == (5, 3)
    assert _breaker_events(site) == [
        CircuitOpened(scope="target", subject="crex.com", reason="5 failures in a row, the last: reset", seconds=60)
    ]


def test_a_rejected_request_says_for_how_long() -> None:
    site = Site(saying(RESET), retry=ONCE)

    async def visit() -> Page | FetchError:
        await site.fetch_often(5)
        await asyncio.sleep(2)
        return await site.fetch()

    held = run_virtual(visit())

    assert isinstance(held, CircuitOpen)
    assert held.retry_after_seconds == 58
    assert str(held) == "crex GET https://crex.com/live: circuit open for crex.com, 58.0 s left"


@pytest.mark.parametrize("error", [PageNotFound("404"), SourceRefused("403"), SourceRefused("429")])
def test_any_response_of_the_site_counts_as_a_working_connection(error: FetchError) -> None:
    site = Site(saying(*[RESET] * 4, error, *[RESET] * 4, b"{}"), retry=ONCE)

    outcomes = run_virtual(site.fetch_often(10))

    assert "CircuitOpen" not in types(outcomes)
    assert site.asked == 10


@pytest.mark.req("FR-003")
def test_after_its_time_the_host_is_tried_and_five_good_answers_close_the_circuit() -> None:
    net = Net()
    site = Site(net, retry=ONCE)

    async def visit() -> list[Page | FetchError]:
        await site.fetch_often(5)
        await asyncio.sleep(60)
        net.is_cut = False
        return await site.fetch_often(5)

    outcomes = run_virtual(visit())

    assert types(outcomes) == ["Page"] * 5
    assert _breaker_events(site)[1:] == [
        CircuitHalfOpened(scope="target", subject="crex.com"),
        CircuitClosed(scope="target", subject="crex.com", rejected=0),
    ]


@pytest.mark.req("FR-003")
def test_while_the_circuit_is_open_one_canary_goes_out_every_interval() -> None:
    site = Site(saying(RESET), retry=ONCE)

    async def visit() -> list[float]:
        await site.fetch_often(5)
        sent = []
        while now() < 20:
            await asyncio.sleep(0.125)
            before = site.asked
            await asyncio.gather(*(site.fetch() for _ in range(50)))
            sent += [now()] * (site.asked - before)
        return sent

    assert run_virtual(visit()) == [2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5, 20.0]


@pytest.mark.req("FR-003")
def test_a_canary_that_comes_back_opens_all_hosts_of_the_source_by_half() -> None:
    net = Net()
    site = Site(net, retry=ONCE)

    async def visit() -> tuple[tuple[str, ...], tuple[str, ...], Page | FetchError]:
        await site.fetch_often(5)
        await site.fetch_often(5, API_REQUEST)
        before = site.open_hosts()
        net.is_cut = False
        await asyncio.sleep(2.5)
        await site.fetch(REQUEST)
        return before, site.open_hosts(), await site.fetch(API_REQUEST)

    before, after, outcome = run_virtual(visit())

    assert (before, after) == (("crex.com", "api.crex.com"), ())
    assert isinstance(outcome, Page)
    assert _breaker_events(site)[2:] == [
        CircuitHalfOpened(scope="target", subject="crex.com"),
        CircuitHalfOpened(scope="target", subject="api.crex.com"),
    ]


@pytest.mark.req("FR-003")
def test_a_half_open_circuit_admits_no_more_than_five_at_once_until_it_closes() -> None:
    net = Net()
    site = Site(net, retry=ONCE)

    async def visit() -> list[Page | FetchError]:
        await site.fetch_often(5)
        await asyncio.sleep(60)
        net.is_cut = False
        site.takes(1.0)
        return await asyncio.gather(*(site.fetch() for _ in range(50)))

    outcomes = run_virtual(visit())

    assert types(outcomes).count("Page") == 5
    held = [outcome.reason for outcome in outcomes if isinstance(outcome, CircuitOpen)]
    assert held == ["circuit half open for crex.com: probing"] * 45
    assert _breaker_events(site)[-1] == CircuitClosed(scope="target", subject="crex.com", rejected=45)


def test_a_late_answer_from_before_the_cut_does_not_close_the_circuit() -> None:
    net = Net()
    site = Site(net, retry=ONCE)

    async def visit() -> tuple[str, bool]:
        net.is_cut = False
        site.takes(5.0)
        late = asyncio.create_task(site.fetch())
        await asyncio.sleep(1)
        net.is_cut = True
        site.takes(0.0)
        await site.fetch_often(5)
        net.is_cut = False
        return type(await late).__name__, "crex.com" in site.open_hosts()

    assert run_virtual(visit()) == ("Page", True)


def test_slow_responses_open_the_circuit_and_are_its_reason() -> None:
    site = Site(saying(b"{}"), delay_seconds=9.0, retry=ONCE)

    outcomes = run_virtual(site.fetch_often(6))

    assert types(outcomes) == ["Page"] * 5 + ["CircuitOpen"]
    opened = next(event for event in site.sink.events if isinstance(event, CircuitOpened))
    assert opened.reason == "5 failures in a row, the last: answered after 9.0 s"


def test_a_cancelled_probe_gives_its_place_back() -> None:
    net = Net()
    site = Site(net, retry=ONCE)

    async def visit() -> Page | FetchError:
        await site.fetch_often(5)
        await asyncio.sleep(60)
        net.is_cut = False
        site.takes(5.0)
        probes = [asyncio.create_task(site.fetch()) for _ in range(5)]
        await asyncio.sleep(1)
        for probe in probes:
            probe.cancel()
        await asyncio.wait(probes)
        return await site.fetch()

    assert isinstance(run_virtual(visit()), Page)


def test_an_error_that_no_fetcher_should_raise_gives_the_place_back_too() -> None:
    answers = [RESET] * 5 + [None] * 5 + [b"{}"]

    def script(_request: FetchRequest) -> ScriptedReply:
        answer = answers.pop(0)
        if answer is None:
            raise LayoutChanged("a bug in a third party's fetcher")
        return answer

    site = Site(script, retry=ONCE)

    async def visit() -> Page | FetchError:
        await site.fetch_often(5)
        await asyncio.sleep(60)
        for _ in range(5):
            with pytest.raises(LayoutChanged):
                await site.fetch()
        return await site.fetch()

    assert isinstance(run_virtual(visit()), Page)


# --- Retry-After --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "rested"),
    [
        (0.0, 1.0),
        (30.0, 30.0),
        (864_000.0, 900.0),  # ten days
    ],
)
def test_one_retry_after_postpones_all_requests_of_the_source(asked: float, rested: float) -> None:
    site = Site(saying(SourceRefused("429", retry_after_seconds=asked), b"{}"), retry=ONCE)

    async def visit() -> list[Page | FetchError]:
        first = await site.fetch()
        at_once = await site.fetch(API_REQUEST)
        await asyncio.sleep(rested - 0.01)
        almost = await site.fetch()
        await asyncio.sleep(0.02)
        return [first, at_once, almost, await site.fetch()]

    first, at_once, almost, after = run_virtual(visit())

    assert types([first, at_once, almost, after]) == ["SourceRefused", "CircuitOpen", "CircuitOpen", "Page"]
    assert isinstance(at_once, CircuitOpen)
    assert at_once.retry_after_seconds == rested
    assert at_once.reason == f"rate-limited: the site sent Retry-After, {rested:.1f} s left"
    assert (site.asked, site.rejected) == (2, 2)


def test_the_wait_is_a_little_longer_than_retry_after_and_never_shorter() -> None:
    waits = []
    for seed in range(50):
        site = Site(saying(SourceFailed("503", retry_after_seconds=100)), retry=ONCE, random=Random(seed))

        async def visit(site: Site = site) -> float:
            await site.fetch()
            return site.rest_seconds()

        waits.append(run_virtual(visit()))

    assert all(100 <= rest <= 110 for rest in waits)
    assert max(waits) - min(waits) > 5


def test_the_longest_retry_after_counts() -> None:
    answers = [SourceFailed("503", retry_after_seconds=seconds) for seconds in (30, 5)]
    site = Site(saying(*answers), delay_seconds=1, retry=ONCE)

    async def visit() -> float:
        await asyncio.gather(site.fetch(), site.fetch(API_REQUEST))
        return site.rest_seconds()

    assert run_virtual(visit()) == 30


def test_a_refusal_without_retry_after_postpones_nothing() -> None:
    site = Site(saying(SourceRefused("403"), b"{}"))

    assert types(run_virtual(site.fetch_often(2))) == ["SourceRefused", "Page"]


def test_an_open_circuit_is_no_retry_after() -> None:
    site = Site(saying(FetchTimeout("late")), retry=ONCE)

    async def visit() -> float:
        await site.fetch_often(7)
        return site.rest_seconds()

    assert run_virtual(visit()) == 0


def test_a_postponed_request_uses_up_neither_the_canary_nor_a_probe() -> None:
    site = Site(saying(*[RESET] * 4, SourceFailed("503", retry_after_seconds=5), b"{}"), retry=ONCE)

    async def visit() -> list[Page | FetchError]:
        await site.fetch_often(5)
        await asyncio.sleep(4)
        held = await site.fetch()  # would be the canary
        await asyncio.sleep(1.1)
        return [held, await site.fetch()]

    assert types(run_virtual(visit())) == ["CircuitOpen", "Page"]


# --- a restart ------------------------------------------------------------------------------------------------------


def stored_pauses() -> StoredPauses:
    return StoredPauses(MemoryPauses(), clock=VirtualClock(), boot=lambda: "boot")


@pytest.mark.req("FR-017")
def test_a_restart_does_not_shorten_retry_after() -> None:
    async def run() -> tuple[Site, list[str]]:
        pauses, outcomes = stored_pauses(), []
        first = Site(saying(SourceRefused("429", retry_after_seconds=30)), pauses=pauses.of("crex"))
        await first.fetch()
        await asyncio.sleep(12)
        restarted = Site(saying(b"{}"), pauses=pauses.of("crex"))
        for _ in range(2):
            outcomes += types([await restarted.fetch(), await restarted.fetch(API_REQUEST)])
            await asyncio.sleep(17.9)
        outcomes += types([await restarted.fetch()])
        await asyncio.sleep(0.2)
        return restarted, [*outcomes, *types([await restarted.fetch()])]

    restarted, outcomes = run_virtual(run())

    assert outcomes == ["CircuitOpen"] * 2 + ["CircuitOpen"] * 2 + ["Page"] * 2
    assert restarted.sink.events == [
        SourceRateLimited(source="crex", seconds=18.0, reason="429; kept over a restart"),
    ]


@pytest.mark.req("FR-017")
def test_a_kept_retry_after_is_never_longer_than_fifteen_minutes() -> None:
    async def run() -> float:
        pauses = stored_pauses()
        pauses.of("crex").begin(PauseKind.RETRY_AFTER, "crex", 1e9, "a clock that was set back")
        return Site(saying(b"{}"), pauses=pauses.of("crex")).rest_seconds()

    assert run_virtual(run()) == 900


@pytest.mark.req("FR-003")
def test_a_restart_keeps_the_open_circuit_of_a_host_with_its_canary() -> None:
    async def run() -> tuple[Site, list[str], StoredPauses]:
        pauses = stored_pauses()
        first = Site(saying(SourceUnreachable("refused")), retry=ONCE, pauses=pauses.of("crex"))
        await first.fetch_often(5)
        await asyncio.sleep(20)
        restarted = Site(saying(b"{}"), retry=ONCE, pauses=pauses.of("crex"))
        outcomes = types(await restarted.fetch_often(3))
        opened = restarted.open_hosts()
        await asyncio.sleep(2.5)
        outcomes += types(await restarted.fetch_often(5))
        assert opened == ("crex.com",)
        assert not restarted.open_hosts()
        return restarted, outcomes, pauses

    restarted, outcomes, pauses = run_virtual(run())

    assert outcomes == ["CircuitOpen"] * 3 + ["Page"] * 5
    assert [event.name for event in restarted.sink.events] == ["circuit_opened", "circuit_half_open", "circuit_closed"]
    [opened] = [event for event in restarted.sink.events if isinstance(event, CircuitOpened)]
    assert (opened.scope, opened.subject, opened.seconds) == ("target", "crex.com", 40)
    assert opened.reason == "5 failures in a row, the last: refused; kept over a restart"
    assert not pauses.of("crex").former  # nothing is kept of a circuit that has closed


@pytest.mark.req("FR-003")
def test_a_restart_after_a_canary_succeeded_goes_on_with_probes() -> None:
    async def run() -> tuple[list[str], tuple[str, ...]]:
        pauses = stored_pauses()
        answers = [SourceUnreachable("refused")] * 5 + [b"{}"]
        first = Site(saying(*answers), retry=ONCE, pauses=pauses.of("crex"))
        await first.fetch_often(5)
        await asyncio.sleep(2.5)
        await first.fetch()
        restarted = Site(saying(SourceUnreachable("refused")), retry=ONCE, pauses=pauses.of("crex"))
        return types(await restarted.fetch_often(2)), restarted.open_hosts()

    assert run_virtual(run()) == (["SourceUnreachable", "CircuitOpen"], ("crex.com",))


# --- replacing the fetcher ------------------------------------------------------------------------------------------


class Numbered(ScriptedFetcher):
    """Answers with its number after a second, and knows how often it was closed."""

    def __init__(self, number: int) -> None:
        super().__init__(lambda _: b"%d" % number, delay_seconds=1.0)
        self.closed = 0

    async def aclose(self) -> None:
        self.closed += 1
        await super().aclose()


class Workbench:
    """A renewable fetcher, and all that it has made."""

    def __init__(self) -> None:
        self.made: list[Numbered] = []
        self.fetcher = ReplaceableFetcher(self._make)

    def _make(self) -> Numbered:
        self.made.append(Numbered(len(self.made)))
        return self.made[-1]

    @property
    def closed(self) -> list[int]:
        return [each.closed for each in self.made]

    def begin(self) -> asyncio.Task[Page]:
        return asyncio.create_task(self.fetcher.fetch(REQUEST))


def test_new_requests_use_the_new_fetcher_and_running_ones_the_old() -> None:
    async def run() -> None:
        bench = Workbench()
        first, second = bench.begin(), bench.begin()
        await asyncio.sleep(0.5)

        await bench.fetcher.replace()
        third = bench.begin()
        under_way = bench.closed
        bodies = [(await each).body for each in (first, second, third)]

        assert bodies == [b"0", b"0", b"1"]
        assert (under_way, bench.closed) == ([0, 0], [1, 0])

    run_virtual(run())


def test_an_idle_fetcher_is_closed_at_once() -> None:
    async def run() -> None:
        bench = Workbench()
        await bench.fetcher.fetch(REQUEST)

        await bench.fetcher.replace()

        assert bench.closed == [1, 0]
        assert (await bench.fetcher.fetch(REQUEST)).body == b"1"

    run_virtual(run())


def test_an_old_fetcher_is_closed_after_its_last_request_even_if_that_is_cancelled() -> None:
    async def run() -> None:
        bench = Workbench()
        stuck = bench.begin()
        await asyncio.sleep(0.5)
        await bench.fetcher.replace()

        stuck.cancel()
        await asyncio.wait([stuck])

        assert (stuck.cancelled(), bench.closed) == (True, [1, 0])

    run_virtual(run())


def test_repeated_replacement_leaves_only_the_last_open() -> None:
    async def run() -> None:
        bench = Workbench()
        tasks = []
        for _ in range(5):
            tasks.append(bench.begin())
            await asyncio.sleep(0.1)
            await bench.fetcher.replace()
        await asyncio.wait(tasks)

        assert bench.closed == [1, 1, 1, 1, 1, 0]

    run_virtual(run())


def test_a_new_fetcher_that_cannot_be_built_leaves_the_old_in_place() -> None:
    made: list[Numbered] = []

    def make() -> Numbered:
        if made:
            raise OSError("no more files")
        made.append(Numbered(0))
        return made[0]

    async def run() -> None:
        fetcher = ReplaceableFetcher(make)

        with pytest.raises(OSError, match="no more files"):
            await fetcher.replace()

        assert (await fetcher.fetch(REQUEST)).body == b"0"

    run_virtual(run())


def test_closing_closes_all_open_fetchers() -> None:
    async def run() -> None:
        bench = Workbench()
        task = bench.begin()
        await asyncio.sleep(0.5)
        await bench.fetcher.replace()

        await bench.fetcher.aclose()

        assert bench.closed == [1, 1]
        assert (await task).body == b"0"
        with pytest.raises(SourceUnreachable):
            await bench.fetcher.fetch(REQUEST)

    run_virtual(run())


# --- the budget for retries ----------------------------------------------------------------------------------------


def test_a_budget_begins_with_three_retries_and_earns_one_by_five_requests() -> None:
    budget = RetryBudget()

    at_first = [budget.spend() for _ in range(4)]
    for _ in range(5):
        budget.earn()
    later = [budget.spend() for _ in range(2)]

    assert (at_first, later) == ([True, True, True, False], [True, False])


def test_a_long_quiet_time_saves_up_ten_retries_and_no_more() -> None:
    budget = RetryBudget()

    for _ in range(10_000):
        budget.earn()

    assert sum(budget.spend() for _ in range(100)) == 10


@given(st.lists(st.booleans(), max_size=400), st.integers(0, 400))
def test_the_retries_of_any_stretch_stay_below_a_fifth_of_its_traffic(steps: list[bool], start: int) -> None:
    budget = RetryBudget()
    retries: list[int] = []

    for is_first in steps:
        if is_first:
            budget.earn()
        retries.append(0 if is_first else budget.spend())

    firsts = sum(steps)
    assert sum(retries) <= 3 + firsts / 5
    assert sum(retries[start:]) <= 10 + sum(steps[start:]) / 5
