"""The replay of real matches: file → simulator → scraper → store → API, and back to the file, ball by ball."""

import asyncio
from collections import Counter
from contextlib import suppress
from pathlib import Path
from time import monotonic

import psutil
from msgspec import Struct

from longstop.errors import UsageError
from longstop_lab.ballbyball import Ball, balls_of_events, balls_of_file
from longstop_lab.stage import Stage, StageOptions, staged

#: Real seconds that a replay takes, whatever the match's length.
REPLAY_SECONDS = 5.0
#: With kills it takes longer, so that there is something to be killed in.
REPLAY_SECONDS_WITH_KILLS = 12.0
BALL_GAP = 30.0
FINISH_WITHIN = 90.0

_SETTINGS = {
    "POLLING_INTERVAL_SECONDS": "0.2",
    "DISCOVERY_INTERVAL_SECONDS": "0.2",
    # A scraper that is killed every other second has done nothing wrong: it is started again at once.
    "LONGSTOP_SETTLED_SECONDS": "0",
}


class FileReport(Struct, frozen=True, kw_only=True):
    """How one file came back."""

    file: str
    deliveries: int
    equal: int
    #: Deliveries that are there but differ, that are not there, and that the file does not have.
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
    """Replay one file through everything and compare what the API serves with it."""
    expected = balls_of_file(path)
    if not expected:
        raise UsageError(f"{path} has no deliveries to compare")
    began = monotonic()
    async with staged(_options(path, len(expected), kill_every)) as stage:
        kills = await _play(stage, kill_every)
        served = await _served(stage)
    return _report(path, expected, served, kills, monotonic() - began)


def _options(path: Path, deliveries: int, kill_every: float | None) -> StageOptions:
    seconds = REPLAY_SECONDS if kill_every is None else REPLAY_SECONDS_WITH_KILLS
    speed = deliveries * BALL_GAP / seconds
    simulate = ("--matches", "0", "--replay", str(path), "--speed", f"{speed:.0f}", "--ball-gap", str(BALL_GAP))
    return StageOptions(simulate=simulate, settings=_SETTINGS)


async def _play(stage: Stage, kill_every: float | None) -> int:
    """Wait for the end of the match, killing the scraper now and then; return how often it was killed."""
    if kill_every is None:
        await _wait_until_completed(stage)
        return 0
    killer = _Killer(stage, kill_every)
    killing = asyncio.create_task(killer.run(), name="killer")
    try:
        await _wait_until_over(stage)
    finally:
        killing.cancel()
    await _wait_until_completed(stage)
    return killer.kills


class _Killer:
    """Kills the scraper with SIGKILL, again and again."""

    def __init__(self, stage: Stage, every: float) -> None:
        self._stage = stage
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


async def _wait_until_over(stage: Stage) -> None:
    """Wait until the simulator has published the result."""
    is_over = False
    async with asyncio.timeout(FINISH_WITHIN):
        while not is_over:
            await asyncio.sleep(0.1)
            status = await stage.simulator.get("/_sim/status")
            is_over = all(match["phase"] == "completed" for match in status.body["matches"])


async def _wait_until_completed(stage: Stage) -> None:
    """Wait until the API says that the match is over and in sync."""
    entry: dict[str, object] = {}
    try:
        async with asyncio.timeout(FINISH_WITHIN):
            while (entry.get("phase"), entry.get("sync")) != ("completed", "in_sync"):
                await asyncio.sleep(0.1)
                listed = (await stage.api.get("/cricket-data/matches")).body["matches"]
                entry = listed[0] if listed else {}
    except TimeoutError as error:
        raise UsageError(f"the match did not come to its end within {FINISH_WITHIN:g} s: {entry}") from error


async def _served(stage: Stage) -> list[Ball]:
    entry = (await stage.api.get("/cricket-data/matches")).body["matches"][0]
    answer = await stage.api.get(f"{entry['url']}/events?current=true")
    return balls_of_events(answer.body["events"])


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
        first_difference=None if first is None else f"{wanted[first]} came back as {got.get(first)}",
    )
