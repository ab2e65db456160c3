"""The time until data are fresh again, as a consumer of the API sees it."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from bench.reporting import rounded, say
from longstop.clock import SystemClock, from_iso
from longstop.errors import UsageError
from longstop.model.match import IN_PLAY
from longstop_lab.client import list_matches, percentile
from longstop_lab.deployment import Deployment

POLL_SECONDS = 0.1
#: The limit of a recovery, in seconds.
GIVE_UP_AFTER = 60.0

Entries = Sequence[dict[str, Any]]


def is_any_fresh(entries: Entries, since: datetime) -> bool:
    """Return whether one match in sync was polled since: the first sign of recovery after a kill."""
    return any(_is_fresh(entry, since) for entry in entries)


def are_all_fresh(entries: Entries, since: datetime) -> bool:
    """Return whether every match in play was polled since, as it must after an outage."""
    in_play = [entry for entry in entries if entry["status"] in IN_PLAY]
    return bool(in_play) and all(_is_fresh(entry, since) for entry in in_play)


def _is_fresh(entry: dict[str, Any], since: datetime) -> bool:
    at = entry["last_poll_at"]
    return entry["sync"] == "in_sync" and at is not None and from_iso(at) > since


class Recoveries:
    """Measures the time from each fault until the API shows the recovery."""

    def __init__(self, deployment: Deployment, has_recovered: Callable[[Entries, datetime], bool]) -> None:
        self.seconds: list[float] = []
        self.count = 0
        self.never = 0
        #: The time of the last recovery.
        self.last_at: datetime | None = None
        self._deployment = deployment
        self._has_recovered = has_recovered
        self._clock = SystemClock()
        self._waiting: set[asyncio.Task[None]] = set()

    def begin(self, since: datetime | None = None) -> None:
        """Start to wait for the recovery after a moment: now, or the end of an outage."""
        self.count += 1
        task = asyncio.create_task(self._wait(since or self._clock.now()))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def all_done(self) -> None:
        await asyncio.gather(*self._waiting)

    def figures(self) -> dict[str, float | int | None]:
        return {
            "recover_p50_s": rounded(percentile(self.seconds, 0.50)),
            "recover_p95_s": rounded(percentile(self.seconds, 0.95)),
            "recover_max_s": rounded(max(self.seconds, default=None)),
            "never_recovered": self.never,
        }

    async def _wait(self, since: datetime) -> None:
        await asyncio.sleep(max(0.0, -self._seconds_since(since)))
        while self._seconds_since(since) < GIVE_UP_AFTER:
            if await self._is_recovered(since):
                self.seconds.append(self._seconds_since(since))
                self.last_at = self._clock.now()
                return
            await asyncio.sleep(POLL_SECONDS)
        self.never += 1
        say(f"not recovered within {GIVE_UP_AFTER:g} s")

    def _seconds_since(self, moment: datetime) -> float:
        return (self._clock.now() - moment).total_seconds()

    async def _is_recovered(self, since: datetime) -> bool:
        try:
            return self._has_recovered(await list_matches(self._deployment), since)
        except UsageError:  # the API itself is restarting
            return False
