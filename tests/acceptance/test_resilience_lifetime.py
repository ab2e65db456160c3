"""A watch restarts at the end of its lifetime, and continues at the same ball."""

import asyncio
from itertools import pairwise

import pytest

from tests.acceptance.harness import FRESH_SECONDS, Recording, ScenarioRun, assert_nothing_lost, ref, run_scenario

pytestmark = pytest.mark.timeout(240)

#: Six hours became 3.6 seconds.
LIFETIME_HOURS = 0.001
LIFETIME_SECONDS = LIFETIME_HOURS * 3600
RESTARTS = 3


async def several_restarts(run: ScenarioRun) -> None:
    run.subjects = [ref(key) for key in await run.in_play()]
    run.mark("began")
    for name in run.subjects:
        await run.until_logged("watch.restarted", ref=name, reason="lifetime", times=RESTARTS)
    await asyncio.sleep(1)
    run.mark("ended")


@pytest.fixture(scope="module")
def recording() -> Recording:
    return run_scenario(
        several_restarts,
        matches=8,
        speed=30,
        seed=3,
        settings={"SCRAPER_MAX_LIFETIME_HOURS": f"{LIFETIME_HOURS:g}"},
    )


@pytest.mark.req("US1.3", "FR-010")
def test_every_watch_restarts_at_the_end_of_its_lifetime(recording: Recording) -> None:
    restarts = {name: recording.logged("watch.restarted", ref=name, reason="lifetime") for name in recording.subjects}

    assert len(restarts) >= 4
    assert all(len(each) >= RESTARTS for each in restarts.values())
    ages = [event["age_seconds"] for each in restarts.values() for event in each]
    assert min(ages) >= LIFETIME_SECONDS - 0.01
    assert max(ages) < LIFETIME_SECONDS * 1.1 + 5
    assert (
        recording.logged("watch.restarted", reason="stale")
        == recording.logged("watch.restarted", reason="errors")
        == []
    )


@pytest.mark.req("EC7", "NFR-009")
def test_a_restarted_watch_continues_at_the_exact_ball(recording: Recording) -> None:
    ages = [sample.age(name) for sample in recording.between("began", "ended") for name in recording.subjects]
    epochs = {
        name: [event["epoch"] for event in recording.logged("watch.restarted", ref=name)] for name in recording.subjects
    }

    assert max(ages) < FRESH_SECONDS
    assert all(later == earlier + 1 for each in epochs.values() for earlier, later in pairwise(each))
    assert recording.alerts == []
    assert_nothing_lost(recording.verdict)
