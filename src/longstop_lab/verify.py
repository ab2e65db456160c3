"""The replay of real matches: file → simulator → scraper → store → API, compared with the file.

Every ball is compared, every innings total (penalty runs belong to it, not to a ball), and the outcome.

This module reads the files itself. The simulator has another reader, so that a mistake in one shows in the comparison.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import psutil
from msgspec import Struct

from longstop.errors import UsageError
from longstop.text import printable
from longstop.yaml_validation import read_file
from longstop_lab.client import current_events
from longstop_lab.deployment import Deployment, DeploymentOptions, deployed

#: Real seconds of a replay; longer for more balls than this many per second.
REPLAY_SECONDS = 5.0
MAX_BALLS_PER_SECOND = 120
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


class FileTruth(Struct, frozen=True, kw_only=True):
    """What a file says about a match."""

    #: In order of play.
    balls: tuple[Ball, ...]
    #: The runs of each innings that had a ball; a forfeited one has none.
    totals: Mapping[int, int]
    #: won, tie, draw or no result.
    outcome: str


def truth_of(path: Path) -> FileTruth:
    """Return what is to be compared of a Cricsheet file."""
    try:
        match = json.loads(read_file(path, MAX_FILE_BYTES))
        outcome = match["info"]["outcome"]
        return FileTruth(
            balls=tuple(_balls_of(match["innings"])),
            totals={
                number: _total_of(innings)
                for number, innings in enumerate(match["innings"], start=1)
                if innings.get("overs")
            },
            outcome="won" if "winner" in outcome else outcome["result"],
        )
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is not a Cricsheet JSON file") from error


def _total_of(innings: dict[str, Any]) -> int:
    deliveries = (delivery for over in innings.get("overs", ()) for delivery in over["deliveries"])
    penalties: dict[str, int] = innings.get("penalty_runs", {})
    total: int = sum(each["runs"]["total"] for each in deliveries)
    return total + sum(penalties.values())


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


class Served(Struct, frozen=True, kw_only=True):
    """What the API serves of a match."""

    balls: tuple[Ball, ...]
    totals: Mapping[int, int]
    outcome: str | None


def balls_of_events(events: list[dict[str, Any]]) -> tuple[Ball, ...]:
    """Return the current deliveries that the API serves, in order of play."""
    return tuple(
        Ball(
            innings=event["innings"],
            over=event["over"],
            position=event["position"],
            runs=_nonzero(event["data"]["runs"]),
            wickets=tuple(sorted((w["kind"], w["player_out"]) for w in event["data"]["wickets"])),
        )
        for event in events
        if event["kind"] == "delivery"
    )


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
    #: Innings whose total differs, and the outcome that was served if it differs.
    wrong_totals: int
    wrong_outcome: bool
    kills: int
    seconds: float
    first_difference: str | None

    @property
    def is_good(self) -> bool:
        are_balls_equal = self.deliveries == self.equal and not (self.wrong or self.missing or self.extra)
        return are_balls_equal and not (self.wrong_totals or self.wrong_outcome)


async def verify_file(path: Path, *, kill_every: float | None) -> FileReport:
    """Replay one file and compare it with what the API serves."""
    truth = truth_of(path)
    if not truth.balls:
        raise UsageError(f"{path} contains no deliveries to compare")
    began = monotonic()
    async with deployed(_options(path, len(truth.balls), kill_every)) as deployment:
        kills = await _play(deployment, kill_every)
        served = await _served(deployment)
    return compare(printable(path.name), truth, served, kills=kills, seconds=monotonic() - began)


def replay_seconds(deliveries: int, kill_every: float | None) -> float:
    """Return how long a replay takes: a match of five days has ten times the balls of a short one."""
    least = REPLAY_SECONDS if kill_every is None else REPLAY_SECONDS_WITH_KILLS
    return max(least, deliveries / MAX_BALLS_PER_SECOND)


def _options(path: Path, deliveries: int, kill_every: float | None) -> DeploymentOptions:
    speed = deliveries * BALL_GAP / replay_seconds(deliveries, kill_every)
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


async def _served(deployment: Deployment) -> Served:
    entry = (await deployment.api.get("/cricket-data/matches")).body["matches"][0]
    events = await current_events(deployment, entry["url"])
    # From the events, which are stored together. The payload comes from the live view and may be a second older.
    return Served(
        balls=balls_of_events(events),
        totals={event["innings"]: event["data"]["runs"] for event in events if event["kind"] == "innings"},
        outcome=next((event["data"]["outcome"] for event in events if event["kind"] == "result"), None),
    )


def compare(file: str, truth: FileTruth, served: Served, *, kills: int, seconds: float) -> FileReport:
    """Return how what is served differs from the file."""
    wanted = {(ball.innings, ball.position): ball for ball in truth.balls}
    got = {(ball.innings, ball.position): ball for ball in served.balls}
    repeated = sum(count - 1 for count in Counter((ball.innings, ball.position) for ball in served.balls).values())
    differing = [place for place in wanted if place in got and got[place] != wanted[place]]
    missing = [place for place in wanted if place not in got]
    totals = [
        f"innings {number} has {truth.totals.get(number)} runs and was served with {served.totals.get(number)}"
        for number in sorted({*truth.totals, *served.totals})
        if truth.totals.get(number) != served.totals.get(number)
    ]
    is_outcome_wrong = served.outcome != truth.outcome
    differences = [f"{wanted[place]} was served as {got.get(place)}" for place in sorted(differing + missing)]
    differences += totals
    if is_outcome_wrong:
        differences.append(f"the match ended with {truth.outcome} and was served with {served.outcome}")
    return FileReport(
        file=file,
        deliveries=len(truth.balls),
        equal=len(wanted) - len(differing) - len(missing),
        wrong=len(differing),
        missing=len(missing),
        extra=len(got.keys() - wanted.keys()) + repeated,
        wrong_totals=len(totals),
        wrong_outcome=is_outcome_wrong,
        kills=kills,
        seconds=round(seconds, 1),
        first_difference=next(iter(differences), None),
    )
