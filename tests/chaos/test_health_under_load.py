"""`/health` at 200 requests a second while store and browser hang: served from memory, with its age.

An idle API is loaded beside the one whose files hang, at the same time and on the same machine. Where it answers as
fast as is aimed at (p95 of 10 ms), the machine is no excuse, and the hanging one may take three times as long at most;
below 10 ms both are as good as wanted, and the ratio of two moments that short is the scheduler's. Where even the idle
one is slower, the machine is busy with other things: then the floor that is promised holds (NFR-006, 100 ms), or the
ratio where the machine is so busy that an idle API cannot hold a third of that.
"""

import asyncio

import msgspec
import pytest
from msgspec import Struct

from bench.health import P95_SECONDS, RATIO, WORST_SECONDS, Trial, compare, troubles, wait_until_healthy
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed
from tests.blocking import locked
from tests.steady_load import Load, steady

#: What is promised. What is aimed at is measured by `scripts/bench health`.
FLOOR_SECONDS = 0.1
SECONDS = 12.0


class Measured(Struct, frozen=True, kw_only=True):
    """What one deployment answered in two experiments."""

    #: All files hang, and the browser is stopped.
    trial: Trial
    #: Requests for data and for health while the files with matches hang.
    data: Load
    health: Load


@pytest.fixture(scope="module")
def measured() -> Measured:
    return asyncio.run(measure())


async def measure() -> Measured:
    options = DeploymentOptions(
        simulate=("--matches", "3", "--speed", "1", "--seed", "5"), browser="shell", settings={"LOG_LEVEL": "INFO"}
    )
    async with deployed(options) as deployment:
        await wait_until_healthy(deployment)
        trial = await compare(deployment, seconds=SECONDS)
        await wait_until_healthy(deployment)  # without help, once nothing hangs any more
        data, health = await load_data_and_health(deployment)
        return Measured(trial=trial, data=data, health=health)


async def load_data_and_health(deployment: Deployment) -> tuple[Load, Load]:
    async with locked(deployment.data / name for name in ("hot.db", "matches.db")):
        token = f"Authorization: Bearer {deployment.token}\r\n"
        # Long enough for the API to notice that the files hang; an earlier request is the one that notices.
        await asyncio.sleep(3)
        data, health = f"{deployment.api_url}/cricket-data/matches", f"{deployment.api_url}/health"
        return await asyncio.gather(steady(data, rate=20, seconds=5, headers=token), steady(health, rate=50, seconds=5))


def allowed(idle: float) -> float:
    """Return the p95 that a hanging API may have beside an idle one with this p95."""
    return max(P95_SECONDS if idle <= P95_SECONDS else FLOOR_SECONDS, RATIO * idle)


@pytest.mark.parametrize(("idle", "limit"), [(0.002, 0.010), (0.008, 0.024), (0.012, 0.1), (0.05, 0.15)])
def test_what_a_hanging_api_may_take_follows_from_an_idle_one_beside_it(idle: float, limit: float) -> None:
    assert allowed(idle) == pytest.approx(limit)


@pytest.mark.req("NFR-006", "NFR-016")
@pytest.mark.timeout(240)
def test_health_is_fast_and_honest_while_the_store_hangs_and_the_browser_is_stopped(measured: Measured) -> None:
    trial = measured.trial
    idle, hung = trial.idle.percentile(0.95), trial.hung.percentile(0.95)

    assert trial.halted > 0
    assert [*troubles("idle", trial.idle), *troubles("hanging", trial.hung)] == []
    print(f"p95 of {hung * 1000:.1f} ms beside an idle {idle * 1000:.1f} ms")
    assert hung <= allowed(idle)
    assert max(trial.hung.seconds) <= max(WORST_SECONDS, RATIO * max(trial.idle.seconds))
    # What can be read is at most 5 s old.
    assert msgspec.json.decode(trial.idle.last)["snapshot_age_seconds"] < 5
    # The API does not claim to be healthy when it does not know.
    assert trial.blind["snapshot_age_seconds"] > 10
    assert trial.blind["status"] == "down"
    assert trial.blind["reasons"][0].startswith("the live view could not be read for")


@pytest.mark.req("NFR-006")
@pytest.mark.timeout(240)
def test_requests_for_data_that_hang_do_not_delay_requests_for_health(measured: Measured) -> None:
    data, health = measured.data, measured.health

    assert data.statuses.keys() == {503}
    assert data.unanswered == 0
    assert list(troubles("hanging", health)) == []
    # Each time that SQLite gives up, one request may wait again for a moment.
    assert health.percentile(0.5) <= FLOOR_SECONDS
    assert max(health.seconds) <= 3.0
