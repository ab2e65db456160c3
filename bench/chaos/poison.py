"""`poison`: sites of two sports answer with another match, wrong numbers, swapped teams and old copies.

They do so from before the scraper's first request, and later in play. Polling is as by default. After each of the two
phases every match must be in sync within a minute, and nothing may be lost or invented. A watcher reads every match
about twice a second: nothing that a match never had may be served as reliable.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from bench.chaos.fault_schedule import Action
from bench.chaos.harness import MUST_BE_MORE, MUST_BE_ZERO, Figures, Plan, counts, inject, run_schedule
from bench.chaos.poison_faults import first_contact, later_faults
from bench.chaos.published_values import (
    EVER,
    PublishedValues,
    ServedMatch,
    TruthTail,
    served_match,
    wrong_title,
    wrong_values,
)
from bench.reporting import Report, rounded, say
from longstop.clock import SystemClock, from_iso
from longstop.errors import UsageError
from longstop.model.match import IN_PLAY
from longstop_lab.client import list_matches
from longstop_lab.deployment import Deployment, deployed, survivors
from longstop_lab.final_check import add_up, compare_by_sport, events_published, final_sync, listed_matches
from longstop_lab.simulator.judge import MAX_DETAILS, TruthComparison
from longstop_lab.simulator.truth import read_truth
from longstop_lab.version_log import logging_versions
from tests.background import background

SITES = ("crex", "sofascore")
KINDS = "t20,football,odi,football"
MATCHES = 12
#: A ball every three seconds: more than the default poll interval.
SPEED = 10.0
#: How long the first answers are wrong.
FIRST_SECONDS = 15.0
#: Seconds without a fault after a recovery.
CALM_SECONDS = 8.0
RECOVER_WITHIN = 60.0
READ_EVERY = 0.5


async def poison(*, seed: int, minutes: float) -> Report:
    plan = Plan(
        seed=seed,
        seconds=minutes * 60,
        matches=MATCHES,
        speed=SPEED,
        kinds=KINDS,
        sites=SITES,
        faults=first_contact(),
        settings={},
    )
    with TemporaryDirectory(prefix="longstop-chaos-") as home:
        data = Path(home) / "data"
        figures, details = await _run(plan, data)
        figures["orphans"] = survivors(data)
    return Report(suite="chaos poison", is_ok=is_proof(figures), figures=figures, details=details)


def is_proof(figures: Figures) -> bool:
    """Return whether every match recovered in time, nothing is wrong, and it could have been."""
    is_recovered = all(figures[name] is not None for name in ("first_recover_s", "later_recover_s"))
    is_right = not any(figures[name] for name in (*MUST_BE_ZERO, "wrong_reliable", "never_recovered", "unsynced"))
    is_kept = figures["events_truth"] == figures["events_stored"]
    faulty = figures["faulty_answers"]
    could_fail = bool(faulty and all(faulty.values()) and figures["reliable_share"])
    return is_recovered and is_right and is_kept and could_fail and all(figures[name] > 0 for name in MUST_BE_MORE)


async def _run(plan: Plan, data: Path) -> tuple[Figures, Sequence[str]]:
    say(f"starting {plan.matches} matches at {plan.speed:g} times the real speed; half of the answers are wrong")
    async with deployed(plan.deployment(data)) as deployment, AsyncExitStack() as stack:
        began = SystemClock().now()
        version_log = await stack.enter_async_context(logging_versions(deployment))
        async with watching(deployment) as watch:
            await asyncio.sleep(FIRST_SECONDS)
            first = await _heal(deployment, watch)
            await run_schedule(later_faults(plan.seed, plan.seconds), plan.seconds, _injecting(deployment, watch))
            later = await _heal(deployment, watch)
        ended = SystemClock().now()
        status = (await deployment.simulator.get("/_sim/status")).body
        say("simulator frozen; waiting for a last full sync, then checking every event")
        unsynced = await _final_sync(deployment)
        verdict = add_up((await compare_by_sport(deployment, version_log=version_log)).values())
        figures = {
            **{"seed": plan.seed, "seconds": round(plan.seconds, 1), **counts(verdict)},
            "events_during": events_published(read_truth(deployment.truth), since=began, until=ended),
            **{"first_recover_s": rounded(first.seconds), "later_recover_s": rounded(later.seconds)},
            "never_recovered": len(first.missing) + len(later.missing),
            "unsynced": len(unsynced),
            **watch.figures(),
            "faulty_answers": _faulty_answers(status),
        }
    return figures, _details(first, later, unsynced, watch, verdict)


def _injecting(deployment: Deployment, watch: "ReliabilityWatch") -> Callable[[Action], Awaitable[None]]:
    async def do(action: Action) -> None:
        if action.fault is None:
            return
        watch.is_calm = False
        await inject(deployment, action.fault)
        say(f"{action.fault.kind} in {action.fault.share:.0%} for {action.fault.valid_seconds} s")

    return do


class Recovery(Struct, frozen=True, kw_only=True):
    """How long it took until every match was right again; `None` and what was missing if it took too long."""

    seconds: float | None
    missing: tuple[str, ...] = ()


async def _heal(deployment: Deployment, watch: "ReliabilityWatch") -> Recovery:
    """End all faults, measure the recovery, and wait until the watcher has read enough without a fault."""
    await deployment.simulator.delete("/_sim/faults")
    since, watch.is_calm = SystemClock().now(), True
    recovery = await _recovery(deployment, watch, since)
    say(f"recovered in {recovery.seconds} s" if recovery.seconds is not None else f"not recovered: {recovery.missing}")
    await asyncio.sleep(CALM_SECONDS)
    return recovery


async def _recovery(deployment: Deployment, watch: "ReliabilityWatch", since: datetime) -> Recovery:
    missing: tuple[str, ...] = ("nothing was read",)
    while (SystemClock().now() - since).total_seconds() < RECOVER_WITHIN:
        await asyncio.sleep(READ_EVERY / 2)
        with suppress(UsageError):
            listed = await listed_matches(deployment)
            if watch.reading is None or watch.reading.began <= since:
                continue
            missing = tuple(watch.unrecovered(watch.reading, listed, since))
            if not missing:
                return Recovery(seconds=(watch.reading.began - since).total_seconds())
    return Recovery(seconds=None, missing=missing)


async def _final_sync(deployment: Deployment) -> list[str]:
    """Wait for the sync, and return what is not in sync; the events are judged all the same."""
    try:
        await final_sync(deployment)
    except UsageError as error:
        return [str(error)]
    return []


def _faulty_answers(status: dict[str, Any]) -> dict[str, int]:
    """Return how many answers a fault has changed, by sport."""
    answers: Counter[str] = Counter()
    for match in status["matches"]:
        answers[match["sport"]] += match["faulty_answers"]
    return dict(answers)


def _details(
    first: Recovery, later: Recovery, unsynced: list[str], watch: "ReliabilityWatch", verdict: TruthComparison
) -> list[str]:
    return [
        *(f"after the first contact: {sentence}" for sentence in first.missing),
        *(f"after the later faults: {sentence}" for sentence in later.missing),
        *unsynced,
        *watch.wrong,
        *verdict.details,
    ]


class Reading(Struct, frozen=True, kw_only=True):
    """What the API showed of all matches, by their ids."""

    began: datetime
    entries: dict[str, dict[str, Any]]
    payloads: dict[str, dict[str, Any]]


class ReliabilityWatch:
    """Compares all that is served as reliable with all that was published until then."""

    def __init__(self, deployment: Deployment, matches: dict[str, ServedMatch]) -> None:
        self.reading: Reading | None = None
        #: No fault is active.
        self.is_calm = False
        #: The first things that were wrong, each once.
        self.wrong: list[str] = []
        self._wrong_answers = 0
        #: Payloads read while no fault was active, by whether they were reliable.
        self._calm: Counter[bool] = Counter()
        self._answers = 0
        self._deployment = deployment
        self._matches = matches
        self._published = PublishedValues()
        self._tail = TruthTail(deployment.truth)

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            with suppress(UsageError):  # a restarting API shows nothing
                is_calm = self.is_calm
                reading = await self._read()
                # After the answers: what they show was published before.
                for line in self._tail.read_new():
                    self._published.take(line)
                self._take(reading, is_calm and self.is_calm)
                self.reading = reading
            await asyncio.sleep(READ_EVERY)

    async def _read(self) -> Reading:
        began = SystemClock().now()
        entries = {entry["match_id"]: entry for entry in await list_matches(self._deployment)}
        payloads = {}
        for name, entry in entries.items():
            with suppress(UsageError):  # a match that has no payload yet
                payloads[name] = (await self._deployment.api.get(entry["url"])).body
        return Reading(began=began, entries=entries, payloads=payloads)

    def _take(self, reading: Reading, is_calm: bool) -> None:
        for name, payload in reading.payloads.items():
            is_reliable = payload["_metadata"].get("reliable", True)
            self._answers += 1
            self._calm[is_reliable] += is_calm
            if is_reliable:
                self._note(name, self._wrong_values(name, payload))
        for name, entry in reading.entries.items():
            match = self._matches.get(name)
            if entry.get("reliable", True) and (match is None or wrong_title(match, entry["title"])):
                self._note(name, [f"the title {entry['title']!r} in the list"])

    def _wrong_values(self, name: str, payload: dict[str, Any], since: datetime = EVER) -> list[str]:
        match = self._matches.get(name)
        return ["an id that no site has"] if match is None else wrong_values(match, payload, self._published, since)

    def _note(self, name: str, found: Sequence[str]) -> None:
        self._wrong_answers += bool(found)
        for what in found:
            sentence = f"{name} was served as reliable with {what}"
            if sentence not in self.wrong and len(self.wrong) < MAX_DETAILS:
                self.wrong.append(sentence)

    def unrecovered(self, reading: Reading, listed: set[str], since: datetime) -> list[str]:
        """Return what is not right again since a moment."""
        found = [f"{name} is not known" for name in sorted(listed - reading.entries.keys())]
        for name, entry in sorted(reading.entries.items()):
            at = entry["last_poll_at"]
            if entry["sync"] != "in_sync":
                found.append(f"{name} is {entry['sync']}")
            elif entry["status"] in IN_PLAY and (at is None or from_iso(at) <= since):
                found.append(f"{name} was last polled at {at}")
            elif (payload := reading.payloads.get(name)) is None:
                found.append(f"{name} has no payload")
            elif wrong := self._wrong_values(name, payload, since):
                found.append(f"{name} shows {wrong[0]}")
        return found

    def figures(self) -> Figures:
        calm = self._calm.total()
        return {
            "answers_read": self._answers,
            "wrong_reliable": self._wrong_answers,
            "reliable_share": rounded(self._calm[True] / calm) if calm else None,
        }


@asynccontextmanager
async def watching(deployment: Deployment) -> AsyncIterator[ReliabilityWatch]:
    """Watch while the block runs."""
    status = (await deployment.simulator.get("/_sim/status")).body
    found = (served_match(site, match) for site in deployment.sites for match in status["matches"])
    watch = ReliabilityWatch(deployment, {match.match_id: match for match in found if match is not None})
    async with background(watch.run()):
        yield watch
