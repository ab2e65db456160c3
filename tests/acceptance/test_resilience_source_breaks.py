"""The whole site fails: its layout changes, it refuses, it limits the rate. Polling pauses, and resumes later."""

import asyncio
import re
from datetime import timedelta

import pytest

from tests.acceptance.harness import FEED, LIST, Recording, ScenarioRun, assert_nothing_lost, run_scenario

pytestmark = pytest.mark.timeout(240)

#: What is under way when the admission closes may still arrive.
UNDER_WAY_SECONDS = 1.0


# --- every page has another shape ----------------------------------------------------------------------------

PROBE_SECONDS = 2.0
BROKEN_SECONDS = 8.0


async def another_layout(run: ScenarioRun) -> None:
    await run.inject_faults(
        {"kind": "renamed", "path": FEED, "field": "type"},
        {"kind": "renamed", "path": "/api/", "field": "j"},
    )
    await run.until_logged("layout.broken", resource="balls")
    await run.until_logged("layout.broken", resource="list")
    run.mark("broken")
    await asyncio.sleep(BROKEN_SECONDS)
    run.mark("cleared")
    await run.clear_faults()
    await run.until_logged("layout.recovered", resource="list")
    await run.until_logged("layout.recovered", resource="balls")


@pytest.fixture(scope="module")
def layout() -> Recording:
    settings = {
        "POLLING_INTERVAL_SECONDS": "0.25",
        "CALM_AFTER_ERRORS_SECONDS": "2",
        "LAYOUT_PROBE_SECONDS": f"{PROBE_SECONDS:g}",
        # Matches that are paused ask for nothing, and nothing would be known of their pages.
        "PAUSE_THRESHOLD": "100",
    }
    return run_scenario(another_layout, matches=6, speed=20, seed=3, settings=settings)


@pytest.mark.req("EC1")
def test_unreadable_pages_are_reported_once_kept_and_alerted(layout: Recording) -> None:
    for resource in ("balls", "list"):
        [broken] = layout.logged("layout.broken", resource=resource)
        [alert, resolved] = [each for each in layout.alerts if each.key == f"layout.broken crex {resource}"]

        assert (broken["severity"], broken["failures"]) == ("CRITICAL", 11)
        assert re.fullmatch(rf"storage/error_pages/\d{{8}}T\d{{9}}Z_crex-{resource}\.html", broken["page"])
        assert layout.files[broken["page"].removeprefix("storage/")]
        assert (alert.body["severity"], alert.body["resolved"], alert.is_signed) == ("CRITICAL", False, True)
        assert resolved.body["resolved"]


@pytest.mark.req("EC1")
def test_a_changed_site_is_only_probed_and_polled_again_when_it_is_readable(layout: Recording) -> None:
    circuit_open = layout.marks["broken"] + timedelta(seconds=UNDER_WAY_SECONDS)
    probes = layout.requests_within(circuit_open, BROKEN_SECONDS - UNDER_WAY_SECONDS)

    assert {note["path"] for note in probes} == {LIST, FEED}
    for path in (LIST, FEED):
        assert len([note for note in probes if note["path"] == path]) <= BROKEN_SECONDS / PROBE_SECONDS + 1
    assert layout.logged("task.failed") == []
    assert_nothing_lost(layout.verdict)


# --- the site refuses, and limits the rate ---------------------------------------------------------------------

OPEN_SECONDS = 5.0
RETRY_AFTER_SECONDS = 5


async def refusals_and_a_rate_limit(run: ScenarioRun) -> None:
    refused = [{"kind": "status", "status": 403, "match": key} for key in await run.in_play()]
    await run.inject_faults(*refused)
    await run.until_logged("circuit_opened", scope="source")
    await run.clear_faults()
    await run.until_logged("circuit_closed", scope="source")
    failed, rate_limit = len(run.logged("listing.failed")), {"retry_after_seconds": RETRY_AFTER_SECONDS, "path": LIST}
    await run.inject_faults({"kind": "status", "status": 429, **rate_limit})
    await run.until_logged("listing.failed", times=failed + 1)
    await run.clear_faults()
    await run.until_logged("listing.read", times=len(run.logged("listing.read")) + 1)


@pytest.fixture(scope="module")
def refusing() -> Recording:
    settings = {
        "POLLING_INTERVAL_SECONDS": "0.1",
        "CALM_AFTER_ERRORS_SECONDS": "1",
        "CIRCUIT_BREAKER_SOURCE_SECONDS": f"{OPEN_SECONDS:g}",
        # Enough matches are refused at once for them to be paused before the circuit of the site opens.
        "PAUSE_THRESHOLD": "100",
    }
    return run_scenario(refusals_and_a_rate_limit, matches=12, speed=20, seed=3, settings=settings)


@pytest.mark.req("CAP-9", "FR-016")
def test_too_many_refusals_open_the_circuit_of_the_whole_site(refusing: Recording) -> None:
    [opened] = refusing.logged("circuit_opened", scope="source")
    [closed] = refusing.logged("circuit_closed", scope="source")
    requests_within = refusing.requests_within(opened["at"], OPEN_SECONDS - UNDER_WAY_SECONDS)
    late = [note for note in requests_within if (note["at"] - opened["at"]).total_seconds() > UNDER_WAY_SECONDS]

    assert re.match(r"\d+ of \d+ attempts failed", opened["reason"])
    assert "answered 403" in opened["reason"]
    assert late == []
    assert (closed["at"] - opened["at"]).total_seconds() >= OPEN_SECONDS - 0.1
    assert [alert.body["resolved"] for alert in refusing.alerts if alert.key == "circuit_opened source crex"] == [
        False,
        True,
    ]
    assert_nothing_lost(refusing.verdict)


@pytest.mark.req("FR-017")
def test_retry_after_pauses_all_matches_of_a_site(refusing: Recording) -> None:
    rate_limit = next(note for note in refusing.requests if note["retry_after_seconds"] == RETRY_AFTER_SECONDS)
    requests_within = refusing.requests_within(rate_limit["at"], RETRY_AFTER_SECONDS)
    late = [note for note in requests_within if (note["at"] - rate_limit["at"]).total_seconds() > UNDER_WAY_SECONDS]
    after = [
        note for note in refusing.requests if (note["at"] - rate_limit["at"]).total_seconds() >= RETRY_AFTER_SECONDS
    ]

    assert late == []
    assert after
