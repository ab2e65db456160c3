"""`hostile`: hostile clients, a hostile site beside a healthy one, and damaged files; the healthy site notices nothing.

A round contains every attack, every fault of the site and every damage in random order: attacks together with faults of
the site, which reach into the next phase. Rounds follow each other until the time is over.

One match of the healthy site is paused by the operator before the first phase, and until the end no request about it
may reach the site, whatever is damaged or restored. Another match of it is hostile itself, and counts as little as the
hostile site does.
"""

import asyncio
import resource
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bench.chaos.harness import MUST_BE_MORE, MUST_BE_ZERO, SYNC_TIMEOUT, Figures, Plan, counts, inject
from bench.chaos.hostile_schedule import (
    LINGER_SECONDS,
    PHASE_NAMES,
    Attack,
    Phase,
    faults_of,
    rounds,
)
from bench.chaos.hostile_store import StoreOperator
from bench.chaos.hostile_watch import (
    HEAVY_MB,
    MEGABYTE,
    OLD_SECONDS,
    TRACEBACK,
    AgeSampler,
    HealthySite,
    LiveProbe,
    Watch,
    count_in,
    logs,
)
from bench.chaos.service_manager import serviced
from bench.reporting import Report, rounded, say
from longstop.clock import SystemClock
from longstop.errors import LongstopError, UsageError
from longstop.model.match import IN_PLAY
from longstop_lab.client import list_matches, percentile
from longstop_lab.deployment import Deployment, deployed, survivors
from longstop_lab.final_check import compare_by_sport, events_published, final_sync, wait_until_synced
from longstop_lab.simulator.judge import TruthComparison
from longstop_lab.simulator.truth import read_truth
from longstop_lab.version_log import VersionLog, logging_versions
from tests.background import background

HEALTHY, HOSTILE = "crex", "sofascore"
MATCHES = 14
KINDS = "t20,football,football,odi,football,test,football"
#: The matches must last: at most this many seconds of match time pass.
WORLD_SECONDS = 1500.0
FASTEST = 10.0
#: As a shell gives a process by default, and few enough that a flood of idle connections could take all.
DESCRIPTORS = 256
#: A poll that was under way when the operator paused its match may end after that.
POLL_SECONDS = 3.0
RESTART_WITHIN = 60.0
_SETTINGS = {
    "BREAK_INTERVAL_SECONDS": "2.5",
    "DISCOVERY_INTERVAL_SECONDS": "2.5",
    # So few that the matches of the hostile site could take all of them.
    "CONCURRENCY_CAP": "4",
}

LIVE_SHARE = 0.999
MOST_LOG_MB = 10.0


async def hostile(*, seed: int, minutes: float, only: Sequence[str] = ()) -> Report:
    """Run whole rounds for a duration; with `only`, one round of just these phases."""
    seconds = minutes * 60
    plan = Plan(
        seed=seed,
        seconds=seconds,
        matches=MATCHES,
        speed=min(FASTEST, WORLD_SECONDS / max(seconds, 120.0)),
        kinds=KINDS,
        sites=(HEALTHY, HOSTILE),
        settings=_SETTINGS,
    )
    with TemporaryDirectory(prefix="longstop-chaos-") as home, _few_descriptors():
        data = Path(home) / "data"
        figures, details = await _run(plan, data, only)
        figures["orphans"] = survivors(data)
    return Report(suite="chaos hostile", is_ok=is_proof(figures), figures=figures, details=details)


def is_proof(figures: Figures) -> bool:
    """Return whether the healthy site noticed nothing, every damage ended as it must, and all could have failed."""
    limits = {"fresh_p99_s": OLD_SECONDS, "rss_max_mb": HEAVY_MB, "log_mb": MOST_LOG_MB}
    is_within = all(figures[name] is not None and figures[name] < limit for name, limit in limits.items())
    zero = (*MUST_BE_ZERO, "tracebacks", "requests_while_paused", "never_recovered", "wrong_endings", "failed_restores")
    is_right = not any(figures[name] for name in zero) and figures["events_truth"] == figures["events_stored"]
    is_alive = figures["live_share"] is not None and figures["live_share"] >= LIVE_SHARE
    could_fail = all(figures[name] > 0 for name in (*MUST_BE_MORE, "attacks", "site_faults", "damages", "connections"))
    return is_within and is_right and is_alive and could_fail and figures["unsynced"] == 0


async def _run(plan: Plan, data: Path, only: Sequence[str]) -> tuple[Figures, Sequence[str]]:
    say(f"starting {plan.matches} matches at {plan.speed:g} times the real speed")
    async with deployed(plan.deployment(data)) as deployment, AsyncExitStack() as stack:
        await wait_until_synced(deployment, since=monotonic(), timeout=SYNC_TIMEOUT)
        site = HealthySite(api=deployment.api, sites=(HEALTHY,))
        version_log = await stack.enter_async_context(logging_versions(site))
        service = await stack.enter_async_context(serviced(deployment))
        paused, hostile_match = await _two_matches(site)
        others = (paused, hostile_match)
        operator = StoreOperator(deployment, site, service, version_log, others)
        began, first_request = SystemClock().now(), await _pause(operator, deployment, paused)
        watch = Watch(deployment, site, _port(deployment), others)
        run = HostileRun(deployment, operator, watch, plan, hostile_match)
        async with background(watch.run()):
            await run.run(only)
        ended = SystemClock().now()
        await deployment.simulator.delete("/_sim/faults")
        requests_while_paused = await _requests_about(deployment, paused, first_request)
        await operator.command("resume", paused)
        # Nothing waits for a match that its own circuit may have paused for minutes.
        await operator.command("pause", hostile_match)
        say("phases over, simulator frozen; waiting for a last full sync, then checking every event")
        verdict, unsynced = await _final_check(deployment, version_log, hostile_match)
        outputs = logs(deployment)
        figures = {
            **{"seed": plan.seed, "seconds": rounded((ended - began).total_seconds(), 1), **counts(verdict)},
            "events_during": events_published(read_truth(deployment.truth), since=began, until=ended),
            "unsynced": len(unsynced),
            **_ages(watch.sampler),
            **_probes(watch.probe),
            "rss_max_mb": max(watch.meter.figures().values()),
            "rss_max_by_process_mb": watch.meter.figures(),
            "log_mb": rounded(sum(path.stat().st_size for path in outputs) / MEGABYTE, 1),
            "tracebacks": operator.tracebacks + sum(count_in(path, TRACEBACK) for path in outputs),
            **run.figures(),
            **_endings(operator),
            "requests_while_paused": requests_while_paused,
        }
        wrong = [each.sentence for each in operator.outcomes if not each.is_right]
    return figures, [*unsynced, *run.found, *wrong, *verdict.details]


class HostileRun:
    """Runs the rounds one after the other."""

    def __init__(
        self, deployment: Deployment, operator: StoreOperator, watch: Watch, plan: Plan, hostile_match: str
    ) -> None:
        #: What was beyond a limit, and in which phase.
        self.found: list[str] = []
        self._deployment = deployment
        self._operator = operator
        self._watch = watch
        self._plan = plan
        self._hostile_key = _key(hostile_match)
        self._counts: Counter[str] = Counter()
        self._phases: Counter[str] = Counter()

    async def run(self, only: Sequence[str]) -> None:
        began = monotonic()
        for round_ in rounds(self._plan.seed):
            for phase in round_:
                wanted = phase.only(only or PHASE_NAMES)
                if wanted.names:
                    await self._do(wanted)
            if only or monotonic() - began >= self._plan.seconds:
                return

    def figures(self) -> Figures:
        return {
            "phases": dict(sorted(self._phases.items())),
            **{name: self._counts[name] for name in ("attacks", "site_faults", "damages", "connections", "refused")},
            "sent_mb": rounded(self._counts["bytes"] / MEGABYTE, 1),
        }

    async def _do(self, phase: Phase) -> None:
        name = " and ".join(phase.names)
        say(f"phase {name}")
        self._phases.update(phase.names)
        async with self._watch.phase(name, self.found):
            if phase.damage is not None:
                self._counts["damages"] += 1
                with self._watch.damaged():
                    await self._operator.damage(phase.damage, is_killed=phase.is_killed, left=phase.left)
                return
            if phase.site is not None:
                self._counts["site_faults"] += 1
                for fault in faults_of(phase.site, self._hostile_key, phase.seconds + LINGER_SECONDS):
                    await inject(self._deployment, fault)
            if phase.attack is not None:
                self._counts["attacks"] += 1
                await self._attack(phase.attack, phase.seconds)
            else:
                await asyncio.sleep(phase.seconds)

    async def _attack(self, attack: Attack, seconds: float) -> None:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.chaos.hostile_clients", attack),
            *("--port", str(_port(self._deployment)), "--seconds", f"{seconds:g}", "--seed", str(self._plan.seed)),
            *("--paths", *await self._heavy_reads()),
            stdin=PIPE,
            stdout=PIPE,
        )
        out, _ = await process.communicate(f"{self._deployment.token}\n".encode())
        if process.returncode:
            raise UsageError(f"the clients of {attack} failed: see their output above")
        self._counts.update(msgspec.json.decode(out, type=dict[str, int]))

    async def _heavy_reads(self) -> list[str]:
        """Return the addresses of all events of the matches of both sites, as far as the API lists them now."""
        try:
            entries = await list_matches(self._deployment)
        except UsageError:
            entries = []
        return [f"{entry['url']}/events?current=true" for entry in entries[:MATCHES]] or ["/health"]


async def _two_matches(site: HealthySite) -> tuple[str, str]:
    """Return the match that the operator pauses, and the one that becomes hostile."""
    playing: list[str] = sorted(entry["match_id"] for entry in await list_matches(site) if entry["status"] in IN_PLAY)
    if len(playing) < 4:
        raise UsageError("fewer than four matches of the healthy site are in play: choose another seed")
    return playing[0], playing[1]


async def _pause(operator: StoreOperator, deployment: Deployment, match: str) -> int:
    """Pause a match, and return the number of the last request that may be about it."""
    paused = await operator.command("pause", match)
    if paused.exit_code:
        raise UsageError(f"the match was not paused: {paused.text.decode(errors='replace')[-300:]}")
    await asyncio.sleep(POLL_SECONDS)
    return max((note["number"] for note in await _requests(deployment, 0)), default=0)


async def _requests_about(deployment: Deployment, match: str, after: int) -> int:
    """Return the number of requests about a match; the site's list is about none."""
    return sum(note["match"] == _key(match) for note in await _requests(deployment, after))


async def _requests(deployment: Deployment, after: int) -> list[dict[str, Any]]:
    notes: list[dict[str, Any]] = []
    while more := (await deployment.simulator.get(f"/_sim/requests?after={after}")).body["requests"]:
        notes += more
        after = more[-1]["number"]
    return notes


async def _final_check(
    deployment: Deployment, version_log: VersionLog, hostile_match: str
) -> tuple[TruthComparison, list[str]]:
    """Check the healthy site alone: what the hostile one has shown is no truth."""
    healthy, unsynced = copy(deployment), list[str]()
    healthy.sites = (HEALTHY,)
    # An API that an attack has killed restarts first.
    started = monotonic()
    while monotonic() - started < RESTART_WITHIN:
        if await deployment.api.responds("/ready"):
            break
        await asyncio.sleep(POLL_SECONDS)
    try:
        await final_sync(healthy, timeout=SYNC_TIMEOUT)
    except LongstopError as error:
        unsynced.append(str(error))
    return (await compare_by_sport(healthy, version_log=version_log, without=(hostile_match,)))["cricket"], unsynced


def _ages(sampler: AgeSampler) -> Figures:
    calm, damaged = sampler.ages[False], sampler.ages[True]
    return {
        "fresh_p50_s": rounded(percentile(calm, 0.5)),
        "fresh_p99_s": rounded(percentile(calm, 0.99)),
        "fresh_p99_damaged_s": rounded(percentile(damaged, 0.99)),
    }


def _probes(probe: LiveProbe) -> Figures:
    sent, failed = probe.sent[False], probe.failed[False]
    return {
        "live_probes": sent,
        "live_failed": failed,
        "live_share": rounded((sent - failed) / sent, 5) if sent else None,
        "live_probes_damaged": probe.sent[True],
        "live_failed_damaged": probe.failed[True],
    }


def _endings(operator: StoreOperator) -> Figures:
    endings = [f"{each.damage}: {each.ending}" for each in operator.outcomes]
    wrong = [each for each in operator.outcomes if not each.is_right]
    return {
        "endings": dict(sorted(Counter(endings).items())),
        "wrong_endings": len(wrong),
        "restores": operator.restores,
        "failed_restores": operator.failed_restores,
        "never_recovered": operator.never_recovered,
    }


def _key(match: str) -> str:
    """Return the site's own id of a match."""
    return match.partition("_")[2]


def _port(deployment: Deployment) -> int:
    port = urlsplit(deployment.api_url).port
    assert port is not None
    return port


@contextmanager
def _few_descriptors() -> Iterator[None]:
    """Start the deployment with a small soft limit, as many service managers do."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(DESCRIPTORS, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
