"""`python -m bench.soak --hours H`: the product at a moderate load for a long time; nothing may grow.

Six one-day matches are read by HTTP and three football matches by a browser. Its resources are sampled every
2 s; after a warm-up each figure gets its slope by the hour, with an interval.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
from curl_cffi import CurlError
from curl_cffi.requests import AsyncSession, Response

from bench.chaos.adaptation_steps import read_events
from bench.reporting import Report, rounded, run, say
from bench.soak_sample import Sample, ask, take
from bench.soak_trend import Course, Trend, trend
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind, Mode
from longstop.storage.sqlite.connection import WAL_SIZE_LIMIT_BYTES
from longstop_lab.client import percentile
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed
from longstop_lab.final_check import check_events, wait_until_synced
from longstop_lab.simulator.judge import TruthComparison
from longstop_lab.version_log import logging_versions

MATCHES = 9
#: In this one all three football matches are played from the beginning to the end: what comes and goes with a match is
#: no growth.
WORLD = ("--matches", str(MATCHES), "--kinds", "odi,odi,football", "--seed", "31")
#: The matches must last: at most this many seconds of match time pass, so a longer run has a slower clock.
WORLD_SECONDS = 3600.0
SETTLE_WITHIN = 120.0
SAMPLE_EVERY = 2.0
#: Caches fill, pages are opened, Python finds its size: a fifth of the run, and no more than a quarter of an hour.
WARM_UP_SHARE, WARM_UP_AT_MOST = 0.2, 900.0
TELL_EVERY = 60.0
#: With fewer no interval means anything.
LEAST_SAMPLES = 10
#: Of these nothing may pile up. A write-ahead log keeps its greatest length, so for it there is a limit instead.
JUDGED = ("rss_mb", "pss_mb", "processes", "zombies", "descriptors", "threads", "contexts", "pages")
WAL_MB = WAL_SIZE_LIMIT_BYTES / 1_000_000
#: Of the judge's verdict.
MUST_BE_ZERO = ("lost", "duplicated", "ghost", "wrong", "forgotten")
#: What is promised: such a share of the time it is up, and such a share of the matches in play is younger than that.
UP_SHARE = 0.995
FRESH_SHARE, FRESH_SECONDS = 0.99, 10.0


async def soak(seconds: float, raw: Path | None = None) -> Report:
    speed = min(1.0, WORLD_SECONDS / seconds)
    options = DeploymentOptions(
        simulate=(*WORLD, "--speed", f"{speed:g}"),
        sites=("crex", "sofascore"),
        browser=BrowserKind.SHELL,
        modes=(Mode.NAVIGATE, Mode.PASSIVE, Mode.PAGE),
        by_http=("crex",),
        settings={"ENABLE_PROMETHEUS_METRICS": "true", "PROMETHEUS_PORT": "0"},
    )
    say(f"starting {MATCHES} matches at {speed:g} times the real speed")
    load = os.getloadavg()[0]
    async with deployed(options) as deployment:
        await wait_until_synced(deployment, since=monotonic(), timeout=SETTLE_WITHIN)
        say("in sync; now it runs and is sampled")
        async with logging_versions(deployment) as version_log:
            samples = await _watch(deployment, seconds)
        deaths = len(read_events(deployment.log, "process.died", "process.restarted"))
        say("simulator frozen; waiting for a last full sync, then checking every event")
        verdict = await check_events(deployment, timeout=SETTLE_WITHIN, version_log=version_log)
    if raw is not None:
        await asyncio.to_thread(raw.write_bytes, b"\n".join(map(msgspec.json.encode, samples)))
    load_figures = {
        "load_before": rounded(load, 1),
        "load_after": rounded(os.getloadavg()[0], 1),
        "cores": os.cpu_count(),
    }
    return report(samples, seconds, verdict, {"deaths": deaths, "speed": rounded(speed, 3), **load_figures})


def report(samples: Sequence[Sample], seconds: float, verdict: TruthComparison, more: dict[str, Any]) -> Report:
    """Say where each figure goes; it is ok when growth is excluded for all of them, and nothing was lost or forgotten.

    A run that was too short for a result is not ok either.
    """
    warm = [each for each in samples if each.seconds >= min(WARM_UP_SHARE * seconds, WARM_UP_AT_MOST)]
    trends = {name: found for name in JUDGED if (found := trend_of(warm, name)) is not None}
    wal_mb = max(each.wal_mb for each in samples)
    details = [complaint(name, each) for name, each in trends.items() if each.may_grow]
    details += [f"{name} could not be measured" for name in JUDGED if name not in trends]
    if wal_mb > WAL_MB:
        details.append(f"the write-ahead logs have {wal_mb:.0f} MB")
    served = service(samples)
    if served["up_share"] < UP_SHARE:
        details.append(f"it was up for {served['up_share']:.2%} of the time, and {UP_SHARE:.1%} are promised")
    if served["fresh_share"] < FRESH_SHARE:
        details.append(f"{served['fresh_share']:.2%} were younger than {FRESH_SECONDS:g} s, not {FRESH_SHARE:.0%}")
    if not verdict.events_truth == verdict.events_stored > 0 or not verdict.witnessed:
        seen = f"{verdict.witnessed} versions were seen served"
        details.append(f"{verdict.events_truth} events were published, {verdict.events_stored} are stored, {seen}")
    whole = {name: getattr(verdict, name) for name in MUST_BE_ZERO}
    figures = {
        "seconds": rounded(seconds, 1),
        "samples": len(warm),
        **{name: described(each) for name, each in trends.items()},
        "rss_mb_by_part": {part: described(each) for part, each in trends_by_part(warm).items()},
        "wal_max_mb": rounded(wal_mb, 1),
        **{name: rounded(value, 4) for name, value in served.items()},
        "events_truth": verdict.events_truth,
        "events_stored": verdict.events_stored,
        "events_witnessed": verdict.witnessed,
        **whole,
        **more,
    }
    is_ok = not details and not any(whole.values()) and not more["deaths"]
    return Report(suite="soak", is_ok=is_ok, figures=figures, details=[*details, *verdict.details])


def service(samples: Sequence[Sample]) -> dict[str, float]:
    """Return how much of the time it served, and how young what it served was; nothing at all is not young.

    A sample counts for the time until the next one, because there are few while the API hangs.
    """
    until_next = [later.seconds - each.seconds for each, later in pairwise(samples)] + [SAMPLE_EVERY]
    lasting = list(zip(samples, until_next, strict=True))
    ages = [(age, seconds) for each, seconds in lasting for age in each.served.ages_s]
    aged = sum(seconds for _, seconds in ages)
    return {
        "up_share": sum(seconds for each, seconds in lasting if each.served.is_up) / sum(until_next),
        "fresh_share": sum(seconds for age, seconds in ages if age < FRESH_SECONDS) / aged if aged else 0.0,
        "age_p99_s": percentile([age for age, _ in ages], 0.99) or 0.0,
    }


def complaint(name: str, each: Trend) -> str:
    """Say what is known of a figure that may grow."""
    if each.course is Course.GROWS:
        return f"{name} grows"
    return f"{name} is open: it may grow by up to {each.high:.1f} an hour, and {each.flat:.1f} are allowed; run longer"


def trend_of(samples: Sequence[Sample], name: str) -> Trend | None:
    """Return where a figure goes; `None` when it was read too seldom to say."""
    return _trend([(each.seconds, getattr(each, name)) for each in samples])


def trends_by_part(samples: Sequence[Sample]) -> dict[str, Trend]:
    """Return where the memory of each part goes."""
    parts = sorted({part for each in samples for part in each.rss_mb_by_part})
    read = {part: _trend([(each.seconds, each.rss_mb_by_part.get(part)) for each in samples]) for part in parts}
    return {part: found for part, found in read.items() if found is not None}


def _trend(read: Sequence[tuple[float, float | None]]) -> Trend | None:
    known = [(seconds, float(value)) for seconds, value in read if value is not None]
    return trend(*zip(*known, strict=True)) if len(known) > len(read) / 2 and len(known) > LEAST_SAMPLES else None


def described(each: Trend) -> dict[str, Any]:
    return {
        "level": rounded(each.level, 1),
        "per_hour": rounded(each.slope, 2),
        "from": rounded(each.low, 2),
        "to": rounded(each.high, 2),
        "course": each.course,
    }


async def _watch(deployment: Deployment, seconds: float) -> list[Sample]:
    samples: list[Sample] = []
    began = monotonic()
    async with AsyncSession(timeout=SAMPLE_EVERY, trust_env=False) as session:
        collector = Collector(deployment, session)
        while (after := monotonic() - began) < seconds:
            metrics, served = await collector.newest(), await ask(deployment)
            samples.append(await asyncio.to_thread(take, deployment.up_pid, deployment.data, metrics, served, after))
            if after // TELL_EVERY > (after - SAMPLE_EVERY) // TELL_EVERY:
                say(f"{samples[-1]}")
            await asyncio.sleep(max(0.0, began + len(samples) * SAMPLE_EVERY - monotonic()))
    return samples


class Collector:
    """Reads the scraper's metrics, wherever they are served."""

    def __init__(self, deployment: Deployment, session: "AsyncSession[Response]") -> None:
        self._deployment = deployment
        self._session = session
        self._port: int | None = None

    async def newest(self) -> str:
        """Return a page of metrics; an empty one while the scraper restarts."""
        if self._port is None:  # a log of days is long: it is read only after a start
            served = read_events(self._deployment.log, "metrics.served")
            self._port = served[-1]["port"] if served else None
        try:
            return (await self._session.get(f"http://127.0.0.1:{self._port or 0}/metrics")).text
        except CurlError:
            self._port = None
            return ""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/soak", description="Run the product for long, and end in one JSON line that says what grows."
    )
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--hours", type=float, help="how long to measure")
    length.add_argument("--minutes", type=float, help="the same, for short runs; ten show little")
    parser.add_argument("--raw", type=Path, metavar="FILE", help="keep every sample here, one JSON object a line")
    chosen = parser.parse_args()
    seconds = chosen.hours * 3600 if chosen.hours is not None else chosen.minutes * 60
    if not 60 <= seconds <= 7 * 24 * 3600:
        parser.error("take a minute at least, and a week at most")
    return run("soak", soak(seconds, chosen.raw))


if __name__ == "__main__":
    sys.exit(main())
