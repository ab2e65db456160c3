"""Scenarios: a deployment, faults that a scenario injects, and a recording of everything that a user can observe.

A scenario runs once for several tests, and each test checks one aspect of the recording. The product is observed from
outside: its API, its log, its files, its commands and its webhook.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from longstop.clock import SystemClock, from_iso
from longstop.settings import OUR_PREFIXES
from longstop_lab.client import list_matches
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed
from longstop_lab.final_check import check_events, wait_until_synced
from longstop_lab.simulator.judge import TruthComparison
from longstop_lab.version_log import VersionLog, logging_versions
from tests.acceptance.webhook_receiver import Posted, receiving
from tests.background import background

LIST = "/api/v3/getLiveMatches"
STATE = "/api/v3/getSV3"
FEED = "/commentary/v1/getBallFeeds"

#: How much shorter intervals are than by default.
COMPRESSED = 5.0
QUICK = {
    "LOG_LEVEL": "DEBUG",
    "POLLING_INTERVAL_SECONDS": "0.5",
    "BUSY_INTERVAL_SECONDS": "0.4",
    "DISCOVERY_INTERVAL_SECONDS": "0.5",
    "RETRY_BASE_DELAY_SECONDS": "0.2",
    # Half of it remains for a fast site: longer than a busy machine pauses.
    "FETCH_TIMEOUT_SECONDS": "10",
    "CIRCUIT_BREAKER_CANARY_SECONDS": "0.5",
}
#: Data younger than ten seconds, compressed, with room for a busy machine.
FRESH_SECONDS = 10.0 / COMPRESSED + 4.0

SAMPLE_SECONDS = 0.25
#: How long a scenario waits for something that must happen.
PATIENCE_SECONDS = 40.0

Event = dict[str, Any]


class Sample(Struct, frozen=True, kw_only=True):
    """The responses of the API at one moment."""

    at: datetime
    matches: dict[str, dict[str, Any]]
    health: dict[str, Any]

    def age(self, match: str) -> float:
        return float(self.matches[match]["data_age_seconds"])

    def polled_at(self, match: str) -> datetime:
        return from_iso(self.matches[match]["last_poll_at"])

    def health_of(self, match: str) -> dict[str, Any]:
        entry: dict[str, Any] = next(each for each in self.health["per_match_status"] if each["match_id"] == match)
        return entry


class ScenarioRun:
    """A deployment while a scenario runs."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.samples: list[Sample] = []
        #: The matches that the scenario is about.
        self.subjects: list[str] = []
        #: What the scenario has collected for the tests.
        self.notes: dict[str, Any] = {}
        #: The moments that the scenario has named, by name.
        self.marks: dict[str, datetime] = {}

    def mark(self, name: str) -> datetime:
        self.marks[name] = SystemClock().now()
        return self.marks[name]

    # --- the site ----------------------------------------------------------------------------------------------

    async def inject_faults(self, *faults: Mapping[str, Any]) -> None:
        await self.deployment.simulator.post("/_sim/faults", msgspec.json.encode(faults))

    async def clear_faults(self) -> None:
        await self.deployment.simulator.delete("/_sim/faults")

    async def in_play(self) -> list[str]:
        """Return the keys of the matches in play."""
        matches = (await self.deployment.simulator.get("/_sim/status")).body["matches"]
        return [match["key"] for match in matches if match["phase"] == "live"]

    async def requests(self) -> list[dict[str, Any]]:
        """Return the requests that the site has received."""
        notes: list[dict[str, Any]] = (await self.deployment.simulator.get("/_sim/requests")).body["requests"]
        return [{**note, "at": from_iso(note["at"])} for note in notes]

    # --- what a user sees ------------------------------------------------------------------------------------

    def logged(self, name: str, **fields: Any) -> list[Event]:
        return logged(read_log(self.deployment.log), name, **fields)

    async def until_logged(
        self, name: str, *, within: float = PATIENCE_SECONDS, times: int = 1, **fields: Any
    ) -> Event:
        """Wait until an event was logged this many times; return the last."""
        await self.until(lambda: len(self.logged(name, **fields)) >= times, f"{name} {fields}", within)
        return self.logged(name, **fields)[-1]

    async def until_seen(
        self, wanted: Callable[[Sample], bool], what: str, *, within: float = PATIENCE_SECONDS
    ) -> Sample:
        """Wait for a sample of the API that is taken from now on."""
        now = SystemClock().now()
        await self.until(lambda: any(wanted(sample) for sample in self.samples if sample.at > now), what, within)
        return next(sample for sample in self.samples if sample.at > now and wanted(sample))

    async def until(self, happens: Callable[[], bool], what: str, within: float) -> None:
        try:
            async with asyncio.timeout(within):
                while not happens():  # noqa: ASYNC110 - it happens in other processes
                    await asyncio.sleep(0.1)
        except TimeoutError:
            pytest.fail(f"not within {within:g} s: {what}")

    async def errors(self) -> list[dict[str, Any]]:
        """Return the output of `longstop errors --json`."""
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "longstop",
                "errors",
                "--json",
                "--limit",
                "1000",
                "--data",
                str(self.deployment.data),
            ),
            stdout=PIPE,
        )
        answer, _ = await process.communicate()
        assert process.returncode == 0
        listed: list[dict[str, Any]] = json.loads(answer)
        return listed

    async def verdict(self, version_log: VersionLog) -> TruthComparison:
        """Freeze the simulator, and check every event and every version that was ever served."""
        assert version_log.seen()
        return await check_events(self.deployment, version_log=version_log)

    async def sample(self) -> None:
        """Sample the API until cancelled."""
        while True:
            now = SystemClock().now()
            entries = await list_matches(self.deployment)
            health = (await self.deployment.api.get("/health")).body
            matches = {entry["match_id"]: entry for entry in entries}
            self.samples.append(Sample(at=now, matches=matches, health=health))
            await asyncio.sleep(SAMPLE_SECONDS)


Scenario = Callable[[ScenarioRun], Awaitable[None]]


class Recording(Struct, frozen=True, kw_only=True):
    """What was observed during a scenario."""

    events: list[Event]
    samples: list[Sample]
    alerts: list[Posted]
    requests: list[dict[str, Any]]
    errors: list[dict[str, Any]]
    subjects: list[str]
    notes: dict[str, Any]
    marks: dict[str, datetime]
    #: The files below `storage/` in the data directory, by relative path.
    files: dict[str, bytes]
    verdict: TruthComparison

    def logged(self, name: str, **fields: Any) -> list[Event]:
        return logged(self.events, name, **fields)

    def between(self, first: str, last: str) -> list[Sample]:
        """Return the samples between two marks."""
        return [sample for sample in self.samples if self.marks[first] <= sample.at <= self.marks[last]]

    def requests_within(self, since: datetime, seconds: float, **fields: Any) -> list[dict[str, Any]]:
        """Return the requests that the site received within this many seconds."""
        until = since + timedelta(seconds=seconds)
        return [note for note in self.requests if since <= note["at"] < until and fields.items() <= note.items()]


def run_scenario(
    scenario: Scenario, *, matches: int, speed: float, seed: int, settings: Mapping[str, str]
) -> Recording:
    """Deploy, run a scenario, and return the recording."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(OUR_PREFIXES)]:
            patch.delenv(name)
        simulate = ("--matches", str(matches), "--speed", f"{speed:g}", "--seed", str(seed))
        return asyncio.run(_run_scenario(scenario, simulate, {**QUICK, **settings}))


async def _run_scenario(scenario: Scenario, simulate: tuple[str, ...], settings: Mapping[str, str]) -> Recording:
    async with receiving() as receiver:
        began = monotonic()
        webhook = {"ALERT_WEBHOOK_URL": receiver.url, "ALERT_WEBHOOK_SECRET": receiver.secret}
        async with deployed(DeploymentOptions(simulate=simulate, settings={**settings, **webhook})) as deployment:
            run = ScenarioRun(deployment)
            await wait_until_synced(deployment, since=began)
            try:
                async with logging_versions(deployment) as version_log, background(run.sample()):
                    await scenario(run)
            except BaseException:
                print(deployment.log.read_text(errors="replace"))
                raise
            # The final check restarts the scraper; what it logs then is not part of the recording.
            events, requests = read_log(deployment.log), await run.requests()
            await run.clear_faults()
            verdict = await run.verdict(version_log)
            return Recording(
                events=events,
                samples=run.samples,
                alerts=receiver.posted,
                requests=requests,
                errors=await run.errors(),
                subjects=run.subjects,
                notes=run.notes,
                marks=run.marks,
                files=dict(_files(deployment.data / "storage")),
                verdict=verdict,
            )


def read_log(log: Path) -> list[Event]:
    """Return the events that the processes have logged, without other lines and lines that are not complete yet."""
    read = _read.get(log)
    if read is None or log.stat().st_size < read.size:  # another process may have begun the file again
        read = _read[log] = ReadPart()
    with log.open("rb") as file:
        file.seek(read.size)
        complete, newline, _ = file.read().rpartition(b"\n")
    read.size += len(complete + newline)
    lines = (line for line in complete.splitlines() if line.startswith(b"{") and line.endswith(b"}"))
    read.events += [{**event, "at": from_iso(event["timestamp"])} for event in map(msgspec.json.decode, lines)]
    return list(read.events)


class ReadPart(Struct):
    """What was read of a log: it only grows, and tests that wait for an event read it many times a second."""

    size: int = 0
    events: list[Event] = []


_read: dict[Path, ReadPart] = {}


def logged(events: Iterable[Event], name: str, **fields: Any) -> list[Event]:
    """Return the events with a name and these fields."""
    return [event for event in events if event["event"] == name and fields.items() <= event.items()]


def ref(key: str) -> str:
    """Return the product's name for a match of the simulated site."""
    return f"crex_{key}"


def assert_nothing_lost(verdict: TruthComparison) -> None:
    faults = (verdict.lost, verdict.duplicated, verdict.ghost, verdict.wrong, verdict.forgotten)
    assert faults == (0, 0, 0, 0, 0), verdict.details
    assert verdict.events_truth == verdict.events_stored > 0


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()
