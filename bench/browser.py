"""`browser`: what a capture costs us and crawlee on the same pages, what blocking saves, and the memory of a page.

Both contenders are processes that load the same pages of the simulated football site with the same Chromium and take
the same answer of each page's script. They take turns, so that whatever else the machine does befalls both.
"""

import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

from bench.measured_process import Cost, MeasuredProcess, measured_process
from bench.reporting import Report, say
from longstop.errors import UsageError
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.fetching.browser.chromium_path_and_arguments import find_chromium
from longstop_lab.simulator.forward_proxy import ForwardProxy, running_forward_proxy
from longstop_lab.simulator.service import RunningSimulator, SimulatorOptions, running_simulator
from longstop_lab.simulator.sites.sofascore.page import page_path

ROOT = Path(__file__).parents[1]
CRAWLEE = (str(ROOT / ".venv-bench/bin/python"), str(ROOT / "bench/browser_crawlee.py"))
OURS = (sys.executable, "-m", "bench.browser_longstop")

MATCHES = 8
#: How many pages crawlee has open at one time: the best mean of 1, 2, 4 and 8, though 1 and 4 are as good within noise.
CRAWLEE_AT_ONCE = 2
WARMING = 4
#: Pages that are loaded, and answers that are replayed, in one round.
NAVIGATED = 8
REPLAYED = 400
OPENED = MATCHES
MEGABYTE = 1_000_000

LEAST = {"ratio_crawlee": 3.0, "ratio_crawlee_warm": 50.0, "bytes_saved": 0.70}
NONE_LEFT = ("contexts_left", "processes_left")


async def browser(*, is_quick: bool) -> Report:
    seconds = 14.0 if is_quick else 180.0
    program = _program()
    options = SimulatorOptions(sites="sofascore", matches=MATCHES)
    async with running_simulator(options) as simulator, running_forward_proxy() as counting:
        start = {
            "program": str(program),
            "targets": _targets(simulator),
            "proxy_port": counting.port,
            "pages_at_once": CRAWLEE_AT_ONCE,
        }
        figures = await _contest(start, seconds, counting.proxy)
    return Report(suite="browser", is_ok=is_good(figures), figures=figures)


def is_good(figures: dict[str, Any]) -> bool:
    """Return whether every aim is reached and nothing is left behind."""
    is_enough = all(figures[name] is not None and figures[name] >= least for name, least in LEAST.items())
    return is_enough and not any(figures[name] for name in NONE_LEFT)


def _program() -> Path:
    program = find_chromium(BrowserKind.SHELL)
    if program is None:
        raise UsageError("there is no Chromium on this machine: longstop doctor says how to get one")
    if not Path(CRAWLEE[0]).exists():
        raise UsageError("crawlee is not installed: scripts/bench browser does that, python -m bench does not")
    return program


def _targets(simulator: RunningSimulator) -> list[dict[str, str]]:
    site = simulator.sofascore_url
    boards = simulator.football.boards
    return [{"page": site + page_path(boards[key].match), "url": f"{site}/api/v1/event/{key}"} for key in boards]


async def _contest(start: dict[str, Any], seconds: float, proxy: ForwardProxy) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        # One process for each way, so that pages which one way leaves open are not on the account of another.
        ways = ("navigating", "replaying", "weighing")
        ours = [await stack.enter_async_context(measured_process(f"ours, {way}", OURS)) for way in ways]
        navigating, replaying, weighing = ours
        crawlee = await stack.enter_async_context(measured_process("crawlee", CRAWLEE))
        for each in (*ours, crawlee):
            await each.do(start)
        costs = await _take_turns(navigating, replaying, crawlee, seconds)
        weighed = {**await _weigh_pages(weighing), **await _weigh_bytes(weighing, proxy)}
        contexts_left = [(await each.do({"do": "close"}))["contexts_left"] for each in ours]
    processes_left = [await each.processes_left() for each in ours]
    return {**costs, **weighed, "contexts_left": sum(contexts_left), "processes_left": sum(processes_left)}


async def _take_turns(
    navigating: MeasuredProcess, replaying: MeasuredProcess, crawlee: MeasuredProcess, seconds: float
) -> dict[str, Any]:
    say("both load some pages, unmeasured")
    await navigating.do({"do": "navigate", "captures": WARMING})
    await crawlee.do({"do": "navigate", "captures": WARMING})
    await replaying.do({"do": "warm up"})
    ours, theirs, replays = list[Cost](), list[Cost](), list[Cost]()
    began = monotonic()
    while not ours or monotonic() - began < seconds:
        ours.append(await navigating.measured({"do": "navigate", "captures": NAVIGATED}))
        theirs.append(await crawlee.measured({"do": "navigate", "captures": NAVIGATED}))
        replays.append(await replaying.measured({"do": "replay", "captures": REPLAYED}))
        said = ", ".join(f"{cost[-1].captures_per_cpu_second:.2f}" for cost in (ours, theirs, replays))
        say(f"round {len(ours)}, captures a processor second, ours, crawlee's, ours replayed: {said}")
    return compared(ours, theirs, replays)


def compared(ours: Sequence[Cost], theirs: Sequence[Cost], replays: Sequence[Cost]) -> dict[str, Any]:
    """Return what the rounds say; a ratio is the median of the rounds' own, since a round's load befell all of it."""
    navigated = [one.against(other) for one, other in zip(ours, theirs, strict=True)]
    replayed = [one.against(other) for one, other in zip(replays, theirs, strict=True)]
    return {
        "rounds": len(ours),
        "ratio_crawlee": round(median(navigated), 2),
        "ratio_crawlee_warm": round(median(replayed), 1),
        "captures_per_cpu_s": round(median(each.captures_per_cpu_second for each in ours), 2),
        "captures_per_cpu_s_crawlee": round(median(each.captures_per_cpu_second for each in theirs), 2),
        "captures_per_cpu_s_warm": round(median(each.captures_per_cpu_second for each in replays), 1),
    }


async def _weigh_pages(ours: MeasuredProcess) -> dict[str, Any]:
    """Return the memory of one more open page."""
    say("pages are left open and weighed")
    few = (await ours.do({"do": "open", "pages": 1}))["pages"], ours.usage().pss_bytes
    many = (await ours.do({"do": "open", "pages": OPENED}))["pages"], ours.usage().pss_bytes
    if few[1] is None or many[1] is None:
        return {"memory_per_page_mb": None}
    return {"memory_per_page_mb": round((many[1] - few[1]) / (many[0] - few[0]) / MEGABYTE, 1)}


async def _weigh_bytes(ours: MeasuredProcess, proxy: ForwardProxy) -> dict[str, Any]:
    """Return which share of a page's bytes is never asked for, as a proxy between the browser and the site counts."""
    say("one page is loaded with and without blocking")
    await ours.do({"do": "load blocked"})
    await ours.do({"do": "load all"})
    down = {name: bytes_down(proxy, name) for name in ("blocked", "all")}
    return {
        "bytes_saved": round(1 - down["blocked"] / down["all"], 3),
        "page_kb": round(down["blocked"] / 1000),
        "page_kb_unblocked": round(down["all"] / 1000),
    }


def bytes_down(proxy: ForwardProxy, username: str) -> int:
    """Return what came for a user, whatever sessions it had."""
    return sum(used.bytes_down for credential, used in proxy.usage.items() if credential.partition(":")[0] == username)
