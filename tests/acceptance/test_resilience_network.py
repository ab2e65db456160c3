"""The way to the site is cut for ten seconds: it is tried again with patience, and afterwards nothing is missing."""

import asyncio
from collections import defaultdict
from datetime import timedelta

import pytest

from longstop.clock import SystemClock
from tests.acceptance.harness import Scene, Story, assert_nothing_lost, play, ref

pytestmark = pytest.mark.timeout(240)

CUT_SECONDS = 10.0
CANARY_SECONDS = 1.0
#: Above what may be under way at once, so that a request is sent a third time before all are turned away.
FAILURES_IN_A_ROW = 12
#: What is under way when the admission closes may still arrive.
UNDER_WAY = timedelta(seconds=1)
#: US1 allows 30 s after the return.
BACK_WITHIN = 20.0


async def cut(scene: Scene) -> None:
    in_play = [ref(key) for key in await scene.in_play()]
    await scene.break_site({"kind": "drop", "valid_seconds": CUT_SECONDS})
    scene.marks["returned"] = returned = scene.mark("cut") + timedelta(seconds=CUT_SECONDS)
    await asyncio.sleep((returned - SystemClock().now()).total_seconds())
    await scene.until_seen(lambda sample: all(sample.polled_at(match) > returned for match in in_play), "fresh again")
    scene.mark("fresh")
    await scene.until_told("circuit_closed", scope="target")


@pytest.fixture(scope="module")
def story() -> Story:
    settings = {
        "RETRY_BASE_DELAY_SECONDS": "1",
        "CIRCUIT_BREAKER_THRESHOLD": f"{FAILURES_IN_A_ROW}",
        "CIRCUIT_BREAKER_CANARY_SECONDS": f"{CANARY_SECONDS:g}",
    }
    return play(cut, matches=6, speed=20, seed=3, settings=settings)


@pytest.mark.req("US1.1", "NFR-009")
def test_after_a_cut_the_updates_resume_and_nothing_is_lost(story: Story) -> None:
    gap = story.marks["fresh"] - story.marks["returned"]

    assert gap.total_seconds() < BACK_WITHIN
    assert_nothing_lost(story.verdict)


@pytest.mark.req("FR-002", "FR-017")
def test_while_it_is_cut_a_request_is_sent_again_after_growing_waits(story: Story) -> None:
    waits: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for event in story.told("request.retried"):
        waits[event["request"]].append((event["attempt"], event["wait_seconds"]))

    assert all(1.0 <= wait <= 1.25 for each in waits.values() for attempt, wait in each if attempt == 2)
    assert all(2.0 <= wait <= 2.5 for each in waits.values() for attempt, wait in each if attempt == 3)
    assert any({attempt for attempt, _ in each} >= {2, 3} for each in waits.values()), waits


@pytest.mark.req("FR-003")
def test_so_many_failures_in_a_row_leave_only_a_canary_until_the_way_is_open(story: Story) -> None:
    [opened] = story.told("circuit_opened", scope="target")
    [closed] = story.told("circuit_closed", scope="target")
    down = (story.marks["returned"] - opened["at"]).total_seconds()
    tried = story.reached(opened["at"] + UNDER_WAY, down, fault="drop")

    assert f"{FAILURES_IN_A_ROW} failures in a row" in opened["reason"]
    assert 1 <= len(tried) <= down / CANARY_SECONDS + 2
    assert closed["at"] > tried[-1]["at"]
    assert closed["rejected"] > 0
