"""How a match ends: with a result, or by vanishing from its site. One that is only missing for a while does not end."""

import json

import pytest

from tests.acceptance.harness import FEED, Recording, ScenarioRun, assert_nothing_lost, ref, run_scenario

pytestmark = pytest.mark.timeout(240)

NOT_FOUND_SECONDS = 1.0

#: Whose page is missing while the list shows it, who is missing from both, and who plays on to the end.
MISSING, GONE, OVER = 0, 1, 2


async def three_matches_end(run: ScenarioRun) -> None:
    missing, gone, *_ = await run.in_play()
    world = (await run.deployment.simulator.get("/_sim/status")).body["matches"]
    over = world[3]["key"]  # the simulator lets the fourth of ten end soon
    run.subjects = [ref(missing), ref(gone), ref(over)]
    run.mark("broken")
    await run.inject_faults(
        {"kind": "status", "status": 404, "match": missing},
        {"kind": "status", "status": 404, "match": gone, "path": "/api/"},
        {"kind": "unlisted", "match": gone},
    )
    await run.until_logged("match.gone", ref=ref(gone))
    await run.until_logged("poll.failed", ref=ref(missing), error_type="PageNotFound", times=5)
    run.mark("cleared")
    await run.clear_faults()
    await run.until_logged("match.finished", ref=ref(over))
    cleared = run.marks["cleared"]
    await run.until_seen(lambda sample: sample.polled_at(ref(missing)) > cleared, "the missing one is back")
    name = ref(over)
    sample = await run.until_seen(lambda sample: sample.matches[name]["phase"] == "completed", "it is over")
    run.notes["over"] = (await run.deployment.api.get(sample.matches[name]["url"])).body


@pytest.fixture(scope="module")
def recording() -> Recording:
    settings = {"NOT_FOUND_SECONDS": f"{NOT_FOUND_SECONDS:g}", "COMPLETED_INTERVAL_SECONDS": "1"}
    return run_scenario(three_matches_end, matches=6, speed=40, seed=3, settings=settings)


@pytest.mark.req("EC3")
def test_a_match_that_ends_is_read_to_its_result_and_its_log_is_kept(recording: Recording) -> None:
    name = recording.subjects[OVER]
    [finished] = recording.logged("match.finished", ref=name)
    log = recording.files[f"match_logs/{finished['match_id']}/log.jsonl"].decode().splitlines()

    assert finished["result"]
    assert recording.notes["over"]["result"]
    assert recording.samples[-1].matches[name]["phase"] == "completed"
    assert "match.finished" in [json.loads(line)["event"] for line in log]
    assert_nothing_lost(recording.verdict)


@pytest.mark.req("EC3")
def test_a_page_that_is_not_found_while_the_list_shows_the_match_ends_nothing(recording: Recording) -> None:
    name = recording.subjects[MISSING]
    phases = {sample.matches[name]["phase"] for sample in recording.between("broken", "cleared")}

    assert phases == {"active"}
    assert recording.logged("match.gone", ref=name) == []


@pytest.mark.req("EC3")
def test_a_match_that_is_found_nowhere_for_long_enough_is_over_after_a_last_reading(recording: Recording) -> None:
    name = recording.subjects[GONE]
    [gone] = recording.logged("match.gone", ref=name)
    [finished] = recording.logged("match.finished", ref=name)[:1]
    asked = recording.requests_within(gone["at"], 5.0, match=name.removeprefix("crex_"), path=FEED)

    assert gone["confirmations"] == 3
    assert (gone["at"] - recording.marks["broken"]).total_seconds() >= 2 * NOT_FOUND_SECONDS - 0.1
    assert finished["at"] >= gone["at"]
    assert asked
    assert any(sample.matches[name]["phase"] == "completed" for sample in recording.samples)
