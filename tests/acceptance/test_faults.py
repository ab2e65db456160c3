"""A site that misbehaves in every way it can: nothing is stored wrongly, nothing is lost, the next poll goes on."""

import asyncio
from time import monotonic
from typing import Any

import apsw
import msgspec
import pytest
from msgspec import Struct

from longstop_lab.client import list_matches
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed
from longstop_lab.final_check import check_events, wait_until_synced
from longstop_lab.simulator.judge import TruthComparison

pytestmark = pytest.mark.timeout(120)

FAULTS: list[dict[str, Any]] = [
    {"kind": "truncated", "share": 0.1},
    {"kind": "html", "share": 0.1},
    {"kind": "drop", "share": 0.1},
    {"kind": "reset", "share": 0.1},
    {"kind": "status", "status": 503, "share": 0.05},
    {"kind": "status", "status": 403, "share": 0.05},
    {"kind": "status", "status": 404, "share": 0.05, "path": "/api/v3/getSV3"},
    {"kind": "status", "status": 429, "share": 0.05, "retry_after_seconds": 1},
    {"kind": "latency", "seconds": 0.2, "jitter_seconds": 0.2, "share": 0.2},
]


#: How long responses are faulty.
FAULTY_SECONDS = 12.0
#: The number of further polls of each match that must not write.
QUIET_POLLS = 3
PATIENCE_SECONDS = 30.0


class Outcome(Struct, frozen=True, kw_only=True):
    """What a deployment did under faults, and then while nothing changed."""

    #: The matches that the product called completed under faults, and those that were over at the end of the faults.
    completed: set[str]
    over: set[str]
    verdict: TruthComparison
    health: dict[str, Any]
    #: SQLite's number for the contents of the store, before and after polls that had nothing to write.
    versions: tuple[object, object]


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return asyncio.run(deploy_and_break())


async def deploy_and_break() -> Outcome:
    options = DeploymentOptions(
        simulate=("--matches", "10", "--speed", "30", "--seed", "4"),
        # Five bad answers in a row pause a match, by chance. Pauses outlive the restart of the final sync.
        settings={"POLLING_INTERVAL_SECONDS": "0.5", "COOL_DOWN_SECONDS": "5"},
    )
    began = monotonic()
    async with deployed(options) as deployment:
        await wait_until_synced(deployment, since=began)
        await deployment.simulator.post("/_sim/faults", msgspec.json.encode(FAULTS))
        await asyncio.sleep(FAULTY_SECONDS)
        completed = {entry["match_id"] for entry in await list_matches(deployment) if entry["phase"] == "completed"}
        await deployment.simulator.delete("/_sim/faults")
        matches = (await deployment.simulator.get("/_sim/status")).body["matches"]
        verdict = await check_events(deployment)  # freezes the world
        return Outcome(
            completed=completed,
            over={f"crex_{match['key']}" for match in matches if match["phase"] == "completed"},
            verdict=verdict,
            health=await health_once_recovered(deployment),
            versions=await versions_around_quiet_polls(deployment),
        )


async def health_once_recovered(deployment: Deployment) -> dict[str, Any]:
    """Return `/health` as soon as it is healthy, or after some time: what it shows may be a few seconds old."""
    deadline = monotonic() + 20
    while True:
        health: dict[str, Any] = (await deployment.api.get("/health")).body
        if health["status"] == "healthy" or monotonic() > deadline:
            return health
        await asyncio.sleep(0.5)


async def versions_around_quiet_polls(deployment: Deployment) -> tuple[object, object]:
    """Return the version of the store before and after several polls of every match."""
    await until_polled(deployment, times=2)  # a result is confirmed by a second poll
    reader = apsw.Connection(str(deployment.data / "matches.db"), flags=apsw.SQLITE_OPEN_READONLY)
    before = reader.pragma("data_version")
    await until_polled(deployment, times=QUIET_POLLS)
    return before, reader.pragma("data_version")


async def until_polled(deployment: Deployment, *, times: int) -> None:
    """Wait until every match was polled so often from now on."""
    seen: dict[str, set[str]] = {}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not seen or min(map(len, seen.values())) <= times:  # the first is the poll before
            for entry in await list_matches(deployment):
                seen.setdefault(entry["match_id"], set()).add(entry["last_poll_at"])
            await asyncio.sleep(0.1)


@pytest.mark.req("FLD-5", "NFR-009")
def test_nothing_is_lost_or_invented_while_every_kind_of_answer_goes_wrong(outcome: Outcome) -> None:
    verdict = outcome.verdict

    assert (verdict.lost, verdict.duplicated, verdict.ghost, verdict.wrong) == (0, 0, 0, 0), verdict.details
    assert verdict.events_stored > 500
    assert outcome.completed <= outcome.over
    assert outcome.health["status"] == "healthy", outcome.health["reasons"]


def test_polls_without_a_change_write_nothing_to_the_store(outcome: Outcome) -> None:
    before, after = outcome.versions

    assert after == before
