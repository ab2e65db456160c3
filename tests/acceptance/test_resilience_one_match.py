"""Three matches go wrong, each in its way, while others are played: each is dealt with by itself and comes back."""

from datetime import timedelta

import pytest

from tests.acceptance.harness import (
    FRESH_SECONDS,
    STATE,
    Recording,
    ScenarioRun,
    assert_nothing_lost,
    ref,
    run_scenario,
)

pytestmark = pytest.mark.timeout(240)

COOL_DOWN_SECONDS = 5.0
STALE_SECONDS = 10.0
#: Less than it takes to be stale; half of it is longer than a busy machine pauses.
TIMEOUT_SECONDS = 6.0
#: A crashed watch is back within 60 s, of which 5 min of rest became 5 s here.
BACK_WITHIN = 30.0

#: Which match of those in play suffers what.
REFUSED, GARBLED, HANGING = 0, 1, 2


async def three_matches_fail(run: ScenarioRun) -> None:
    run.subjects = subjects = [ref(key) for key in await run.in_play()]
    refused, garbled, hanging = (name.removeprefix("crex_") for name in subjects[:3])
    await run.inject_faults(
        {"kind": "status", "status": 403, "match": refused},
        {"kind": "html", "path": STATE, "match": garbled},
        {"kind": "latency", "seconds": 60, "match": hanging},
    )
    run.mark("broken")
    for name in subjects[:2]:
        await run.until_logged("circuit_opened", scope="match", subject=name)
    await run.until_logged("watch.restarted", reason="stale", ref=subjects[HANGING])
    run.mark("cleared")
    await run.clear_faults()
    cleared = run.marks["cleared"]
    await run.until_seen(lambda sample: all(sample.polled_at(match) > cleared for match in subjects), "all are fresh")
    run.mark("fresh")


@pytest.fixture(scope="module")
def recording() -> Recording:
    settings = {
        "COOL_DOWN_SECONDS": f"{COOL_DOWN_SECONDS:g}",
        "STALENESS_THRESHOLD_SECONDS": f"{STALE_SECONDS:g}",
        "FETCH_TIMEOUT_SECONDS": f"{TIMEOUT_SECONDS:g}",
    }
    return run_scenario(three_matches_fail, matches=8, speed=20, seed=3, settings=settings)


@pytest.mark.req("US1.2", "NFR-005")
def test_the_others_stay_fresh_and_what_was_broken_is_back_within_a_minute(recording: Recording) -> None:
    others = recording.subjects[3:]
    ages = [sample.age(match) for sample in recording.between("broken", "fresh") for match in others]

    assert len(others) >= 2
    assert max(ages) < FRESH_SECONDS
    assert (recording.marks["fresh"] - recording.marks["cleared"]).total_seconds() < BACK_WITHIN
    assert_nothing_lost(recording.verdict)


@pytest.mark.req("US2.2", "MON-1")
def test_five_refusals_pause_a_match_and_its_watch_restarts_after_the_pause(recording: Recording) -> None:
    name = recording.subjects[REFUSED]
    opened = recording.logged("circuit_opened", scope="match", subject=name)[0]
    restarted = recording.logged("watch.restarted", ref=name, reason="cool_down")[0]
    rest = (restarted["at"] - opened["at"]).total_seconds()
    paused = [sample.health for sample in recording.samples if sample.health_of(name)["phase"] == "paused"]

    refusals = recording.logged("poll.failed", ref=name, error_type="SourceRefused")
    assert len([event for event in refusals if event["at"] <= opened["at"]]) == 5
    assert "5 failures in a row" in opened["reason"]
    assert COOL_DOWN_SECONDS - 0.1 <= rest < COOL_DOWN_SECONDS + 8
    assert any(sample.matches[name]["phase"] == "paused" for sample in recording.samples)
    assert {health["status"] for health in paused} == {"degraded"}
    assert all(any(name in reason for reason in health["reasons"]) for health in paused)
    assert recording.samples[-1].matches[name]["phase"] == "active"
    asked = recording.requests_within(opened["at"] + timedelta(seconds=1), rest - 1.1, match=name.removeprefix("crex_"))
    assert asked == []


@pytest.mark.req("US1.4")
def test_an_unreadable_page_is_kept_and_reported_with_its_path_and_the_watch_continues(recording: Recording) -> None:
    name = recording.subjects[GARBLED]
    [row] = [each for each in recording.errors if each["ref"] == name]
    page = row["snapshot"].removeprefix("storage/")

    assert (row["error_class"], row["error_type"]) == ("MalformedBody", "parsing")
    assert row["error_message"].startswith(f"crex live {name.removeprefix('crex_')}: ")
    assert row["count"] >= 5
    assert recording.files[page].startswith(b"<!doctype html>")
    assert (row["resolved"], row["resolution_method"]) == (True, "restart")
    assert recording.logged("task.failed") == []
    assert recording.logged("process.died") == []


@pytest.mark.req("FR-001", "FR-016", "US3.2")
def test_a_match_whose_responses_hang_is_stale_and_its_watch_restarts(recording: Recording) -> None:
    name = recording.subjects[HANGING]
    [stale, *_] = recording.logged("match.stale", ref=name)
    [restarted, *_] = recording.logged("watch.restarted", ref=name, reason="stale")
    alerts = [alert for alert in recording.alerts if alert.key == f"match.stale {name}"]
    worst = max(sample.age(name) for sample in recording.between("broken", "cleared"))

    assert STALE_SECONDS - 0.1 <= stale["age_seconds"] < STALE_SECONDS + 8
    assert stale["last_update"] is not None
    assert restarted["at"] >= stale["at"]
    assert worst > STALE_SECONDS - 3
    assert [alert.body["resolved"] for alert in alerts] == [False, True]
    assert all(alert.is_signed for alert in recording.alerts)
