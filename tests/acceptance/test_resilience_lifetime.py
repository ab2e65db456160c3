"""A watch that has lasted long enough is begun anew, and goes on at the very ball where it was."""

import asyncio
from itertools import pairwise

import pytest

from tests.acceptance.harness import FRESH_SECONDS, Scene, Story, assert_nothing_lost, play, ref

pytestmark = pytest.mark.timeout(240)

#: Six hours became 3.6 seconds.
LIFETIME_HOURS = 0.001
LIFETIME_SECONDS = LIFETIME_HOURS * 3600
LIVES = 3


async def several_lives(scene: Scene) -> None:
    scene.cast = [ref(key) for key in await scene.in_play()]
    scene.mark("began")
    for name in scene.cast:
        await scene.until_told("watch.restarted", ref=name, reason="lifetime", times=LIVES)
    await asyncio.sleep(1)
    scene.mark("ended")


@pytest.fixture(scope="module")
def story() -> Story:
    return play(
        several_lives,
        matches=8,
        speed=30,
        seed=3,
        settings={"SCRAPER_MAX_LIFETIME_HOURS": f"{LIFETIME_HOURS:g}"},
    )


@pytest.mark.req("US1.3", "FR-010")
def test_every_watch_is_begun_anew_when_its_time_has_come(story: Story) -> None:
    restarts = {name: story.told("watch.restarted", ref=name, reason="lifetime") for name in story.cast}

    assert len(restarts) >= 4
    assert all(len(each) >= LIVES for each in restarts.values())
    ages = [event["age_seconds"] for each in restarts.values() for event in each]
    assert min(ages) >= LIFETIME_SECONDS - 0.01
    assert max(ages) < LIFETIME_SECONDS * 1.1 + 5
    assert story.told("watch.restarted", reason="stale") == story.told("watch.restarted", reason="errors") == []


@pytest.mark.req("EC7", "NFR-009")
def test_a_watch_begun_anew_goes_on_at_the_exact_ball(story: Story) -> None:
    ages = [sample.age(name) for sample in story.between("began", "ended") for name in story.cast]
    epochs = {name: [event["epoch"] for event in story.told("watch.restarted", ref=name)] for name in story.cast}

    assert max(ages) < FRESH_SECONDS
    assert all(later == earlier + 1 for each in epochs.values() for earlier, later in pairwise(each))
    assert story.alerts == []
    assert_nothing_lost(story.verdict)
