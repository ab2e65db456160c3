"""A match's own pages stand still while the list moves on: that is no break, and is told apart from one."""

import asyncio
from itertools import pairwise

import pytest

from tests.acceptance.harness import (
    FEED,
    FRESH_SECONDS,
    STATE,
    Recording,
    ScenarioRun,
    assert_nothing_lost,
    ref,
    run_scenario,
)

pytestmark = pytest.mark.timeout(240)

FROZEN_SECONDS = 5.0


async def a_frozen_feed(run: ScenarioRun) -> None:
    key, *others = await run.in_play()
    name, *_ = run.subjects = [ref(key), *map(ref, others)]
    await run.inject_faults(*({"kind": "frozen", "path": path, "match": key} for path in (STATE, FEED)))
    await run.until_logged("source.frozen", ref=name, within=60)
    run.mark("frozen")
    await asyncio.sleep(FROZEN_SECONDS)
    run.mark("resuming")
    await run.clear_faults()
    await run.until_logged("source.resumed", ref=name)
    await run.until_seen(lambda sample: sample.age(name) < 2.0, "it is fresh again")


@pytest.fixture(scope="module")
def recording() -> Recording:
    return run_scenario(a_frozen_feed, matches=6, speed=15, seed=3, settings={"POLLING_INTERVAL_SECONDS": "0.25"})


@pytest.mark.req("NFR-009")
def test_a_frozen_feed_is_recognised_by_the_list_and_its_age_is_correct(recording: Recording) -> None:
    name, *others = recording.subjects
    [frozen] = recording.logged("source.frozen", ref=name)
    [resumed] = recording.logged("source.resumed", ref=name)
    during = recording.between("frozen", "resuming")
    ages = [sample.age(name) for sample in during][2:]
    while_frozen = [sample.health for sample in during if sample.health_of(name)["frozen_since_iso8601"]]

    assert (frozen["frozen"], frozen["witness"]) == ("match", "list")
    assert resumed["at"] > recording.marks["resuming"]
    assert all(later > earlier for earlier, later in pairwise(ages))
    assert ages[-1] > FROZEN_SECONDS / 2
    assert {health["status"] for health in while_frozen} == {"degraded"}
    assert all(any(name in reason for reason in health["reasons"]) for health in while_frozen)
    assert max(sample.age(other) for sample in during for other in others) < FRESH_SECONDS
    assert_nothing_lost(recording.verdict)
