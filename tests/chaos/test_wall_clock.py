"""The wall clock leaps an hour ahead and back: nothing restarts, opens, expires or looks old by it."""

import asyncio
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
import pytest

from longstop.errors import UsageError
from tests.acceptance.harness import assert_nothing_lost, logged, read_log
from tests.background import background
from tests.chaos.live_deployment import LiveDeployment, is_alive, live_deployment, until, until_true
from tests.prerequisites import unavailable

pytestmark = pytest.mark.timeout(240)

OUT_OF_ORDER = msgspec.json.encode([{"kind": "status", "status": 503}])
#: What would be done because time seems to have passed.
UNWANTED = {
    "process.died",
    "process.restarted",
    "watch.restarted",
    "match.stale",
    "match.gone",
    "match.phase_changed",
    "match.finished",
    "circuit_opened",
    "health.degraded",
    "health.failing",
    "health.recovering",
    "recovery.started",
    "task.failed",
    "task.ended",
    "loop.stalled",
    "browser.recycled",
}


@pytest.fixture
def libfaketime() -> Path:
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    if not found:
        unavailable("libfaketime is missing: apt-get install faketime")
    return found[0]


class HealthObserver:
    """Asks `/health` all the time, and keeps every answer."""

    def __init__(self, running: LiveDeployment) -> None:
        self._running = running
        self.answers: list[dict[str, Any]] = []
        self.unanswered: list[str] = []

    async def ask(self) -> None:
        while True:
            try:
                self.answers.append((await self._running.deployment.api.get("/health")).body)
            except UsageError as error:
                self.unanswered.append(str(error))
            await asyncio.sleep(0.05)

    @property
    def complaints(self) -> list[Any]:
        """Return the answers that are not healthy."""
        return [
            *self.unanswered,
            *((each["status"], each["reasons"]) for each in self.answers if each["status"] != "healthy"),
        ]

    @property
    def ages(self) -> list[float]:
        """Return how old the matches were said to be."""
        return [entry["data_age_seconds"] for each in self.answers for entry in each["per_match_status"]]


def faked(libfaketime: Path, shift: Path) -> dict[str, str]:
    """Return the environment of a process whose wall clock is shifted by what stands in a file."""
    set_clock(shift, "+0s")
    return {
        "LD_PRELOAD": str(libfaketime),
        "FAKETIME_TIMESTAMP_FILE": str(shift),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def set_clock(shift: Path, leap: str) -> None:
    shift.write_text(f"{leap}\n")


async def move_clock(shift: Path, log: Path) -> None:
    """Set the clock ahead, back and right again; play is followed under each."""
    for leap in ("+3600s", "-3600s", "+0s"):
        set_clock(shift, leap)
        polls = len(logged(read_log(log), "poll.succeeded"))
        await asyncio.sleep(3)
        await until(lambda: len(logged(read_log(log), "poll.succeeded")) > polls + 1, f"play is followed at {leap}")  # noqa: B023


def assert_clock_moved(said: list[dict[str, Any]]) -> None:
    moments = [event["at"] for event in said]
    assert (max(moments) - min(moments)).total_seconds() > 7000
    assert [round(event["seconds"], -2) for event in logged(said, "clock.jumped")] == [3600, -7200, 3600]


def assert_no_reaction(observer: HealthObserver, said: list[dict[str, Any]]) -> None:
    assert [event for event in said if event["event"] in UNWANTED] == []
    assert len(observer.answers) > 20
    assert observer.complaints == []
    assert max(observer.ages) < 30


@pytest.mark.req("NFR-005", "NFR-009", "FR-012")
async def test_an_hour_ahead_and_two_back_move_nothing(libfaketime: Path, tmp_path: Path) -> None:
    shift = tmp_path / "shift"
    async with live_deployment(matches=2) as running:
        await running.replace_up(**faked(libfaketime, shift))
        pids = [running.pid_of(name) for name in ("up", "scraper", "api")]
        told_before, observer = len(read_log(running.deployment.log)), HealthObserver(running)
        await until_true(is_healthy, running)

        async with background(observer.ask()):
            await move_clock(shift, running.deployment.log)

        said = read_log(running.deployment.log)[told_before:]
        left = [running.pid_of(name) for name in ("up", "scraper", "api")]
        verdict = await running.verdict()

    assert_clock_moved(said)
    assert_no_reaction(observer, said)
    assert left == pids
    assert_nothing_lost(verdict)


def times_degraded(running: LiveDeployment) -> int:
    """Return how often the scraper was graded worse."""
    return len(running.logged("health.degraded")) + len(running.logged("health.failing"))


@pytest.mark.req("NFR-005", "NFR-009", "FR-012", "MON-8")
async def test_a_door_that_was_closed_an_hour_ahead_opens_in_its_own_time_and_trouble_is_seen_an_hour_back(
    libfaketime: Path, tmp_path: Path
) -> None:
    shift = tmp_path / "shift"
    async with live_deployment(matches=2) as running:
        await running.replace_up(**faked(libfaketime, shift), LONGSTOP_STALL_SECONDS="10")
        pids = [running.pid_of(name) for name in ("up", "scraper", "api")]
        set_clock(shift, "+3600s")
        await until(lambda: running.logged("clock.jumped"), "the leap is noticed")
        await running.deployment.simulator.post("/_sim/faults", OUT_OF_ORDER)
        await until(lambda: running.logged("circuit_opened"), "the circuit opens")
        set_clock(shift, "-3600s")
        await until(lambda: len(running.logged("clock.jumped")) > 1, "the next leap is noticed")
        before = times_degraded(running)

        await until(lambda: times_degraded(running) > before, "it is graded an hour back", within=75)
        cleared_at = monotonic()
        await running.deployment.simulator.delete("/_sim/faults")
        await until_true(running.is_fresh_since, cleared_at)
        left = [running.pid_of(name) for name in ("up", "scraper", "api")]
        verdict = await running.verdict()

    assert left == pids
    assert_nothing_lost(verdict)


@pytest.mark.req("NFR-005", "NFR-009", "FR-012")
async def test_the_next_life_of_a_scraper_knows_how_old_its_matches_are_though_the_clock_leapt(
    libfaketime: Path, tmp_path: Path
) -> None:
    shift = tmp_path / "shift"
    async with live_deployment(matches=2) as running:
        await running.replace_up(**faked(libfaketime, shift))
        observer, scraper = HealthObserver(running), running.deployment.scraper()
        assert scraper is not None
        set_clock(shift, "+3600s")
        await until(lambda: running.logged("clock.jumped"), "the leap is noticed")

        async with background(observer.ask()):
            scraper.kill()
            await until(lambda: running.logged("process.died"), "it dies")
            polls = len(running.logged("poll.succeeded"))
            await until(lambda: len(running.logged("poll.succeeded")) > polls + 1, "the next one reads on")
            await until(lambda: len(observer.answers) > 5, "health was asked some times")
        verdict = await running.verdict()

    assert max(observer.ages) < 30
    assert_nothing_lost(verdict)


@pytest.mark.req("NFR-005", "NFR-009", "FR-012")
@pytest.mark.parametrize("leaping", ["scraper", "api"])
async def test_processes_whose_wall_clocks_differ_by_an_hour_agree_on_every_age(
    leaping: str, libfaketime: Path, tmp_path: Path
) -> None:
    shift, logs = tmp_path / "shift", {name: tmp_path / f"{name}.log" for name in ("scraper", "api")}
    async with live_deployment(matches=2) as running, AsyncExitStack() as stack:
        running.up.send_signal(signal.SIGTERM)
        await until(lambda: not is_alive(running.up), "the supervisor stops")
        began, observer = monotonic(), HealthObserver(running)
        alone = [
            await stack.enter_async_context(
                started(running, name, log, faked(libfaketime, shift) if name == leaping else {})
            )
            for name, log in logs.items()
        ]
        await until_true(running.is_fresh_since, began)
        await until_true(is_healthy, running)

        async with background(observer.ask()):
            await move_clock(shift, logs["scraper"])

        said = [event for log in logs.values() for event in read_log(log)]
        still_alive = [process.returncode is None for process in alone]
        # The account lets a fresh scraper read everything, for which there has to be a supervisor.
        await stack.aclose()
        began = monotonic()
        await running.start_up()
        await until_true(running.is_fresh_since, began)
        verdict = await running.verdict()

    assert_no_reaction(observer, said)
    if leaping == "scraper":  # the API says next to nothing while all is well
        assert_clock_moved(said)
    else:
        assert_clock_was_shown(observer)
    assert all(still_alive)
    assert_nothing_lost(verdict)


def assert_clock_was_shown(observer: HealthObserver) -> None:
    hours = {each["timestamp"][11:13] for each in observer.answers}
    assert len(hours) >= 3


async def is_healthy(running: LiveDeployment) -> bool:
    try:
        return bool((await running.deployment.api.get("/health")).body["status"] == "healthy")
    except UsageError:
        return False


@asynccontextmanager
async def started(running: LiveDeployment, verb: str, log: Path, more: dict[str, str]) -> AsyncIterator[Process]:
    """Run one process without a supervisor."""
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "longstop", verb),
            env={**running.environ, **more},
            stdin=DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait_for(process.wait(), 40)
