"""The end of a trial: the world stands still, and the product reads it whole once more."""

import asyncio
from datetime import datetime

from longstop.clock import SystemClock, from_iso
from longstop.errors import UsageError
from longstop.trial.sample import list_matches
from longstop.trial.stage import Stage

SETTLE_WITHIN = 60.0
LOOK_SECONDS_PER_MATCH = 0.001


async def final_sync(stage: Stage, *, within: float = SETTLE_WITHIN) -> None:
    """Stop the world, and let a fresh scraper compare everything with it: a start is always a full sync."""
    await stage.simulator.post("/_sim/freeze")
    stopped_at = SystemClock().now()
    scraper = stage.scraper()
    if scraper is not None:
        scraper.terminate()
    await wait_until_synced(stage, since=stopped_at, within=within)


async def wait_until_synced(stage: Stage, *, since: datetime, within: float = SETTLE_WITHIN) -> None:
    """Wait until every match of the world is known and in sync by a look younger than `since`."""
    status = await stage.simulator.get("/_sim/status")
    wanted = {f"crex_{match['key']}" for match in status.body["matches"]}
    waiting = wanted
    try:
        async with asyncio.timeout(within):
            while waiting:
                # Looking costs the API as much as it lists, and must not slow down what is waited for.
                await asyncio.sleep(0.1 + len(wanted) * LOOK_SECONDS_PER_MATCH)
                synced = {entry["match_id"] for entry in await list_matches(stage) if _is_synced(entry, since)}
                waiting = wanted - synced
    except TimeoutError as error:
        names = ", ".join(sorted(waiting)[:5])
        raise UsageError(f"{len(waiting)} matches were not in sync within {within:g} s: {names}") from error


def _is_synced(entry: dict[str, str | None], since: datetime) -> bool:
    polled_at = entry["last_poll_at"]
    return entry["sync"] == "in_sync" and polled_at is not None and from_iso(polled_at) > since
