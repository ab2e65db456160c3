"""The way to the site is cut for ten seconds: it is tried again with patience, and afterwards nothing is missing."""

import asyncio
from collections import defaultdict
from datetime import timedelta

import pytest

from longstop.clock import SystemClock
from tests.acceptance.harness import Recording, ScenarioRun, assert_nothing_lost, ref, run_scenario

pytestmark = pytest.mark.timeout(240)

CUT_SECONDS = 10.0
CANARY_SECONDS = 1.0
#: Above what may be under way at once, so that a request is sent a third time before all are turned away.
FAILURES_IN_A_ROW = 12
#: What is under way when the admission closes may still arrive.
UNDER_WAY = timedelta(seconds=1)
#: US1 allows 30 s after the return.
BACK_WITHIN = 20.0


async def cut(run: ScenarioRun) -> None:
    in_play = [ref(key) for key in await run.in_play()]
    await run.inject_faults({"kind": "drop", "valid_seconds": CUT_SECONDS})
    run.marks["returned"] = returned = run.mark("cut") + timedelta(seconds=CUT_SECONDS)
    await asyncio.sleep((returned - SystemClock().now()).total_seconds())
    await run.until_seen(lambda sample: all(sample.polled_at(match) > returned for match in in_play), "fresh again")
    run.mark("fresh")
    await run.until_logged("circuit_closed", scope="target")


@pytest.fixture(scope="module")
def recording() -> Recording:
    settings = {
        "RETRY_BASE_DELAY_SECONDS": "1",
        "CIRCUIT_BREAKER_THRESHOLD": f"{FAILURES_IN_A_ROW}",
        "CIRCUIT_BREAKER_CANARY_SECONDS": f"{CANARY_SECONDS:g}",
    }
    return run_scenario(cut, matches=6, speed=20, seed=3, settings=settings)


@pytest.mark.req("US1.1", "NFR-009")
def test_after_a_cut_the_updates_resume_and_nothing_is_lost(recording: Recording) -> None:
    gap = recording.marks["fresh"] - recording.marks["returned"]

    assert gap.total_seconds() < BACK_WITHIN
    assert_nothing_lost(recording.verdict)


@pytest.mark.req("FR-002", "FR-017")
def test_while_it_is_cut_a_request_is_sent_again_after_growing_waits(recording: Recording) -> None:
    waits: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for event in recording.logged("request.retried"):
        waits[event["request"]].append((event["attempt"], event["wait_seconds"]))

    assert all(1.0 <= wait <= 1.25 for each in waits.values() for attempt, wait in each if attempt == 2)
    assert all(2.0 <= wait <= 2.5 for each in waits.values() for attempt, wait in each if attempt == 3)
    assert any({attempt for attempt, _ in each} >= {2, 3} for each in waits.values()), waits


@pytest.mark.req("FR-003")
def test_after_failures_in_a_row_only_canaries_are_sent_until_the_site_is_reachable(recording: Recording) -> None:
    [opened] = recording.logged("circuit_opened", scope="target")
    [closed] = recording.logged("circuit_closed", scope="target")
    down = (recording.marks["returned"] - opened["at"]).total_seconds()
    tried = recording.requests_within(opened["at"] + UNDER_WAY, down, fault="drop")

    assert f"{FAILURES_IN_A_ROW} failures in a row" in opened["reason"]
    assert 1 <= len(tried) <= down / CANARY_SECONDS + 2
    assert closed["at"] > tried[-1]["at"]
    assert closed["rejected"] > 0
