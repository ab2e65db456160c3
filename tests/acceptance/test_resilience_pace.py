"""The pace follows the errors, the site's speed and the game."""

from datetime import timedelta
from itertools import pairwise

import pytest
from curl_cffi.requests import AsyncSession

from tests.acceptance.harness import Sample, Scene, Story, assert_nothing_lost, play, ref

pytestmark = pytest.mark.timeout(240)

INTERVAL_SECONDS = 0.25
BUSY_SECONDS = 0.2
BREAK_SECONDS = 3.0
CALM_SECONDS = 6.0
QUICKER = {"POLLING_INTERVAL_SECONDS": f"{INTERVAL_SECONDS:g}", "BUSY_INTERVAL_SECONDS": f"{BUSY_SECONDS:g}"}


# --- one match has errors ------------------------------------------------------------------------------------


async def errors_of_one_match(scene: Scene) -> None:
    key, *_ = await scene.in_play()
    scene.cast = [ref(key)]
    await scene.break_site({"kind": "drop", "match": key})
    await scene.until_told("cadence.changed", ref=ref(key), interval_seconds=8 * INTERVAL_SECONDS)
    scene.notes["metrics"] = await _metrics(scene)
    scene.mark("mended")
    await scene.mend_site()
    mended = scene.marks["mended"]
    await scene.until(
        lambda: any(
            event["reason"] != "errors" and event["at"] > mended
            for event in scene.told("cadence.changed", ref=ref(key))
        ),
        "its pace is back",
        60,
    )


async def _metrics(scene: Scene) -> str:
    port = scene.told("metrics.served")[-1]["port"]
    async with AsyncSession(trust_env=False) as session:
        return str((await session.get(f"http://127.0.0.1:{port}/metrics")).text)


@pytest.fixture(scope="module")
def errors() -> Story:
    settings = QUICKER | {
        "RETRY_BASE_DELAY_SECONDS": "0.05",
        "CALM_AFTER_ERRORS_SECONDS": f"{CALM_SECONDS:g}",
        # The one match's failures must not count for the way to the site.
        "CIRCUIT_BREAKER_THRESHOLD": "50",
        "ENABLE_PROMETHEUS_METRICS": "true",
        "PROMETHEUS_PORT": "0",
    }
    return play(errors_of_one_match, matches=5, speed=20, seed=3, settings=settings)


@pytest.mark.req("US5.1", "FR-022")
def test_many_errors_slow_a_match_step_by_step_and_calm_brings_its_pace_back(errors: Story) -> None:
    changes = errors.told("cadence.changed", ref=errors.cast[0])
    slowed = [event for event in changes if event["reason"] == "errors"]
    back = next(event for event in changes if event["reason"] != "errors" and event["at"] > slowed[-1]["at"])
    last_error = [event for event in errors.told("poll.failed", ref=errors.cast[0]) if event["at"] < back["at"]][-1]

    assert [event["interval_seconds"] for event in slowed] == [factor * INTERVAL_SECONDS for factor in (2, 4, 8)]
    assert back["interval_seconds"] <= INTERVAL_SECONDS
    assert (back["at"] - last_error["at"]).total_seconds() >= CALM_SECONDS - 0.1
    assert {event["ref"] for event in errors.told("cadence.changed", reason="errors")} == set(errors.cast)
    assert_nothing_lost(errors.verdict)


@pytest.mark.req("US5.1")
def test_the_looks_at_a_slowed_match_are_as_far_apart_as_it_says(errors: Story) -> None:
    name = errors.cast[0]
    slowest = errors.told("cadence.changed", ref=name, interval_seconds=8 * INTERVAL_SECONDS)[0]
    looks = [event["at"] for event in errors.events if event.get("ref") == name and "poll." in event["event"]]
    later = [at for at in looks if slowest["at"] <= at]
    gaps = [(later_at - at).total_seconds() for at, later_at in pairwise(later)]

    # A look that was slow itself brings the next one nearer; one of the three may be.
    assert sorted(gaps[:3])[1] >= 8 * INTERVAL_SECONDS * 0.8


@pytest.mark.req("US3.4", "FR-016")
def test_more_than_ten_errors_a_minute_are_told_with_their_types_counted_and_alerted(errors: Story) -> None:
    name = errors.cast[0]
    [crowd] = errors.told("errors.rate_high")
    alerts = [alert for alert in errors.alerts if alert.key == f"errors.rate_high {name}"]
    lines = errors.notes["metrics"].splitlines()
    counted = [line for line in lines if line.startswith("scraper_errors_total{") and f'match_id="{name}"' in line]

    assert (crowd["ref"], crowd["severity"]) == (name, "ERROR")
    assert crowd["errors"] > 10
    assert sum(crowd["types"].values()) == crowd["errors"]
    assert crowd["types"].keys() == {"SourceUnreachable"}
    assert len(alerts) == 1
    assert alerts[0].is_signed
    assert ['error_type="SourceUnreachable"' in line for line in counted] == [True]
    assert float(counted[0].rpartition(" ")[2]) > 3


# --- the site is slow ----------------------------------------------------------------------------------------


async def a_slow_site(scene: Scene) -> None:
    await scene.break_site({"kind": "latency", "seconds": 2.1})
    await scene.until_told("timeouts.changed", page_seconds=45.0)
    scene.mark("mended")
    await scene.mend_site()
    await scene.until(
        lambda: any(event["at"] > scene.marks["mended"] for event in scene.told("timeouts.changed")), "fast again", 60
    )


@pytest.fixture(scope="module")
def slow() -> Story:
    return play(a_slow_site, matches=12, speed=20, seed=3, settings={"FETCH_TIMEOUT_SECONDS": "20"})


@pytest.mark.req("US5.2", "FR-023")
def test_a_site_slower_than_two_seconds_is_given_half_as_much_time_again(slow: Story) -> None:
    [given, *_] = slow.told("timeouts.changed", page_seconds=45.0)
    after = next(event for event in slow.told("timeouts.changed") if event["at"] > slow.marks["mended"])

    assert given["mean_seconds"] > 2.0
    assert (given["navigation_seconds"], given["selector_seconds"], given["fetch_seconds"]) == (45.0, 10.0, 30.0)
    assert (after["page_seconds"], after["selector_seconds"]) <= (30.0, 5.0)
    assert slow.told("poll.failed", error_type="FetchTimeout") == []
    assert_nothing_lost(slow.verdict)


# --- the game itself -----------------------------------------------------------------------------------------


async def a_break_and_a_rush(scene: Scene) -> None:
    sample = await scene.until_seen(lambda sample: bool(_pausing(sample)), "a break", within=60)
    [name, *_] = scene.cast = _pausing(sample)
    began = scene.mark("break")
    await scene.until(
        lambda: any(event["at"] > began for event in scene.told("update.stored", ref=name)), "play goes on", 60
    )
    await scene.until_seen(lambda sample: sample.health_of(name)["pace"] != "break", "its pace is as before")
    await scene.until(lambda: {"busy", "baseline"} <= _paces_in_play(scene.samples).keys(), "busy and not", 60)


def _paces_in_play(samples: list[Sample]) -> dict[str, float]:
    shown = [entry for sample in samples for entry in sample.health["per_match_status"]]
    return {entry["pace"]: entry["interval_seconds"] for entry in shown if entry["status"] == "live"}


def _pausing(sample: Sample) -> list[str]:
    return [entry["match_id"] for entry in sample.health["per_match_status"] if entry["pace"] == "break"]


@pytest.fixture(scope="module")
def game() -> Story:
    return play(
        a_break_and_a_rush,
        matches=8,
        speed=75,
        seed=8,
        settings=QUICKER | {"BREAK_INTERVAL_SECONDS": f"{BREAK_SECONDS:g}"},
    )


@pytest.mark.req("US5.3", "FR-024")
def test_a_break_is_looked_at_rarely_and_ends_with_the_first_change(game: Story) -> None:
    name, began = game.cast[0], game.marks["break"]
    paused = [event for event in game.told("cadence.changed", ref=name, reason="break") if event["at"] <= began][-1]
    back = next(event for event in game.told("cadence.changed", ref=name) if event["at"] > paused["at"])
    # What began the break is told within the same look, and the next look is a long way off.
    next_look = paused["at"] + timedelta(seconds=BREAK_SECONDS / 2)
    changed = next(event for event in game.told("update.stored", ref=name) if event["at"] > next_look)
    during = [sample for sample in game.samples if name in _pausing(sample)]

    assert paused["interval_seconds"] == BREAK_SECONDS
    assert back["interval_seconds"] <= INTERVAL_SECONDS
    assert abs((back["at"] - changed["at"]).total_seconds()) < 2.5
    assert during
    assert not [reason for sample in during for reason in sample.health["reasons"] if name in reason]
    assert_nothing_lost(game.verdict)


@pytest.mark.req("US5.4", "FR-022")
def test_a_match_in_which_every_second_look_brings_something_is_looked_at_faster(game: Story) -> None:
    intervals = _paces_in_play(game.samples)

    assert intervals["busy"] == BUSY_SECONDS
    assert intervals["baseline"] == INTERVAL_SECONDS
