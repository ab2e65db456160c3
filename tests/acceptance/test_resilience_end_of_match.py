"""How a match ends: with a result, or by vanishing from its site. One that is only missing for a while does not end."""

import json

import pytest

from tests.acceptance.harness import FEED, Scene, Story, assert_nothing_lost, play, ref

pytestmark = pytest.mark.timeout(240)

NOT_FOUND_SECONDS = 1.0

#: Whose page is missing while the list shows it, who is missing from both, and who plays on to the end.
MISSING, GONE, OVER = 0, 1, 2


async def three_ends(scene: Scene) -> None:
    missing, gone, *_ = await scene.in_play()
    world = (await scene.deployment.simulator.get("/_sim/status")).body["matches"]
    over = world[3]["key"]  # the simulator lets the fourth of ten end soon
    scene.cast = [ref(missing), ref(gone), ref(over)]
    scene.mark("broken")
    await scene.break_site(
        {"kind": "status", "status": 404, "match": missing},
        {"kind": "status", "status": 404, "match": gone, "path": "/api/"},
        {"kind": "unlisted", "match": gone},
    )
    await scene.until_told("match.gone", ref=ref(gone))
    await scene.until_told("poll.failed", ref=ref(missing), error_type="PageNotFound", times=5)
    scene.mark("mended")
    await scene.mend_site()
    await scene.until_told("match.finished", ref=ref(over))
    mended = scene.marks["mended"]
    await scene.until_seen(lambda sample: sample.polled_at(ref(missing)) > mended, "the missing one is back")
    name = ref(over)
    sample = await scene.until_seen(lambda sample: sample.matches[name]["phase"] == "completed", "it is over")
    scene.notes["over"] = (await scene.deployment.api.get(sample.matches[name]["url"])).body


@pytest.fixture(scope="module")
def story() -> Story:
    settings = {"NOT_FOUND_SECONDS": f"{NOT_FOUND_SECONDS:g}", "COMPLETED_INTERVAL_SECONDS": "1"}
    return play(three_ends, matches=6, speed=40, seed=3, settings=settings)


@pytest.mark.req("EC3")
def test_a_match_that_ends_is_read_to_its_result_and_its_log_is_kept(story: Story) -> None:
    name = story.cast[OVER]
    [finished] = story.told("match.finished", ref=name)
    log = story.files[f"match_logs/{finished['match_id']}/log.jsonl"].decode().splitlines()

    assert finished["result"]
    assert story.notes["over"]["result"]
    assert story.samples[-1].matches[name]["phase"] == "completed"
    assert "match.finished" in [json.loads(line)["event"] for line in log]
    assert_nothing_lost(story.verdict)


@pytest.mark.req("EC3")
def test_a_page_that_is_not_found_while_the_list_shows_the_match_ends_nothing(story: Story) -> None:
    name = story.cast[MISSING]
    phases = {sample.matches[name]["phase"] for sample in story.between("broken", "mended")}

    assert phases == {"active"}
    assert story.told("match.gone", ref=name) == []


@pytest.mark.req("EC3")
def test_a_match_that_is_found_nowhere_for_long_enough_is_over_after_a_last_reading(story: Story) -> None:
    name = story.cast[GONE]
    [gone] = story.told("match.gone", ref=name)
    [finished] = story.told("match.finished", ref=name)[:1]
    asked = story.reached(gone["at"], 5.0, match=name.removeprefix("crex_"), path=FEED)

    assert gone["confirmations"] == 3
    assert (gone["at"] - story.marks["broken"]).total_seconds() >= 2 * NOT_FOUND_SECONDS - 0.1
    assert finished["at"] >= gone["at"]
    assert asked
    assert any(sample.matches[name]["phase"] == "completed" for sample in story.samples)
