"""A match's own pages stand still while the list moves on: that is no break, and is told apart from one."""

import asyncio
from itertools import pairwise

import pytest

from tests.acceptance.harness import FEED, FRESH_SECONDS, STATE, Scene, Story, assert_nothing_lost, play, ref

pytestmark = pytest.mark.timeout(240)

FROZEN_SECONDS = 5.0


async def a_frozen_feed(scene: Scene) -> None:
    key, *others = await scene.in_play()
    name, *_ = scene.cast = [ref(key), *map(ref, others)]
    await scene.break_site(*({"kind": "frozen", "path": path, "match": key} for path in (STATE, FEED)))
    await scene.until_told("source.frozen", ref=name, within=60)
    scene.mark("frozen")
    await asyncio.sleep(FROZEN_SECONDS)
    scene.mark("thawing")
    await scene.mend_site()
    await scene.until_told("source.resumed", ref=name)
    await scene.until_seen(lambda sample: sample.age(name) < 2.0, "it is fresh again")


@pytest.fixture(scope="module")
def story() -> Story:
    return play(a_frozen_feed, matches=6, speed=15, seed=3, settings={"POLLING_INTERVAL_SECONDS": "0.25"})


@pytest.mark.req("NFR-009")
def test_a_frozen_feed_is_told_by_the_list_and_its_age_is_honest(story: Story) -> None:
    name, *others = story.cast
    [frozen] = story.told("source.frozen", ref=name)
    [thawed] = story.told("source.resumed", ref=name)
    during = story.between("frozen", "thawing")
    ages = [sample.age(name) for sample in during][2:]
    told = [sample.health for sample in during if sample.health_of(name)["frozen_since_iso8601"]]

    assert (frozen["frozen"], frozen["witness"]) == ("match", "list")
    assert thawed["at"] > story.marks["thawing"]
    assert all(later > earlier for earlier, later in pairwise(ages))
    assert ages[-1] > FROZEN_SECONDS / 2
    assert {health["status"] for health in told} == {"degraded"}
    assert all(any(name in reason for reason in health["reasons"]) for health in told)
    assert max(sample.age(other) for sample in during for other in others) < FRESH_SECONDS
    assert_nothing_lost(story.verdict)
