"""The replay of real matches: file → simulator → scraper → store → API, compared with the file ball by ball.

This module reads the files itself. The simulator has another reader, so that a mistake in one shows in the comparison.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import psutil
from msgspec import Struct

from longstop.errors import UsageError
from longstop.yaml_validation import read_file
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed

#: Real seconds of a replay, independent of the match's length.
REPLAY_SECONDS = 5.0
#: Longer, so that the scraper can be killed several times.
REPLAY_SECONDS_WITH_KILLS = 12.0
BALL_GAP = 30.0
FINISH_TIMEOUT = 90.0
#: A match of five days has 2 MB.
MAX_FILE_BYTES = 20_000_000

_SETTINGS = {
    "POLLING_INTERVAL_SECONDS": "0.2",
    "DISCOVERY_INTERVAL_SECONDS": "0.2",
    # The scraper is killed every few seconds on purpose: restart it without a delay.
    "LONGSTOP_SETTLED_SECONDS": "0",
}


#: The dismissals of a file, in the nine classes that a source can distinguish.
_KINDS = {
    "bowled": "bowled",
    "caught": "caught",
    "caught and bowled": "caught",
    "lbw": "lbw",
    "run out": "run out",
    "stumped": "stumped",
    "hit wicket": "hit wicket",
    "retired hurt": "retired",
    "retired out": "retired",
    "retired not out": "retired",
    "obstructing the field": "obstructing the field",
}
_RUNS = {"wides": "wides", "noballs": "noballs", "byes": "byes", "legbyes": "legbyes", "penalty": "penalty"}


class Ball(Struct, frozen=True, kw_only=True):
    """One delivery in comparable form."""

    innings: int
    over: int
    position: int
    #: (kind, count) pairs of the runs that are not zero, sorted.
    runs: tuple[tuple[str, int], ...]
    #: (kind, player out) pairs.
    wickets: tuple[tuple[str, str], ...]


def balls_of_file(path: Path) -> list[Ball]:
    """Return the deliveries of a Cricsheet file in order of play."""
    try:
        match = json.loads(read_file(path, MAX_FILE_BYTES))
        return list(_balls_of(match["innings"]))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is not a Cricsheet JSON file") from error


def _balls_of(innings: list[dict[str, Any]]) -> Iterator[Ball]:
    for number, each in enumerate(innings, start=1):
        position = 0
        for over in each.get("overs", ()):
            for delivery in over["deliveries"]:
                position += 1
                runs = {"batter": delivery["runs"]["batter"]}
                runs |= {_RUNS[kind]: count for kind, count in delivery.get("extras", {}).items()}
                wickets = [(_KINDS.get(w["kind"], "other"), w["player_out"]) for w in delivery.get("wickets", ())]
                yield Ball(
                    innings=number,
                    over=over["over"],
                    position=position,
                    runs=_nonzero(runs),
                    wickets=tuple(sorted(wickets)),
                )


def balls_of_events(events: list[dict[str, Any]]) -> list[Ball]:
    """Return the current deliveries that the API serves, in order of play."""
    return [
        Ball(
            innings=event["innings"],
            over=event["over"],
            position=event["position"],
            runs=_nonzero(event["data"]["runs"]),
            wickets=tuple(sorted((w["kind"], w["player_out"]) for w in event["data"]["wickets"])),
        )
        for event in events
        if event["kind"] == "delivery"
    ]


def _nonzero(runs: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((kind, count) for kind, count in runs.items() if count))


class FileReport(Struct, frozen=True, kw_only=True):
    """The result of one file."""

    file: str
    deliveries: int
    equal: int
    #: Deliveries that differ, that are not served, and that the file does not contain.
    wrong: int
    missing: int
    extra: int
    kills: int
    seconds: float
    first_difference: str | None

    @property
    def is_good(self) -> bool:
        return self.deliveries == self.equal and not (self.wrong or self.missing or self.extra)


async def verify_file(path: Path, *, kill_every: float | None) -> FileReport:
    """Replay one file and compare it with what the API serves."""
    expected = balls_of_file(path)
    if not expected:
        raise UsageError(f"{path} contains no deliveries to compare")
    began = monotonic()
    async with deployed(_options(path, len(expected), kill_every)) as deployment:
        kills = await _play(deployment, kill_every)
        served = await _served(deployment)
    return _report(path, expected, served, kills, monotonic() - began)


def _options(path: Path, deliveries: int, kill_every: float | None) -> DeploymentOptions:
    seconds = REPLAY_SECONDS if kill_every is None else REPLAY_SECONDS_WITH_KILLS
    speed = deliveries * BALL_GAP / seconds
    simulate = ("--matches", "0", "--replay", str(path), "--speed", f"{speed:.0f}", "--ball-gap", str(BALL_GAP))
    return DeploymentOptions(simulate=simulate, settings=_SETTINGS)


async def _play(deployment: Deployment, kill_every: float | None) -> int:
    """Wait for the end of the match and kill the scraper meanwhile; return the number of kills."""
    if kill_every is None:
        await _wait_until_completed(deployment)
        return 0
    killer = _Killer(deployment, kill_every)
    killing = asyncio.create_task(killer.run(), name="killer")
    try:
        await _wait_until_published(deployment)
    finally:
        killing.cancel()
    await _wait_until_completed(deployment)
    return killer.kills


class _Killer:
    """Kills the scraper with SIGKILL at a fixed interval."""

    def __init__(self, deployment: Deployment, every: float) -> None:
        self._stage = deployment
        self._every = every
        self.kills = 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            scraper = self._stage.scraper()
            if scraper is not None:
                with suppress(psutil.NoSuchProcess):
                    scraper.kill()
                    self.kills += 1


async def _wait_until_published(deployment: Deployment) -> None:
    """Wait until the simulator has published the result."""
    is_over = False
    async with asyncio.timeout(FINISH_TIMEOUT):
        while not is_over:
            await asyncio.sleep(0.1)
            status = await deployment.simulator.get("/_sim/status")
            is_over = all(match["phase"] == "completed" for match in status.body["matches"])


async def _wait_until_completed(deployment: Deployment) -> None:
    """Wait until the API serves the match as completed and in sync."""
    entry: dict[str, object] = {}
    try:
        async with asyncio.timeout(FINISH_TIMEOUT):
            while (entry.get("phase"), entry.get("sync")) != ("completed", "in_sync"):
                await asyncio.sleep(0.1)
                listed = (await deployment.api.get("/cricket-data/matches")).body["matches"]
                entry = listed[0] if listed else {}
    except TimeoutError as error:
        raise UsageError(f"the match was not completed within {FINISH_TIMEOUT:g} s: {entry}") from error


async def _served(deployment: Deployment) -> list[Ball]:
    entry = (await deployment.api.get("/cricket-data/matches")).body["matches"][0]
    response = await deployment.api.get(f"{entry['url']}/events?current=true")
    return balls_of_events(response.body["events"])


def _report(path: Path, expected: list[Ball], served: list[Ball], kills: int, seconds: float) -> FileReport:
    wanted = {(ball.innings, ball.position): ball for ball in expected}
    got = {(ball.innings, ball.position): ball for ball in served}
    repeated = sum(count - 1 for count in Counter((ball.innings, ball.position) for ball in served).values())
    differing = [place for place in wanted if place in got and got[place] != wanted[place]]
    missing = [place for place in wanted if place not in got]
    first = min(differing + missing, default=None)
    return FileReport(
        file=path.name,
        deliveries=len(expected),
        equal=len(wanted) - len(differing) - len(missing),
        wrong=len(differing),
        missing=len(missing),
        extra=len(got.keys() - wanted.keys()) + repeated,
        kills=kills,
        seconds=round(seconds, 1),
        first_difference=None if first is None else f"{wanted[first]} was served as {got.get(first)}",
    )
