"""The end of a trial: the world stands still, and the product reads it whole once more."""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from time import monotonic

from longstop.errors import UsageError
from longstop.storage.sqlite.ops import SqliteStandingOrders
from longstop_lab.sample import list_matches, was_read_since
from longstop_lab.stage import Stage

SETTLE_WITHIN = 60.0
LOOK_SECONDS_PER_MATCH = 0.001

#: What is played on each of the simulator's sites, and what its status calls a match there.
_NAMES = {"crex": ("cricket", "key"), "espncricinfo": ("cricket", "espn_id"), "sofascore": ("football", "key")}


async def final_sync(stage: Stage, *, within: float = SETTLE_WITHIN) -> None:
    """Stop the world, and let a fresh scraper compare everything with it: a start is always a full sync."""
    await stage.simulator.post("/_sim/freeze")
    scraper = stage.scraper()
    if scraper is not None:
        scraper.terminate()
        # Only looks of the next one count: the old one may have seen no reason to read anything whole again.
        await asyncio.to_thread(scraper.wait, within)
    await wait_until_synced(stage, since=monotonic(), within=within)


async def wait_until_synced(stage: Stage, *, since: float, within: float = SETTLE_WITHIN) -> None:
    """Wait until every match of the world is known and in sync by a look that began after a monotonic moment."""
    known = {entry["match_id"] for entry in await list_matches(stage)}
    waiting = wanted = known | await _shown(stage)
    try:
        async with asyncio.timeout(within):
            while waiting:
                # Looking costs the API as much as it lists, and must not slow down what is waited for.
                await asyncio.sleep(0.1 + len(wanted) * LOOK_SECONDS_PER_MATCH)
                synced = await _synced(stage, since)
                # One that has left its site's list before anybody saw it there is not going to be found.
                wanted = known | await _shown(stage)
                waiting = wanted - synced - await left_alone(stage, wanted)
    except TimeoutError as error:
        were = "1 match was" if len(waiting) == 1 else f"{len(waiting)} matches were"
        names = ", ".join(sorted(waiting)[:5])
        raise UsageError(f"{were} not in sync within {within:g} s: {names}") from error


async def left_alone(stage: Stage, names: Iterable[str]) -> set[str]:
    """Return which of these matches are not read any more, since somebody has ordered so for them or their site."""
    async with aclosing(SqliteStandingOrders(stage.data / "ops.db")) as reader:
        orders = await reader.standing()
    subjects = {order.subject for order in orders}
    return {name for name in names if not subjects.isdisjoint((name, name.partition("_")[0]))}


async def _shown(stage: Stage) -> set[str]:
    """Return the matches that the sites list now."""
    matches = (await stage.simulator.get("/_sim/status")).body["matches"]
    return {name for match in matches for site in stage.sites if (name := _name_at(site, match))}


def _name_at(site: str, match: dict[str, str]) -> str | None:
    """Return what a site's reader must know a match by; `None` where the site does not list it."""
    sport, name = _NAMES[site]
    # The live list of football has what is being played, its breaks included, and nothing else.
    is_listed = match["sport"] == sport and (sport == "cricket" or match["phase"] in ("live", "break"))
    return f"{site}_{match[name]}" if is_listed else None


async def _synced(stage: Stage, since: float) -> set[str]:
    asked = monotonic()
    entries = [entry for entry in await list_matches(stage) if entry["sync"] == "in_sync"]
    return {entry["match_id"] for entry in entries if was_read_since(entry, since, asked)}
