"""Three matches go wrong, each in its way, while others are played: each is dealt with by itself and comes back."""

from datetime import timedelta

import pytest

from tests.acceptance.harness import FRESH_SECONDS, STATE, Scene, Story, assert_nothing_lost, play, ref

pytestmark = pytest.mark.timeout(240)

COOL_DOWN_SECONDS = 5.0
STALE_SECONDS = 10.0
#: Less than it takes to be stale, and half of it more than a busy machine stands still for.
TIMEOUT_SECONDS = 6.0
#: A crashed watch is back within 60 s, of which 5 min of rest became 5 s here.
BACK_WITHIN = 30.0

#: Which match of those in play suffers what.
REFUSED, GARBLED, HANGING = 0, 1, 2


async def three_troubles(scene: Scene) -> None:
    scene.cast = cast = [ref(key) for key in await scene.in_play()]
    refused, garbled, hanging = (name.removeprefix("crex_") for name in cast[:3])
    await scene.break_site(
        {"kind": "status", "status": 403, "match": refused},
        {"kind": "html", "path": STATE, "match": garbled},
        {"kind": "latency", "seconds": 60, "match": hanging},
    )
    scene.mark("broken")
    for name in cast[:2]:
        await scene.until_told("circuit_opened", scope="match", subject=name)
    await scene.until_told("watch.restarted", reason="stale", ref=cast[HANGING])
    scene.mark("mended")
    await scene.mend_site()
    mended = scene.marks["mended"]
    await scene.until_seen(lambda sample: all(sample.polled_at(match) > mended for match in cast), "all are fresh")
    scene.mark("fresh")


@pytest.fixture(scope="module")
def story() -> Story:
    settings = {
        "COOL_DOWN_SECONDS": f"{COOL_DOWN_SECONDS:g}",
        "STALENESS_THRESHOLD_SECONDS": f"{STALE_SECONDS:g}",
        "FETCH_TIMEOUT_SECONDS": f"{TIMEOUT_SECONDS:g}",
    }
    return play(three_troubles, matches=8, speed=20, seed=3, settings=settings)


@pytest.mark.req("US1.2", "NFR-005")
def test_the_others_stay_fresh_and_what_was_broken_is_back_within_a_minute(story: Story) -> None:
    others = story.cast[3:]
    ages = [sample.age(match) for sample in story.between("broken", "fresh") for match in others]

    assert len(others) >= 2
    assert max(ages) < FRESH_SECONDS
    assert (story.marks["fresh"] - story.marks["mended"]).total_seconds() < BACK_WITHIN
    assert_nothing_lost(story.verdict)


@pytest.mark.req("US2.2", "MON-1")
def test_five_refusals_pause_a_match_and_after_its_rest_the_watch_begins_anew(story: Story) -> None:
    name = story.cast[REFUSED]
    opened = story.told("circuit_opened", scope="match", subject=name)[0]
    restarted = story.told("watch.restarted", ref=name, reason="cool_down")[0]
    rest = (restarted["at"] - opened["at"]).total_seconds()
    paused = [sample.health for sample in story.samples if sample.health_of(name)["phase"] == "paused"]

    refusals = story.told("poll.failed", ref=name, error_type="SourceRefused")
    assert len([event for event in refusals if event["at"] <= opened["at"]]) == 5
    assert "5 failures in a row" in opened["reason"]
    assert COOL_DOWN_SECONDS - 0.1 <= rest < COOL_DOWN_SECONDS + 8
    assert any(sample.matches[name]["phase"] == "paused" for sample in story.samples)
    assert {health["status"] for health in paused} == {"degraded"}
    assert all(any(name in reason for reason in health["reasons"]) for health in paused)
    assert story.samples[-1].matches[name]["phase"] == "active"
    asked = story.reached(opened["at"] + timedelta(seconds=1), rest - 1.1, match=name.removeprefix("crex_"))
    assert asked == []


@pytest.mark.req("US1.4")
def test_a_page_that_cannot_be_read_is_kept_and_told_with_its_path_and_the_watch_goes_on(story: Story) -> None:
    name = story.cast[GARBLED]
    [row] = [each for each in story.errors if each["ref"] == name]
    page = row["snapshot"].removeprefix("storage/")

    assert (row["error_class"], row["error_type"]) == ("MalformedBody", "parsing")
    assert row["error_message"].startswith(f"crex live {name.removeprefix('crex_')}: ")
    assert row["count"] >= 5
    assert story.files[page].startswith(b"<!doctype html>")
    assert (row["resolved"], row["resolution_method"]) == (True, "restart")
    assert story.told("task.failed") == []
    assert story.told("process.died") == []


@pytest.mark.req("FR-001", "FR-016", "US3.2")
def test_a_match_whose_answers_hang_is_called_stale_and_its_watch_begins_anew(story: Story) -> None:
    name = story.cast[HANGING]
    [stale, *_] = story.told("match.stale", ref=name)
    [restarted, *_] = story.told("watch.restarted", ref=name, reason="stale")
    alerts = [alert for alert in story.alerts if alert.key == f"match.stale {name}"]
    worst = max(sample.age(name) for sample in story.between("broken", "mended"))

    assert STALE_SECONDS - 0.1 <= stale["age_seconds"] < STALE_SECONDS + 8
    assert stale["last_update"] is not None
    assert restarted["at"] >= stale["at"]
    assert worst > STALE_SECONDS - 3
    assert [alert.body["resolved"] for alert in alerts] == [False, True]
    assert all(alert.is_signed for alert in story.alerts)
