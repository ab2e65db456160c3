"""The whole site goes wrong: its pages change, it refuses, it asks for rest. It is left alone, and tried again."""

import asyncio
import re
from datetime import timedelta

import pytest

from tests.acceptance.harness import FEED, LIST, Scene, Story, assert_nothing_lost, play

pytestmark = pytest.mark.timeout(240)

#: What is under way when the admission closes may still arrive.
UNDER_WAY_SECONDS = 1.0


# --- every page has another shape ----------------------------------------------------------------------------

PROBE_SECONDS = 2.0
BROKEN_SECONDS = 8.0


async def another_layout(scene: Scene) -> None:
    await scene.break_site(
        {"kind": "renamed", "path": FEED, "field": "type"},
        {"kind": "renamed", "path": "/api/", "field": "j"},
    )
    await scene.until_told("layout.broken", resource="balls")
    await scene.until_told("layout.broken", resource="list")
    scene.mark("broken")
    await asyncio.sleep(BROKEN_SECONDS)
    scene.mark("mended")
    await scene.mend_site()
    await scene.until_told("layout.recovered", resource="list")
    await scene.until_told("layout.recovered", resource="balls")


@pytest.fixture(scope="module")
def layout() -> Story:
    settings = {
        "POLLING_INTERVAL_SECONDS": "0.25",
        "CALM_AFTER_ERRORS_SECONDS": "2",
        "LAYOUT_PROBE_SECONDS": f"{PROBE_SECONDS:g}",
        # Matches that are paused ask for nothing, and nothing would be known of their pages.
        "PAUSE_THRESHOLD": "100",
    }
    return play(another_layout, matches=6, speed=20, seed=3, settings=settings)


@pytest.mark.req("EC1")
def test_pages_that_cannot_be_read_are_told_once_kept_and_alerted(layout: Story) -> None:
    for resource in ("balls", "list"):
        [broken] = layout.told("layout.broken", resource=resource)
        [alert, relief] = [each for each in layout.alerts if each.key == f"layout.broken crex {resource}"]

        assert (broken["severity"], broken["failures"]) == ("CRITICAL", 11)
        assert re.fullmatch(rf"storage/error_pages/\d{{8}}T\d{{9}}Z_crex-{resource}\.html", broken["page"])
        assert layout.files[broken["page"].removeprefix("storage/")]
        assert (alert.body["severity"], alert.body["resolved"], alert.is_signed) == ("CRITICAL", False, True)
        assert relief.body["resolved"]


@pytest.mark.req("EC1")
def test_a_changed_site_is_only_probed_and_gone_on_with_by_itself(layout: Story) -> None:
    left_alone = layout.marks["broken"] + timedelta(seconds=UNDER_WAY_SECONDS)
    probes = layout.reached(left_alone, BROKEN_SECONDS - UNDER_WAY_SECONDS)

    assert {note["path"] for note in probes} == {LIST, FEED}
    for path in (LIST, FEED):
        assert len([note for note in probes if note["path"] == path]) <= BROKEN_SECONDS / PROBE_SECONDS + 1
    assert layout.told("task.failed") == []
    assert_nothing_lost(layout.verdict)


# --- the site refuses, and asks for rest ---------------------------------------------------------------------

LEFT_ALONE_SECONDS = 5.0
REST_SECONDS = 5


async def refusals_and_a_wish(scene: Scene) -> None:
    refused = [{"kind": "status", "status": 403, "match": key} for key in await scene.in_play()]
    await scene.break_site(*refused)
    await scene.until_told("circuit_opened", scope="source")
    await scene.mend_site()
    await scene.until_told("circuit_closed", scope="source")
    failed, wish = len(scene.told("listing.failed")), {"retry_after_seconds": REST_SECONDS, "path": LIST}
    await scene.break_site({"kind": "status", "status": 429, **wish})
    await scene.until_told("listing.failed", times=failed + 1)
    await scene.mend_site()
    await scene.until_told("listing.read", times=len(scene.told("listing.read")) + 1)


@pytest.fixture(scope="module")
def refusing() -> Story:
    settings = {
        "POLLING_INTERVAL_SECONDS": "0.1",
        "CALM_AFTER_ERRORS_SECONDS": "1",
        "CIRCUIT_BREAKER_SOURCE_SECONDS": f"{LEFT_ALONE_SECONDS:g}",
        # So many matches are refused at once here that they would be paused before the site is left alone.
        "PAUSE_THRESHOLD": "100",
    }
    return play(refusals_and_a_wish, matches=12, speed=20, seed=3, settings=settings)


@pytest.mark.req("CAP-9", "FR-016")
def test_a_site_that_refuses_too_much_is_left_alone_as_a_whole(refusing: Story) -> None:
    [opened] = refusing.told("circuit_opened", scope="source")
    [closed] = refusing.told("circuit_closed", scope="source")
    reached = refusing.reached(opened["at"], LEFT_ALONE_SECONDS - UNDER_WAY_SECONDS)
    late = [note for note in reached if (note["at"] - opened["at"]).total_seconds() > UNDER_WAY_SECONDS]

    assert re.match(r"\d+ of \d+ attempts failed", opened["reason"])
    assert "answered 403" in opened["reason"]
    assert late == []
    assert (closed["at"] - opened["at"]).total_seconds() >= LEFT_ALONE_SECONDS - 0.1
    assert [alert.body["resolved"] for alert in refusing.alerts if alert.key == "circuit_opened source crex"] == [
        False,
        True,
    ]
    assert_nothing_lost(refusing.verdict)


@pytest.mark.req("FR-017")
def test_a_site_that_asks_for_rest_gets_it_from_all_matches(refusing: Story) -> None:
    wish = next(note for note in refusing.requests if note["retry_after_seconds"] == REST_SECONDS)
    reached = refusing.reached(wish["at"], REST_SECONDS)
    late = [note for note in reached if (note["at"] - wish["at"]).total_seconds() > UNDER_WAY_SECONDS]
    after = [note for note in refusing.requests if (note["at"] - wish["at"]).total_seconds() >= REST_SECONDS]

    assert late == []
    assert after
