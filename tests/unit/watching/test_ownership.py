"""Taking matches over."""

import msgspec
import pytest

from longstop.errors import EpochLost, StorageError
from longstop.matches.live_match_and_feeds import LiveMatches
from longstop.model.match import MatchRef, Phase
from longstop.model.polling_status import SyncState
from longstop.storage.base import MatchBase
from tests.builders import NOW
from tests.live import take
from tests.memory import MemoryStore
from tests.unit.sports.cricket.polling import Polling


async def test_taking_a_match_raises_its_epoch_and_begins_as_recovering() -> None:
    polling = Polling()
    polling.match.bowl("1", "4")
    await polling.start()
    await polling.poll()

    state = await take(polling.store, 1, "node-b")

    assert (state.row.owner, state.row.epoch, state.sync) == ("node-b", 2, SyncState.RECOVERING)
    assert dict(state.events) == dict(polling.state.events)
    assert (state.players, state.snapshot) == (polling.store.players[1], polling.store.snapshots[1])


async def test_the_one_before_can_write_nothing_any_more() -> None:
    polling = Polling()
    await polling.start()
    await take(polling.store, 1, "node-b")
    polling.match.bowl("1")

    with pytest.raises(EpochLost):
        await polling.poll()

    assert polling.store.history == {}


async def test_every_match_that_is_not_archived_is_taken() -> None:
    store = MemoryStore()
    for key in ("M1", "M2", "M3"):
        await store.register(MatchRef("crex", key), key, None, NOW, sport="cricket")
    store.rows[2] = msgspec.structs.replace(store.rows[2], phase=Phase.ARCHIVED)

    states = [match async for match in LiveMatches(store, "node-b").take_over({"crex"}, _never)]

    assert [(state.row.ref.source_id, state.row.owner) for state in states] == [("M1", "node-b"), ("M3", "node-b")]


def _never(ref: MatchRef, error: Exception) -> None:
    raise AssertionError(f"{ref} could not be taken: {error}")


async def test_matches_of_a_disabled_source_are_not_taken_over() -> None:
    store = MemoryStore()
    await store.register(MatchRef("crex", "M1"), "M1", None, NOW, sport="cricket")

    states = [match async for match in LiveMatches(store, "node-b").take_over({"espncricinfo"}, _never)]

    assert states == []
    assert store.rows[1].epoch == 0


@pytest.mark.parametrize("kind", [StorageError, ValueError])
async def test_a_match_that_cannot_be_read_is_reported_and_the_others_are_taken(kind: type[Exception]) -> None:
    class Damaged(MemoryStore):
        async def load(self, match_id: int) -> MatchBase:
            if match_id == 1:
                raise kind("event delivery:1:0:1 of match 1 cannot be read")
            return await super().load(match_id)

    store = Damaged()
    for key in ("M1", "M2"):
        await store.register(MatchRef("crex", key), key, None, NOW, sport="cricket")
    reported: list[str] = []

    taken = LiveMatches(store, "node-b").take_over({"crex"}, lambda ref, error: reported.append(f"{ref}: {error}"))
    states = [state.row.ref.source_id async for state in taken]

    assert states == ["M2"]
    assert reported == ["crex_M1: event delivery:1:0:1 of match 1 cannot be read"]
