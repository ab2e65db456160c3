"""From the moment a site publishes an event to the moment the API serves it."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from longstop.clock import SystemClock
from longstop.model.match import IN_PLAY
from longstop_lab.client import list_matches
from longstop_lab.deployment import Deployment
from longstop_lab.simulator.truth import read_truth

#: A match's key, and the source's id of one of its events.
EventId = tuple[str, str]


class Serving:
    """Follows the events of some matches closely and notes when each is first served."""

    def __init__(self, deployment: Deployment) -> None:
        self.first_seen: dict[EventId, datetime] = {}
        self._deployment = deployment
        #: For each match that is followed, its key and the last sequence number seen.
        self._after: dict[int, tuple[str, int]] = {}

    async def begin(self, matches: int) -> None:
        """Choose matches in play, spread over all of them, and skip what they have already."""
        playing = [entry for entry in await list_matches(self._deployment) if entry["status"] in IN_PLAY]
        for entry in playing[:: max(1, len(playing) // matches)][:matches]:
            key, seq = entry["match_id"].partition("_")[2], 0
            has_more = True
            while has_more:
                page = await self._page(entry["matchId"], seq)
                seq, has_more = page["next_after"], page["has_more"]
            self._after[entry["matchId"]] = (key, seq)

    async def follow(self, every: float) -> None:
        """Ask for news of each match so often, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            for match_id in self._after:
                await self._look(match_id)
            await asyncio.sleep(max(0.0, began + every - loop.time()))

    async def _look(self, match_id: int) -> None:
        key, seq = self._after[match_id]
        page = await self._page(match_id, seq)
        now = SystemClock().now()
        for event in page["events"]:
            # A first version only: which published change a later one answers is not for us to guess.
            if event["rev"] == 1:
                self.first_seen[key, event["source_event_id"]] = now
        self._after[match_id] = (key, page["next_after"])

    async def _page(self, match_id: int, after: int) -> dict[str, Any]:
        answer = await self._deployment.api.get(f"/cricket-data/match-info/{match_id}/events?after={after}&limit=1000")
        body: dict[str, Any] = answer.body
        return body


def served_delays(truth: Path, first_seen: Mapping[EventId, datetime], *, since: datetime) -> list[float]:
    """Return for every followed event that was published since then the seconds from there to its first sight."""
    published: dict[EventId, datetime] = {}
    for line in read_truth(truth):
        if line.op == "insert" and line.at >= since:
            published.setdefault((line.match, line.id), line.at)
    return [(seen - published[event]).total_seconds() for event, seen in first_seen.items() if event in published]
