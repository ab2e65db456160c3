"""`live`: how fresh a thousand matches are on this machine, and what that costs.

List-driven: one request for the list every 2.5 s shows which matches need a poll. Direct: the list has lost all
matches (the simulator's fault `unlisted`), so that every match is polled separately every 2.5 s.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import msgspec
import psutil

from bench.reporting import Report, rounded, say
from bench.serving import Serving, served_delays
from longstop.clock import SystemClock
from longstop_lab.client import Samples, list_matches, percentile
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed
from longstop_lab.final_check import check_events, wait_until_synced
from longstop_lab.simulator.faults import Fault, FaultKind

LISTED_MATCHES = 1000
DIRECT_MATCHES = 300
#: Upper limits: the target with the listing, the minimum without it.
LISTED_LIMITS = {"freshness_p99_s": 5.0, "published_to_served_p99_s": 6.0}
DIRECT_LIMITS = {"freshness_p99_s": 10.0, "published_to_served_p99_s": 12.0}
#: Matches whose events are polled more often, and the interval.
FOLLOWED = 100
FOLLOW_EVERY = 0.5
SETTLE_WITHIN = 300.0
MEGABYTE = 1_000_000


async def live(*, is_quick: bool) -> Report:
    seconds = 30.0 if is_quick else 300.0
    listed, details = await _measure(LISTED_MATCHES, seconds, is_direct=False)
    direct, more = await _measure(DIRECT_MATCHES, seconds, is_direct=True)
    is_ok = _is_good(listed, LISTED_LIMITS) and _is_good(direct, DIRECT_LIMITS)
    return Report(suite="live", is_ok=is_ok, figures={**listed, "direct": direct}, details=(*details, *more))


def _is_good(figures: dict[str, Any], limits: Mapping[str, float]) -> bool:
    """Return whether no event was lost or invented, and every limit was measured and kept."""
    is_true = not any(figures[name] for name in ("lost", "duplicated", "ghost"))
    return is_true and all(figures[name] is not None and figures[name] < limit for name, limit in limits.items())


async def _measure(matches: int, seconds: float, *, is_direct: bool) -> tuple[dict[str, Any], Sequence[str]]:
    say(f"starting {matches} matches at real speed, {'polled one by one' if is_direct else 'by the list'}")
    with TemporaryDirectory(prefix="longstop-bench-") as home:
        options = DeploymentOptions(simulate=("--matches", str(matches)), keep=Path(home) / "data", settings={})
        async with deployed(options) as deployment:
            began = monotonic()
            await wait_until_synced(deployment, since=monotonic(), timeout=SETTLE_WITHIN)
            in_sync_s = monotonic() - began
            say(f"in sync after {in_sync_s:.1f} s")
            if is_direct:
                fault = Fault(kind=FaultKind.UNLISTED, path="/api/v3/getLiveMatches")
                await deployment.simulator.post("/_sim/faults", msgspec.json.encode(fault))
            figures = await _watch(deployment, seconds)
            await deployment.simulator.delete("/_sim/faults")
            say("measured; checking every event")
            verdict = await check_events(deployment, timeout=SETTLE_WITHIN)
    checked = {"lost": verdict.lost, "duplicated": verdict.duplicated, "ghost": verdict.ghost}
    return {"matches": verdict.matches, "in_sync_s": rounded(in_sync_s, 1), **figures, **checked}, verdict.details


async def _watch(deployment: Deployment, seconds: float) -> dict[str, Any]:
    samples, serving = Samples(), Serving(deployment)
    await serving.begin(FOLLOWED)
    since = SystemClock().now()
    requests, cpu, began = await _requests(deployment), _cpu_seconds(deployment), monotonic()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            group.create_task(_sample(deployment, samples))
            group.create_task(serving.follow(FOLLOW_EVERY))
    elapsed = monotonic() - began
    delays = served_delays(deployment.truth, serving.first_seen, since=since)
    return {
        "freshness_p50_s": rounded(percentile(samples.ages["cricket"], 0.50)),
        "freshness_p99_s": rounded(percentile(samples.ages["cricket"], 0.99)),
        "published_to_served_p50_s": rounded(percentile(delays, 0.50)),
        "published_to_served_p99_s": rounded(percentile(delays, 0.99)),
        "events_followed": len(delays),
        "requests_per_s": rounded((await _requests(deployment) - requests) / elapsed, 1),
        "cpu_share": rounded((_cpu_seconds(deployment) - cpu) / elapsed, 2),
        "rss_mb": round(samples.peak_rss_bytes / MEGABYTE, 1),
        "api_p95_ms": rounded((percentile(samples.api_seconds, 0.95) or 0.0) * 1000, 1),
    }


async def _sample(deployment: Deployment, samples: Samples) -> None:
    while True:
        samples.add(await list_matches(deployment, samples.api_seconds), deployment.rss_bytes())
        await asyncio.sleep(1.0)


async def _requests(deployment: Deployment) -> int:
    counted: dict[str, int] = (await deployment.simulator.get("/_sim/status")).body["requests"]
    return sum(counted.values())


def _cpu_seconds(deployment: Deployment) -> float:
    """Return the processor time of scraper and API so far."""
    spent = 0.0
    for verb in ("scraper", "api"):
        process = deployment.process(verb)
        with suppress(psutil.Error):
            if process is not None:
                times = process.cpu_times()
                spent += times.user + times.system
    return spent
