"""The check at the end of a run: every event in the truth log against every event that the API serves."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from msgspec.structs import replace

from longstop.api.match_documents import data_path
from longstop.clock import SystemClock
from longstop.errors import UsageError
from longstop.sports.registry import sports
from longstop.storage.sqlite.operations_tables import SqliteCommands
from longstop_lab.client import all_events, list_matches, sport_at, sport_of, was_read_since
from longstop_lab.deployment import Deployment
from longstop_lab.simulator.judge import TruthComparison, first_few, judge, wrong_scores
from longstop_lab.simulator.sites.sofascore.statuses import LISTED
from longstop_lab.simulator.truth import TruthLine, read_truth
from longstop_lab.version_log import Seen, VersionLog, missing_versions

SYNC_TIMEOUT = 60.0
#: Reading the API costs it time for every match, and must not slow down the sync that is waited for.
WAIT_SECONDS_PER_MATCH = 0.001
#: Real seconds after which a match in the live list of football has been in several polls of that list.
DISCOVERY_SECONDS = 10.0

#: The sport of each simulated site, and the field of the simulator's status that holds the site's match id.
_MATCH_IDS = {"crex": ("cricket", "key"), "espncricinfo": ("cricket", "espn_id"), "sofascore": ("football", "key")}
#: The truth log also contains states; these kinds are events.
_EVENT_KINDS = frozenset(kind for sport in sports().values() for kind in sport.kinds)


async def check_events(
    deployment: Deployment, *, timeout: float = SYNC_TIMEOUT, version_log: VersionLog | None = None
) -> TruthComparison:
    """Freeze the simulator, wait for a full sync, and compare; `matches` counts what the API lists.

    With a version log, every version in it must still be served unchanged.
    """
    return add_up((await check_events_by_sport(deployment, timeout=timeout, version_log=version_log)).values())


async def check_events_by_sport(
    deployment: Deployment, *, timeout: float = SYNC_TIMEOUT, version_log: VersionLog | None = None
) -> dict[str, TruthComparison]:
    """Do the same, with a result for each sport."""
    await final_sync(deployment, timeout=timeout)
    return await compare_by_sport(deployment, version_log=version_log)


async def compare_by_sport(
    deployment: Deployment, *, version_log: VersionLog | None = None, without: Collection[str] = ()
) -> dict[str, TruthComparison]:
    """Compare what the API serves now with the truth log, with a result for each sport; `without` some matches."""
    # Before the API is read: a version that is served later cannot be missing from what is read.
    seen = version_log.seen() if version_log is not None else {}
    listed = await list_matches(deployment)
    entries = [entry for entry in listed if entry["match_id"] not in without]
    left_out = [entry for entry in listed if entry["match_id"] in without]
    seen = {url: versions for url, versions in seen.items() if url not in {entry["url"] for entry in left_out}}
    left_out_ids = {_source_id(entry) for entry in left_out}
    truth = [line for line in read_truth(deployment.truth) if line.match not in left_out_ids]
    return {
        sport: await _check_sport(
            deployment,
            [entry for entry in entries if sport_of(entry) == sport],
            expected_events(sport, truth, known={_source_id(entry) for entry in entries}, since=deployment.ready_at),
            {url: versions for url, versions in seen.items() if url.startswith(f"{data_path(sport)}/")},
        )
        for sport in sorted({sport_at(site) for site in deployment.sites})
    }


def events_published(lines: Iterable[TruthLine], *, since: datetime, until: datetime) -> int:
    """Return the number of events that a site showed for the first time between two moments."""
    return sum(line.op == "insert" and line.kind in _EVENT_KINDS and since < line.at <= until for line in lines)


def add_up(comparisons: Iterable[TruthComparison]) -> TruthComparison:
    """Return the sum of several comparisons."""
    each = list(comparisons)
    counts = [name for name in TruthComparison.__struct_fields__ if name != "details"]
    return TruthComparison(
        **{name: sum(getattr(comparison, name) for comparison in each) for name in counts},
        details=tuple(sentence for comparison in each for sentence in comparison.details),
    )


async def _check_sport(
    deployment: Deployment, entries: Sequence[dict[str, Any]], truth: Sequence[TruthLine], seen: Seen
) -> TruthComparison:
    stored = {_source_id(entry): await all_events(deployment, entry["url"]) for entry in entries}
    declared = {
        _source_id(entry): (await deployment.api.get(f"{entry['url']}/findings")).body["findings"] for entry in entries
    }
    comparison = judge(truth, stored, declared=declared, sites=deployment.sites)
    payloads = {_source_id(entry): (await deployment.api.get(entry["url"])).body for entry in entries}
    wrong = wrong_scores(truth, payloads, deployment.sites)
    unpolled = await unpolled_matches(deployment, [entry["match_id"] for entry in entries])
    notes = [
        f"{name} is not polled by an operator's command: its missing events are expected" for name in sorted(unpolled)
    ]
    missing = missing_versions(seen, {entry["url"]: stored[_source_id(entry)] for entry in entries})
    return replace(
        comparison,
        matches=len(entries),
        wrong=len(wrong),
        forgotten=len(missing),
        witnessed=sum(map(len, seen.values())),
        details=(*notes, *comparison.details, *first_few(wrong), *first_few(missing)),
    )


def _source_id(entry: dict[str, Any]) -> str:
    """Return the site's id of a match."""
    source_id: str = entry["match_id"].partition("_")[2]
    return source_id


async def final_sync(deployment: Deployment, *, timeout: float = SYNC_TIMEOUT) -> None:
    """Freeze the simulator and restart the scraper: a start is always a full sync."""
    await deployment.simulator.post("/_sim/freeze")
    scraper = deployment.scraper()
    if scraper is not None:
        scraper.terminate()
        # Only polls of the next scraper count: the old one may have no reason for another full poll.
        await asyncio.to_thread(scraper.wait, timeout)
    await wait_until_synced(deployment, since=monotonic(), timeout=timeout)


async def wait_until_synced(deployment: Deployment, *, since: float, timeout: float = SYNC_TIMEOUT) -> None:
    """Wait until a poll that started after a monotonic moment has brought every match in sync."""
    known = {entry["match_id"] for entry in await list_matches(deployment)}
    waiting = wanted = known | await listed_matches(deployment)
    try:
        async with asyncio.timeout(timeout):
            while waiting:
                await asyncio.sleep(0.1 + len(wanted) * WAIT_SECONDS_PER_MATCH)
                synced = await _synced(deployment, since)
                # A match that has left its site's list before any poll will not be discovered any more.
                wanted = known | await listed_matches(deployment)
                waiting = wanted - synced - await unpolled_matches(deployment, wanted)
    except TimeoutError as error:
        count = "1 match was" if len(waiting) == 1 else f"{len(waiting)} matches were"
        names = ", ".join(sorted(waiting)[:5])
        raise UsageError(f"{count} not in sync within {timeout:g} s: {names}") from error


async def unpolled_matches(deployment: Deployment, names: Iterable[str]) -> set[str]:
    """Return which of these matches are not polled because an operator paused or removed them or their site."""
    async with aclosing(SqliteCommands(deployment.data / "ops.db", SystemClock())) as commands:
        orders = await commands.standing()
    subjects = {order.subject for order in orders}
    return {name for name in names if not subjects.isdisjoint((name, name.partition("_")[0]))}


async def listed_matches(deployment: Deployment) -> set[str]:
    """Return the matches that the sites list now."""
    matches = (await deployment.simulator.get("/_sim/status")).body["matches"]
    return {name for match in matches for site in deployment.sites if (name := _match_id(site, match))}


def _match_id(site: str, match: dict[str, str]) -> str | None:
    """Return the id that the product gives to a match of a site; `None` when the site does not list it."""
    sport, field = _MATCH_IDS[site]
    # The live list of football contains only matches in play, breaks included.
    is_listed = match["sport"] == sport and (sport == "cricket" or match["phase"] in ("live", "break"))
    return f"{site}_{match[field]}" if is_listed else None


async def _synced(deployment: Deployment, since: float) -> set[str]:
    requested_at = monotonic()
    entries = [entry for entry in await list_matches(deployment) if entry["sync"] == "in_sync"]
    return {entry["match_id"] for entry in entries if was_read_since(entry, since, requested_at)}


def expected_events(
    sport: str, truth: Sequence[TruthLine], *, known: Collection[str], since: datetime
) -> list[TruthLine]:
    """Return the lines that must be stored: all of cricket, and of football those of known or discoverable matches."""
    football = {line.match for line in truth if line.kind == "status"}
    if sport != "football":
        return [line for line in truth if line.match not in football]
    wanted = football & {*known, *discoverable(truth, since=since)}
    return [line for line in truth if line.match in wanted]


def discoverable(lines: Iterable[TruthLine], *, since: datetime, seconds: float = DISCOVERY_SECONDS) -> set[str]:
    """Return the football matches that are in the live list now, or were in it long enough since polling began."""
    listed: dict[str, datetime] = {}
    found: set[str] = set()
    for line in lines:
        if line.kind != "status":
            continue
        if line.content["status"] in LISTED:
            listed.setdefault(line.match, line.at)
        elif (began := listed.pop(line.match, None)) and line.at - max(began, since) >= timedelta(seconds=seconds):
            found.add(line.match)
    return found | listed.keys()
