"""The longest time without a poll of a match in play, as the API shows it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any

from bench.reporting import rounded
from longstop.errors import UsageError
from longstop.model.match import IN_PLAY
from longstop_lab.client import list_matches
from longstop_lab.deployment import Deployment
from tests.background import background

#: More often than twice a second, also when an answer takes its time.
SAMPLE_EVERY = 0.25


class Gaps:
    """The greatest age that was seen: a gap is as long as the data had grown old when it ended."""

    def __init__(self) -> None:
        self.longest: float | None = None
        self.match: str | None = None
        self.samples = 0
        self._began = monotonic()

    def take(self, entries: Sequence[dict[str, Any]]) -> None:
        self.samples += 1
        for entry in entries:
            age = entry["data_age_seconds"]
            if entry["status"] in IN_PLAY and age is not None and age > (self.longest or 0.0):
                self.longest, self.match = age, entry["match_id"]

    def figures(self) -> dict[str, Any]:
        per_second = self.samples / max(monotonic() - self._began, SAMPLE_EVERY)
        return {"gap_max_s": rounded(self.longest), "samples_per_s": rounded(per_second, 1)}


@asynccontextmanager
async def sampled_gaps(deployment: Deployment) -> AsyncIterator[Gaps]:
    """Sample all the time while the block runs."""
    gaps = Gaps()
    async with background(_sample(deployment, gaps)):
        yield gaps


async def _sample(deployment: Deployment, gaps: Gaps) -> None:
    while True:
        with suppress(UsageError):  # a restarting API shows no age
            gaps.take(await list_matches(deployment))
        await asyncio.sleep(SAMPLE_EVERY)
