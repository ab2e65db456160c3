"""A source that shows its newest balls only, and a scraper that was away for longer than they last."""

import asyncio
from time import monotonic

import pytest

from longstop_lab.deployment import Deployment, DeploymentOptions, deployed
from longstop_lab.final_check import check_events, wait_until_synced

pytestmark = pytest.mark.timeout(120)

#: World seconds per real second: twenty balls pass in about five seconds.
SPEED = "120"
AWAY_SECONDS = 8


@pytest.mark.req("NFR-009")
async def test_what_a_window_no_longer_shows_is_declared_and_nothing_is_lost_silently() -> None:
    options = DeploymentOptions(
        simulate=("--matches", "4", "--speed", SPEED, "--seed", "11"),
        sites=("espncricinfo",),
        settings={"POLLING_INTERVAL_SECONDS": "0.5"},
    )
    began = monotonic()
    async with deployed(options) as deployment:
        await wait_until_synced(deployment, since=began)
        before = (await deployment.api.get("/cricket-data/match-info/1/findings")).body["findings"]
        scraper = deployment.scraper()
        assert scraper is not None

        scraper.suspend()
        await asyncio.sleep(AWAY_SECONDS)
        scraper.resume()
        verdict = await check_events(deployment)
        after = (await deployment.api.get("/cricket-data/match-info/1/findings")).body["findings"]
        recorded = [await _is_recorded(deployment, sentence) for sentence in verdict.details]

    assert (verdict.duplicated, verdict.ghost) == (0, 0), verdict.details
    assert len(recorded) == verdict.lost, verdict.details
    assert all(recorded), verdict.details
    assert verdict.declared > 0
    assert verdict.events_stored > 0
    assert len(after) > len(before)


async def _is_recorded(deployment: Deployment, sentence: str) -> bool:
    """Return whether a difference is a correction made behind the window, and the totals' disagreement is on record."""
    match = sentence.partition(":")[0]
    found = (await deployment.api.get(f"/cricket-data/match-info/espncricinfo_{match}/findings")).body["findings"]
    return " reads " in sentence and any(each["kind"] == "mismatch" for each in found)
