"""What every hot view must do, whatever it is made of."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from longstop.model.match import MatchStatus, Phase
from longstop.model.polling_status import MonitoringRecord, SyncState
from longstop.model.scraper_report import NodeBeat
from longstop.model.snapshot import checksum
from longstop.storage.base import HotReader, HotRow
from tests.contract.stores import HOT_VIEWS, NOW, REF, HotBackend, later


@pytest.fixture(params=list(HOT_VIEWS))
def hot(request: pytest.FixtureRequest, tmp_path: Path) -> HotBackend:
    return HOT_VIEWS[request.param](tmp_path)


@pytest.fixture
async def reader(hot: HotBackend) -> AsyncIterator[HotReader]:
    reader = hot.open_reader()
    yield reader
    await reader.aclose()


async def rows_of(reader: HotReader) -> list[HotRow | None]:
    """Return every row, in the order of the ids."""
    return [await reader.row(record.match_id) for record in await reader.records()]


def hot_row(match_id: int = 1, **changes: Any) -> HotRow:
    record = MonitoringRecord(
        match_id=match_id,
        ref=REF,
        phase=Phase.ACTIVE,
        status=MatchStatus.LIVE,
        sync=SyncState.IN_SYNC,
        last_poll_at=NOW + timedelta(microseconds=7),
        total_polls=3,
        sport="cricket",
    )
    payload = changes.get("payload", b'{"a":1}')
    row = HotRow(
        record=record,
        sequence=4,
        checksum=checksum(payload) if payload is not None else None,
        payload=payload,
        captured_at=NOW,
        scraper_id="node-a",
    )
    return msgspec.structs.replace(row, **changes)


def beat(node: str = "node-a", seconds: float = 0) -> NodeBeat:
    return NodeBeat(node=node, pid=7, started_at=NOW, beat_at=later(seconds), rss_bytes=1, errors_last_minute=0)


async def written(hot: HotBackend, *rows: HotRow, beats: tuple[NodeBeat, ...] = ()) -> None:
    writer = hot.open_writer()
    for row in rows:
        writer.put(row)
    for each in beats:
        writer.beat(each)
    await writer.aclose()


async def test_a_view_that_is_not_there_yet_is_empty(reader: HotReader) -> None:
    assert await reader.row(1) is None
    assert await rows_of(reader) == []
    assert list(await reader.beats()) == []


async def test_rows_and_beats_come_back_exactly_as_they_were_put(hot: HotBackend, reader: HotReader) -> None:
    blank = hot_row(2, sequence=None, checksum=None, payload=None, captured_at=None)

    await written(hot, hot_row(3), blank, beats=(beat("node-b"), beat("node-a")))

    assert await reader.row(3) == hot_row(3)
    assert await rows_of(reader) == [blank, hot_row(3)]
    assert list(await reader.beats()) == [beat("node-a"), beat("node-b")]


async def test_records_come_in_the_order_of_the_ids_and_within_bounds(hot: HotBackend, reader: HotReader) -> None:
    await written(hot, *(hot_row(match_id) for match_id in (4, 1, 3, 2)))

    assert [record.match_id for record in await reader.records()] == [1, 2, 3, 4]
    assert [record.match_id for record in await reader.records(2, 3)] == [2, 3]


async def test_only_the_newest_row_of_a_match_counts(hot: HotBackend, reader: HotReader) -> None:
    newest = hot_row(sequence=6, payload=b'{"a":3}')

    await written(hot, hot_row(), hot_row(sequence=5, payload=b'{"a":2}'), newest)

    assert await rows_of(reader) == [newest]


async def test_a_payload_that_came_back_shows_its_new_sequence_number(hot: HotBackend, reader: HotReader) -> None:
    await written(hot, hot_row())

    await written(hot, hot_row(sequence=6))

    assert await reader.row(1) == hot_row(sequence=6)


async def test_a_restarted_writer_goes_on_with_what_others_wrote(hot: HotBackend, reader: HotReader) -> None:
    await written(hot, hot_row(1), beats=(beat(),))

    await written(hot, hot_row(2), beats=(beat(seconds=5),))

    assert await rows_of(reader) == [hot_row(1), hot_row(2)]
    assert list(await reader.beats()) == [beat(seconds=5)]


async def test_a_forgotten_match_is_gone_and_may_come_back(hot: HotBackend, reader: HotReader) -> None:
    writer = hot.open_writer()
    writer.put(hot_row(1))
    writer.put(hot_row(2))
    await writer.aclose()

    again = hot.open_writer()
    again.forget(1)
    await again.aclose()
    assert [record.match_id for record in await reader.records()] == [2]
    assert await reader.row(1) is None
    once_more = hot.open_writer()
    once_more.put(hot_row(1))
    await once_more.aclose()

    assert [record.match_id for record in await reader.records()] == [1, 2]


async def test_only_the_named_matches_are_kept(hot: HotBackend, reader: HotReader) -> None:
    writer = hot.open_writer()
    for number in (1, 2, 3):
        writer.put(hot_row(number))
    await writer.aclose()

    again = hot.open_writer()
    again.put(hot_row(1))
    again.keep_only({2})
    await again.aclose()

    assert [record.match_id for record in await reader.records()] == [2]
