"""The cadence follows errors, the speed of the site, and play."""

from datetime import timedelta
from itertools import pairwise

import pytest
from curl_cffi.requests import AsyncSession

from tests.acceptance.harness import Recording, Sample, ScenarioRun, assert_nothing_lost, ref, run_scenario

pytestmark = pytest.mark.timeout(240)

INTERVAL_SECONDS = 0.25
BUSY_SECONDS = 0.2
BREAK_SECONDS = 3.0
CALM_SECONDS = 6.0
QUICKER = {"POLLING_INTERVAL_SECONDS": f"{INTERVAL_SECONDS:g}", "BUSY_INTERVAL_SECONDS": f"{BUSY_SECONDS:g}"}


# --- one match has errors ------------------------------------------------------------------------------------


async def errors_of_one_match(run: ScenarioRun) -> None:
    key, *_ = await run.in_play()
    run.subjects = [ref(key)]
    await run.inject_faults({"kind": "drop", "match": key})
    await run.until_logged("cadence.changed", ref=ref(key), interval_seconds=8 * INTERVAL_SECONDS)
    run.notes["metrics"] = await _metrics(run)
    run.mark("cleared")
    await run.clear_faults()
    cleared = run.marks["cleared"]
    await run.until(
        lambda: any(
            event["reason"] != "errors" and event["at"] > cleared
            for event in run.logged("cadence.changed", ref=ref(key))
        ),
        "its pace is back",
        60,
    )


async def _metrics(run: ScenarioRun) -> str:
    port = run.logged("metrics.served")[-1]["port"]
    async with AsyncSession(trust_env=False) as session:
        return str((await session.get(f"http://127.0.0.1:{port}/metrics")).text)


@pytest.fixture(scope="module")
def errors() -> Recording:
    settings = QUICKER | {
        "RETRY_BASE_DELAY_SECONDS": "0.05",
        "CALM_AFTER_ERRORS_SECONDS": f"{CALM_SECONDS:g}",
        # The one match's failures must not count for the way to the site.
        "CIRCUIT_BREAKER_THRESHOLD": "50",
        "ENABLE_PROMETHEUS_METRICS": "true",
        "PROMETHEUS_PORT": "0",
    }
    return run_scenario(errors_of_one_match, matches=5, speed=20, seed=3, settings=settings)


@pytest.mark.req("US5.1", "FR-022")
def test_many_errors_slow_a_match_step_by_step_and_calm_brings_its_pace_back(errors: Recording) -> None:
    changes = errors.logged("cadence.changed", ref=errors.subjects[0])
    slowed = [event for event in changes if event["reason"] == "errors"]
    back = next(event for event in changes if event["reason"] != "errors" and event["at"] > slowed[-1]["at"])
    last_error = [event for event in errors.logged("poll.failed", ref=errors.subjects[0]) if event["at"] < back["at"]][
        -1
    ]

    assert [event["interval_seconds"] for event in slowed] == [factor * INTERVAL_SECONDS for factor in (2, 4, 8)]
    assert back["interval_seconds"] <= INTERVAL_SECONDS
    assert (back["at"] - last_error["at"]).total_seconds() >= CALM_SECONDS - 0.1
    assert {event["ref"] for event in errors.logged("cadence.changed", reason="errors")} == set(errors.subjects)
    assert_nothing_lost(errors.verdict)


@pytest.mark.req("US5.1")
def test_polls_of_a_slowed_match_are_as_far_apart_as_logged(errors: Recording) -> None:
    name = errors.subjects[0]
    slowest = errors.logged("cadence.changed", ref=name, interval_seconds=8 * INTERVAL_SECONDS)[0]
    looks = [event["at"] for event in errors.events if event.get("ref") == name and "poll." in event["event"]]
    later = [at for at in looks if slowest["at"] <= at]
    gaps = [(later_at - at).total_seconds() for at, later_at in pairwise(later)]

    # A slow poll brings the next one nearer; one of the three may be slow.
    assert sorted(gaps[:3])[1] >= 8 * INTERVAL_SECONDS * 0.8


@pytest.mark.req("US3.4", "FR-016")
def test_more_than_ten_errors_a_minute_are_logged_with_their_types_counted_and_alerted(errors: Recording) -> None:
    name = errors.subjects[0]
    [burst] = errors.logged("errors.rate_high")
    alerts = [alert for alert in errors.alerts if alert.key == f"errors.rate_high {name}"]
    lines = errors.notes["metrics"].splitlines()
    counted = [line for line in lines if line.startswith("scraper_errors_total{") and f'match_id="{name}"' in line]

    assert (burst["ref"], burst["severity"]) == (name, "ERROR")
    assert burst["errors"] > 10
    assert sum(burst["types"].values()) == burst["errors"]
    assert burst["types"].keys() == {"SourceUnreachable"}
    assert len(alerts) == 1
    assert alerts[0].is_signed
    assert ['error_type="SourceUnreachable"' in line for line in counted] == [True]
    assert float(counted[0].rpartition(" ")[2]) > 3


# --- the site is slow ----------------------------------------------------------------------------------------


async def a_slow_site(run: ScenarioRun) -> None:
    await run.inject_faults({"kind": "latency", "seconds": 2.1})
    await run.until_logged("timeouts.changed", page_seconds=45.0)
    run.mark("cleared")
    await run.clear_faults()
    await run.until(
        lambda: any(event["at"] > run.marks["cleared"] for event in run.logged("timeouts.changed")), "fast again", 60
    )


@pytest.fixture(scope="module")
def slow() -> Recording:
    return run_scenario(a_slow_site, matches=12, speed=20, seed=3, settings={"FETCH_TIMEOUT_SECONDS": "20"})


@pytest.mark.req("US5.2", "FR-023")
def test_a_site_slower_than_two_seconds_is_given_half_as_much_time_again(slow: Recording) -> None:
    [given, *_] = slow.logged("timeouts.changed", page_seconds=45.0)
    after = next(event for event in slow.logged("timeouts.changed") if event["at"] > slow.marks["cleared"])

    assert given["mean_seconds"] > 2.0
    assert (given["navigation_seconds"], given["selector_seconds"], given["fetch_seconds"]) == (45.0, 10.0, 30.0)
    assert (after["page_seconds"], after["selector_seconds"]) <= (30.0, 5.0)
    assert slow.logged("poll.failed", error_type="FetchTimeout") == []
    assert_nothing_lost(slow.verdict)


# --- play -------------------------------------------------------------------------------------------------------


async def a_break_and_a_busy_period(run: ScenarioRun) -> None:
    sample = await run.until_seen(lambda sample: bool(_pausing(sample)), "a break", within=60)
    [name, *_] = run.subjects = _pausing(sample)
    began = run.mark("break")
    await run.until(
        lambda: any(event["at"] > began for event in run.logged("update.stored", ref=name)), "play goes on", 60
    )
    await run.until_seen(lambda sample: sample.health_of(name)["pace"] != "break", "its pace is as before")
    await run.until(lambda: {"busy", "baseline"} <= _paces_in_play(run.samples).keys(), "busy and not", 60)


def _paces_in_play(samples: list[Sample]) -> dict[str, float]:
    shown = [entry for sample in samples for entry in sample.health["per_match_status"]]
    return {entry["pace"]: entry["interval_seconds"] for entry in shown if entry["status"] == "live"}


def _pausing(sample: Sample) -> list[str]:
    return [entry["match_id"] for entry in sample.health["per_match_status"] if entry["pace"] == "break"]


@pytest.fixture(scope="module")
def in_play() -> Recording:
    return run_scenario(
        a_break_and_a_busy_period,
        matches=8,
        speed=75,
        seed=8,
        settings=QUICKER | {"BREAK_INTERVAL_SECONDS": f"{BREAK_SECONDS:g}"},
    )


@pytest.mark.req("US5.3", "FR-024")
def test_a_match_in_a_break_is_polled_rarely_until_the_first_change(in_play: Recording) -> None:
    name, began = in_play.subjects[0], in_play.marks["break"]
    paused = [event for event in in_play.logged("cadence.changed", ref=name, reason="break") if event["at"] <= began][
        -1
    ]
    back = next(event for event in in_play.logged("cadence.changed", ref=name) if event["at"] > paused["at"])
    # The event that starts the break is logged by the same poll, and the next poll is far off.
    next_poll = paused["at"] + timedelta(seconds=BREAK_SECONDS / 2)
    changed = next(event for event in in_play.logged("update.stored", ref=name) if event["at"] > next_poll)
    during = [sample for sample in in_play.samples if name in _pausing(sample)]

    assert paused["interval_seconds"] == BREAK_SECONDS
    assert back["interval_seconds"] <= INTERVAL_SECONDS
    assert abs((back["at"] - changed["at"]).total_seconds()) < 2.5
    assert during
    assert not [reason for sample in during for reason in sample.health["reasons"] if name in reason]
    assert_nothing_lost(in_play.verdict)


@pytest.mark.req("US5.4", "FR-022")
def test_a_match_with_news_in_every_second_poll_is_polled_faster(in_play: Recording) -> None:
    intervals = _paces_in_play(in_play.samples)

    assert intervals["busy"] == BUSY_SECONDS
    assert intervals["baseline"] == INTERVAL_SECONDS
