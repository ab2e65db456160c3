"""Taking matches over."""

import msgspec
import pytest

from longstop.errors import EpochLost
from longstop.model.match import MatchRef, Phase, SyncState
from longstop.watching.ownership import take, take_over
from tests.builders import NOW
from tests.memory import MemoryStore
from tests.unit.pipeline.looking import Looking


async def test_taking_a_match_raises_its_epoch_and_begins_as_recovering() -> None:
    looking = Looking()
    looking.match.bowl("1", "4")
    await looking.start()
    await looking.look()

    state = await take(looking.store, 1, "node-b")

    assert (state.row.owner, state.row.epoch, state.sync) == ("node-b", 2, SyncState.RECOVERING)
    assert dict(state.events) == dict(looking.state.events)
    assert (state.players, state.snapshot) == (looking.store.players[1], looking.store.snapshots[1])


async def test_the_one_before_can_write_nothing_any_more() -> None:
    looking = Looking()
    await looking.start()
    await take(looking.store, 1, "node-b")
    looking.match.bowl("1")

    with pytest.raises(EpochLost):
        await looking.look()

    assert looking.store.history == {}


async def test_every_match_that_is_not_archived_is_taken() -> None:
    store = MemoryStore()
    for key in ("M1", "M2", "M3"):
        await store.register(MatchRef("crex", key), key, None, NOW)
    store.rows[2] = msgspec.structs.replace(store.rows[2], phase=Phase.ARCHIVED)

    states = await take_over(store, "node-b")

    assert [(state.row.ref.source_id, state.row.owner) for state in states] == [("M1", "node-b"), ("M3", "node-b")]
