"""Writes ball after ball into a store and prints each one once it is acknowledged, until it is killed."""

import asyncio
import sys
from pathlib import Path

from longstop.storage.sqlite.matches import SqliteMatchStore
from tests.contract.stores import NOW, REF, delivery, delivery_key, draft, event, update


async def write(path: Path) -> None:
    store = await SqliteMatchStore.open(path)
    match = await store.register(REF, "Red v Blue", NOW, NOW, sport="cricket")
    claimed = await store.claim(match.match_id, "node-a")
    for number in range(claimed.seq + 1, sys.maxsize):
        ball = event(delivery_key(number // 6, number % 6 + 1), content=delivery(number), position=number)
        receipt = await store.save_update(
            update(match.match_id, ball, epoch=claimed.epoch, snapshot=draft(score=number))
        )
        print(receipt.match.seq, flush=True)


asyncio.run(write(Path(sys.argv[1])))
