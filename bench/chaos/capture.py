"""`capture`: random kills and faults of every kind while twenty matches run; nothing is lost, doubled or made up."""

import asyncio
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import msgspec
import psutil

from bench.chaos.demand import requests_needed
from bench.chaos.recovery import Recoveries
from bench.chaos.schedule import Act, schedule
from bench.frame import Report, rounded, say
from longstop.clock import SystemClock
from longstop.simulator.truth import read_truth
from longstop.trial.account import account
from longstop.trial.settle import wait_until_synced
from longstop.trial.stage import Stage, StageOptions, staged, survivors

MATCHES = 20
KINDS = "t20,t20-rain,odi,test"
SPEED = 40.0
INTERVAL = 0.5
#: After all that, everything has to be read again: on a busy machine this takes its time.
SETTLE_WITHIN = 120.0
MEGABYTE = 1_000_000

_SETTINGS = {
    "POLLING_INTERVAL_SECONDS": str(INTERVAL),
    "DISCOVERY_INTERVAL_SECONDS": str(INTERVAL),
    "FETCH_TIMEOUT_SECONDS": "2",
    # A scraper that is killed every few seconds has done nothing wrong: it is started again at once.
    "LONGSTOP_SETTLED_SECONDS": "0",
}


async def capture(*, seed: int, minutes: float) -> Report:
    with TemporaryDirectory(prefix="longstop-chaos-") as home:
        data = Path(home) / "data"
        figures, details = await _run(data, seed, minutes * 60)
        figures["orphans"] = survivors(data)
    is_ok = not any(figures[name] for name in ("lost", "duplicated", "ghost", "wrong", "orphans", "never_recovered"))
    return Report(suite="chaos capture", is_ok=is_ok, figures=figures, details=details)


async def _run(data: Path, seed: int, seconds: float) -> tuple[dict[str, Any], tuple[str, ...]]:
    simulate = ("--matches", str(MATCHES), "--kinds", KINDS, "--speed", f"{SPEED:g}", "--seed", str(seed))
    say(f"starting {MATCHES} matches at {SPEED:g} times the real speed")
    async with staged(StageOptions(simulate=simulate, keep=data, settings=_SETTINGS)) as stage:
        began, started = SystemClock().now(), monotonic()
        await wait_until_synced(stage, since=began)
        recoveries = Recoveries(stage)
        peak_rss = await _break_things(stage, schedule(seed, seconds), seconds, recoveries)
        await stage.simulator.delete("/_sim/faults")
        await recoveries.all_done()
        elapsed = monotonic() - started
        sent = sum((await stage.simulator.get("/_sim/status")).body["requests"].values())
        say("faults off, the world stands still; a last full sync, and every event is accounted for")
        verdict = await account(stage, within=SETTLE_WITHIN)
        needed = requests_needed(read_truth(stage.truth), began=began, seconds=elapsed, interval=INTERVAL)
    figures = {
        "seed": seed,
        "seconds": round(seconds, 1),
        "matches": verdict.matches,
        "events_truth": verdict.events_truth,
        "events_stored": verdict.events_stored,
        "lost": verdict.lost,
        "duplicated": verdict.duplicated,
        "ghost": verdict.ghost,
        "wrong": verdict.wrong,
        **recoveries.figures(),
        "never_recovered": recoveries.never,
        "requests": sent,
        "amplification": rounded(sent / needed, 2),
        "rss_mb": round(peak_rss / MEGABYTE, 1),
    }
    return figures, verdict.details


async def _break_things(stage: Stage, acts: tuple[Act, ...], seconds: float, recoveries: Recoveries) -> int:
    """Do every act at its time, and return the most memory that was in use."""
    began, peak = monotonic(), 0
    for act in acts:
        await asyncio.sleep(max(0.0, began + act.at - monotonic()))
        peak = max(peak, stage.rss_bytes())
        if act.kill is not None:
            _kill(stage, act.kill, recoveries)
        if act.fault is not None:
            await stage.simulator.post("/_sim/faults", msgspec.json.encode(act.fault))
    await asyncio.sleep(max(0.0, began + seconds - monotonic()))
    return peak


def _kill(stage: Stage, verb: str, recoveries: Recoveries) -> None:
    process = stage.process(verb)
    if process is None:
        return
    with suppress(psutil.NoSuchProcess):
        process.kill()
        recoveries.begin()
        say(f"killed the {verb}")
