"""What an honest client and an operator measure during `hostile`: probes, ages, memory, logs."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import psutil
from msgspec import Struct

from longstop.errors import UsageError
from longstop.model.match import IN_PLAY
from longstop_lab.client import Client, list_matches
from longstop_lab.deployment import Deployment

MEGABYTE = 1_000_000
TRACEBACK = b"Traceback (most recent call last)"
PROBE_EVERY, PROBE_TIMEOUT = 0.05, 1.0
SAMPLE_EVERY = 0.25
WEIGH_EVERY = 0.5
#: Limits of a process, of an age, and of the log of one phase.
HEAVY_MB, OLD_SECONDS, LOUD_MB = 600.0, 10.0, 1.0


class HealthySite(Struct, frozen=True, kw_only=True):
    """The API as far as it is about the healthy site."""

    api: Client
    sites: tuple[str, ...]


class LiveProbe:
    """Asks `/live` over a new connection each time, as a monitor does, without waiting for the last answer."""

    def __init__(self, port: int) -> None:
        #: Whether a damaged store is expected.
        self.is_store_damaged = False
        #: Probes by whether the store was damaged, and those without an answer in time.
        self.sent: Counter[bool] = Counter()
        self.failed: Counter[bool] = Counter()
        self._port = port

    async def run(self) -> None:
        async with asyncio.TaskGroup() as probes:
            while True:
                probes.create_task(self._probe())
                await asyncio.sleep(PROBE_EVERY)

    async def _probe(self) -> None:
        was_damaged = self.is_store_damaged
        is_answered = await _is_alive(self._port)
        # A probe that overlaps with a damaged store belongs to it.
        key = was_damaged or self.is_store_damaged
        self.sent[key] += 1
        self.failed[key] += not is_answered


async def _is_alive(port: int) -> bool:
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(PROBE_TIMEOUT):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"GET /live HTTP/1.1\r\nHost: longstop\r\nConnection: close\r\n\r\n")
                return (await reader.readline()).startswith(b"HTTP/1.1 200")
            finally:
                writer.close()
    return False


class AgeSampler:
    """Samples the age of every match of the healthy site that is in play, without `others`."""

    def __init__(self, site: HealthySite, probe: LiveProbe, others: Collection[str]) -> None:
        #: Ages by whether the store was damaged.
        self.ages: dict[bool, list[float]] = {False: [], True: []}
        self._site = site
        self._probe = probe
        self._others = others
        #: When each match was last polled, on the monotonic clock.
        self._polled: dict[str, float] = {}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read())
            tasks.create_task(self._sample())

    def forget(self) -> None:
        """Drop what was read last; the next answer brings it again."""
        self._polled = {}

    async def _read(self) -> None:
        while True:
            with suppress(UsageError):
                self._take(await list_matches(self._site))
            await asyncio.sleep(SAMPLE_EVERY)

    async def _sample(self) -> None:
        """Sample at a steady pace: while the API does not answer, what a client has read last grows older."""
        while True:
            now, is_damaged = monotonic(), self._probe.is_store_damaged
            self.ages[is_damaged] += [now - at for at in self._polled.values()]
            await asyncio.sleep(SAMPLE_EVERY)

    def _take(self, entries: Sequence[dict[str, Any]]) -> None:
        now = monotonic()
        self._polled = {
            entry["match_id"]: now - entry["data_age_seconds"]
            for entry in entries
            if entry["status"] in IN_PLAY
            and entry["data_age_seconds"] is not None
            and entry["match_id"] not in self._others
        }


class MemoryMeter:
    """Notes the greatest memory of each process of the deployment, in all and during each phase."""

    def __init__(self, deployment: Deployment) -> None:
        self.peaks: dict[str, int] = {}
        #: The peaks of the phases that are under way.
        self.phases: list[dict[str, int]] = []
        self._deployment = deployment

    async def run(self) -> None:
        while True:
            for role, pid in self._pids():
                with suppress(psutil.Error):
                    rss = psutil.Process(pid).memory_info().rss
                    for peaks in (self.peaks, *self.phases):
                        peaks[role] = max(peaks.get(role, 0), rss)
            await asyncio.sleep(WEIGH_EVERY)

    def figures(self) -> dict[str, float]:
        return {role: round(peak / MEGABYTE, 1) for role, peak in sorted(self.peaks.items())}

    def _pids(self) -> list[tuple[str, int]]:
        children = [(role, self._deployment.process(role)) for role in ("scraper", "api")]
        return [("up", self._deployment.up_pid), *((role, child.pid) for role, child in children if child is not None)]


class Watch:
    """All that is measured, and what of it was beyond a limit in one phase."""

    def __init__(self, deployment: Deployment, site: HealthySite, port: int, others: Collection[str]) -> None:
        self.probe = LiveProbe(port)
        self.sampler = AgeSampler(site, self.probe, others)
        self.meter = MemoryMeter(deployment)
        self._deployment = deployment

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for part in (self.probe, self.sampler, self.meter):
                tasks.create_task(part.run())

    @asynccontextmanager
    async def phase(self, name: str, found: list[str]) -> AsyncIterator[None]:
        """Append a sentence for each limit that does not hold while the block runs."""
        failed, ages, log = self.probe.failed[False], len(self.sampler.ages[False]), self._log_bytes()
        peaks: dict[str, int] = {}
        self.meter.phases.append(peaks)
        yield
        self.meter.phases = [each for each in self.meter.phases if each is not peaks]
        failed, oldest = self.probe.failed[False] - failed, max(self.sampler.ages[False][ages:], default=0.0)
        written = (self._log_bytes() - log) / MEGABYTE
        heavy = {role: rss / MEGABYTE for role, rss in peaks.items() if rss > HEAVY_MB * MEGABYTE}
        found += [f"{name}: {failed} probes of /live without an answer"] if failed else []
        found += [f"{name}: a match was {oldest:.1f} s old"] if oldest >= OLD_SECONDS else []
        found += [f"{name}: the {role} took {size:.0f} MB" for role, size in heavy.items()]
        found += [f"{name}: {written:.1f} MB of log"] if written > LOUD_MB else []

    @contextmanager
    def damaged(self) -> Iterator[None]:
        """Count what is measured while the block runs as of a damaged store."""
        self.probe.is_store_damaged = True
        yield
        self.probe.is_store_damaged = False
        # What was read last may be from before the damage.
        self.sampler.forget()

    def _log_bytes(self) -> int:
        return sum(path.stat().st_size for path in logs(self._deployment))


def logs(deployment: Deployment) -> list[Path]:
    """Return the outputs of all supervisors that ran, the newest last."""
    return sorted(deployment.log.parent.glob("longstop*.log"), key=lambda path: path.stat().st_mtime_ns)


def count_in(path: Path, what: bytes) -> int:
    """Return how often a text occurs in a file that may be large."""
    count, end = 0, b""
    with path.open("rb") as file:
        while chunk := file.read(MEGABYTE):
            count += (end + chunk).count(what)
            end = (end + chunk)[-len(what) + 1 :]
    return count
