"""How long it takes until data are fresh again after a kill, as a consumer of the API sees it."""

import asyncio
from datetime import datetime
from time import monotonic

from bench.frame import rounded
from longstop.clock import SystemClock, from_iso
from longstop.errors import UsageError
from longstop.trial.sample import list_matches, percentile
from longstop.trial.stage import Stage

LOOK_EVERY = 0.1
#: Longer than this is no recovery.
GIVE_UP_AFTER = 60.0


class Recoveries:
    """Times every kill until the first fresh poll that the API shows."""

    def __init__(self, stage: Stage) -> None:
        self.seconds: list[float] = []
        self.kills = 0
        self.never = 0
        self._stage = stage
        self._waiting: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Begin to wait for what comes after a kill that just happened."""
        self.kills += 1
        task = asyncio.create_task(self._wait(SystemClock().now(), monotonic()))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def all_done(self) -> None:
        await asyncio.gather(*self._waiting)

    def figures(self) -> dict[str, float | int | None]:
        return {
            "kills": self.kills,
            "recover_p50_s": rounded(percentile(self.seconds, 0.50)),
            "recover_p95_s": rounded(percentile(self.seconds, 0.95)),
            "recover_max_s": rounded(max(self.seconds, default=None)),
        }

    async def _wait(self, killed_at: datetime, began: float) -> None:
        while monotonic() - began < GIVE_UP_AFTER:
            if await self._is_fresh(killed_at):
                self.seconds.append(monotonic() - began)
                return
            await asyncio.sleep(LOOK_EVERY)
        self.never += 1

    async def _is_fresh(self, since: datetime) -> bool:
        try:
            entries = await list_matches(self._stage)
        except UsageError:  # the API itself is between two lives
            return False
        polled = [entry["last_poll_at"] for entry in entries if entry["sync"] == "in_sync"]
        return any(at is not None and from_iso(at) > since for at in polled)
