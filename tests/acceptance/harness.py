"""A play: real processes, a site that goes wrong by a plot, and everything that a user could see of it.

A play is deployed once for several tests; each of them looks at one scene. What the product does is seen from outside:
its API, its log, its files, its verbs and its webhook.
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
from tests.acceptance.receiver import Posted, receiving
from tests.background import background

LIST = "/api/v3/getLiveMatches"
STATE = "/api/v3/getSV3"
FEED = "/commentary/v1/getBallFeeds"

#: How much shorter than by default everything lasts; the floors of the scenarios shrink with it.
COMPRESSED = 5.0
QUICK = {
    "LOG_LEVEL": "DEBUG",
    "POLLING_INTERVAL_SECONDS": "0.5",
    "BUSY_INTERVAL_SECONDS": "0.4",
    "DISCOVERY_INTERVAL_SECONDS": "0.5",
    "RETRY_BASE_DELAY_SECONDS": "0.2",
    # A fast site keeps half of it: more than a busy machine stands still for.
    "FETCH_TIMEOUT_SECONDS": "10",
    "CIRCUIT_BREAKER_CANARY_SECONDS": "0.5",
}
#: Data younger than ten seconds, compressed, with room for a busy machine.
FRESH_SECONDS = 10.0 / COMPRESSED + 4.0

SAMPLE_SECONDS = 0.25
#: How long a plot waits for what has to happen.
PATIENCE_SECONDS = 40.0

Event = dict[str, Any]


class Sample(Struct, frozen=True, kw_only=True):
    """What the API said at one moment."""

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


class Scene:
    """The deployment while it is played on."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.samples: list[Sample] = []
        #: The matches that the plot is about.
        self.cast: list[str] = []
        #: What the plot has asked for and the tests want to see.
        self.notes: dict[str, Any] = {}
        #: The moments that the plot has named.
        self.marks: dict[str, datetime] = {}

    def mark(self, name: str) -> datetime:
        self.marks[name] = SystemClock().now()
        return self.marks[name]

    # --- what the site does ----------------------------------------------------------------------------------

    async def break_site(self, *faults: Mapping[str, Any]) -> None:
        await self.deployment.simulator.post("/_sim/faults", msgspec.json.encode(faults))

    async def mend_site(self) -> None:
        await self.deployment.simulator.delete("/_sim/faults")

    async def in_play(self) -> list[str]:
        """Return the keys of the matches that are played now."""
        matches = (await self.deployment.simulator.get("/_sim/status")).body["matches"]
        return [match["key"] for match in matches if match["phase"] == "live"]

    async def requests(self) -> list[dict[str, Any]]:
        """Return what has reached the site."""
        notes: list[dict[str, Any]] = (await self.deployment.simulator.get("/_sim/requests")).body["requests"]
        return [{**note, "at": from_iso(note["at"])} for note in notes]

    # --- what a user sees ------------------------------------------------------------------------------------

    def told(self, name: str, **fields: Any) -> list[Event]:
        return told(read_log(self.deployment.log), name, **fields)

    async def until_told(self, name: str, *, within: float = PATIENCE_SECONDS, times: int = 1, **fields: Any) -> Event:
        """Wait for an event, for the last of so many; return it."""
        await self.until(lambda: len(self.told(name, **fields)) >= times, f"{name} {fields}", within)
        return self.told(name, **fields)[-1]

    async def until_seen(
        self, wanted: Callable[[Sample], bool], what: str, *, within: float = PATIENCE_SECONDS
    ) -> Sample:
        """Wait for what the API says from now on."""
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
        """Return what `longstop errors --json` lists."""
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
        """Stop the world, and account for every event and for all that was ever served."""
        assert version_log.seen()
        return await check_events(self.deployment, version_log=version_log)

    async def sample(self) -> None:
        """Ask the API again and again."""
        while True:
            now = SystemClock().now()
            entries = await list_matches(self.deployment)
            health = (await self.deployment.api.get("/health")).body
            matches = {entry["match_id"]: entry for entry in entries}
            self.samples.append(Sample(at=now, matches=matches, health=health))
            await asyncio.sleep(SAMPLE_SECONDS)


Plot = Callable[[Scene], Awaitable[None]]


class Story(Struct, frozen=True, kw_only=True):
    """What is left of a play for the tests to look at."""

    events: list[Event]
    samples: list[Sample]
    alerts: list[Posted]
    requests: list[dict[str, Any]]
    errors: list[dict[str, Any]]
    cast: list[str]
    notes: dict[str, Any]
    marks: dict[str, datetime]
    #: What stands below `storage/` in the data directory, by its path from there.
    files: dict[str, bytes]
    verdict: TruthComparison

    def told(self, name: str, **fields: Any) -> list[Event]:
        return told(self.events, name, **fields)

    def between(self, first: str, last: str) -> list[Sample]:
        """Return what the API said between two marks."""
        return [sample for sample in self.samples if self.marks[first] <= sample.at <= self.marks[last]]

    def reached(self, since: datetime, seconds: float, **fields: Any) -> list[dict[str, Any]]:
        """Return the requests that reached the site within so many seconds."""
        until = since + timedelta(seconds=seconds)
        return [note for note in self.requests if since <= note["at"] < until and fields.items() <= note.items()]


def play(plot: Plot, *, matches: int, speed: float, seed: int, settings: Mapping[str, str]) -> Story:
    """Deployment a play, and return its story."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(OUR_PREFIXES)]:
            patch.delenv(name)
        simulate = ("--matches", str(matches), "--speed", f"{speed:g}", "--seed", str(seed))
        return asyncio.run(_play(plot, simulate, {**QUICK, **settings}))


async def _play(plot: Plot, simulate: tuple[str, ...], settings: Mapping[str, str]) -> Story:
    async with receiving() as receiver:
        began = monotonic()
        webhook = {"ALERT_WEBHOOK_URL": receiver.url, "ALERT_WEBHOOK_SECRET": receiver.secret}
        async with deployed(DeploymentOptions(simulate=simulate, settings={**settings, **webhook})) as deployment:
            scene = Scene(deployment)
            await wait_until_synced(deployment, since=began)
            try:
                async with logging_versions(deployment) as version_log, background(scene.sample()):
                    await plot(scene)
            except BaseException:
                print(deployment.log.read_text(errors="replace"))  # what there is to say about a play that failed
                raise
            # The account restarts the scraper; what it says then is no part of the story.
            events, requests = read_log(deployment.log), await scene.requests()
            await scene.mend_site()
            verdict = await scene.verdict(version_log)
            return Story(
                events=events,
                samples=scene.samples,
                alerts=receiver.posted,
                requests=requests,
                errors=await scene.errors(),
                cast=scene.cast,
                notes=scene.notes,
                marks=scene.marks,
                files=dict(_files(deployment.data / "storage")),
                verdict=verdict,
            )


def read_log(log: Path) -> list[Event]:
    """Return what the processes have said; what is no event, or not written whole yet, is left out."""
    written = log.read_text(errors="replace").splitlines(keepends=True)
    lines = (line for line in written if line.startswith("{") and line.endswith("}\n"))
    return [{**event, "at": from_iso(event["timestamp"])} for event in map(json.loads, lines)]


def told(events: Iterable[Event], name: str, **fields: Any) -> list[Event]:
    """Return the events of a name and with these fields."""
    return [event for event in events if event["event"] == name and fields.items() <= event.items()]


def ref(key: str) -> str:
    """Return what we call a match of the simulated site."""
    return f"crex_{key}"


def assert_nothing_lost(verdict: TruthComparison) -> None:
    faults = (verdict.lost, verdict.duplicated, verdict.ghost, verdict.wrong, verdict.forgotten)
    assert faults == (0, 0, 0, 0, 0), verdict.details
    assert verdict.events_truth == verdict.events_stored > 0


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()
