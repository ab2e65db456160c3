"""Stores a few balls and names each once it is acknowledged: the process that the sweep kills."""

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from longstop.model.event import Event, EventKey, Op
from longstop.model.match import MatchRef, MatchStatus, Phase
from longstop.model.snapshot import canonical, checksum
from longstop.sports.cricket.model import CricketKind, Delivery, Overs, Runs
from longstop.storage.base import MatchUpdate, SnapshotDraft
from longstop.storage.sqlite.matches import SqliteMatchStore

REF = MatchRef("crex", "K1")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def write(path: Path, balls: int) -> None:
    store = await SqliteMatchStore.open(path)
    match = await store.register(REF, "a match", NOW, NOW, sport="cricket")
    claimed = await store.claim(match.match_id, "node")
    for number in range(claimed.seq + 1, balls + 1):
        receipt = await store.save_update(update(match.match_id, claimed.epoch, number))
        # Straight to the pipe: what was acknowledged must not sit in a buffer that dies with us.
        os.write(1, f"{receipt.match.seq}\n".encode())
    await store.aclose()


def update(match_id: int, epoch: int, number: int) -> MatchUpdate:
    """Return the update that brings ball `number`; its snapshot says the same number, so that halves would show."""
    over, nth = divmod(number - 1, 6)
    ball = Event(
        key=EventKey(CricketKind.DELIVERY, (1, over, nth + 1)),
        rev=1,
        op=Op.INSERT,
        content=Delivery(label=Overs(over, nth + 1), runs=Runs(batter=number % 7)),
        source_event_id=str(number),
        position=number,
    )
    payload = canonical({"balls": number, "filler": "x" * 2000})
    return MatchUpdate(
        match_id=match_id,
        epoch=epoch,
        scraper_id="node",
        captured_at=NOW,
        phase=Phase.ACTIVE,
        status=MatchStatus.LIVE,
        title="a match",
        start_at=NOW,
        events=(ball,),
        snapshot=SnapshotDraft(checksum=checksum(payload), payload=payload, provenance={}, update_latency_ms=0),
        findings=(),
        players={},
        teams={},
    )


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2])))
