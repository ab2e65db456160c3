"""What every hot view must do, whatever it is made of."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from longstop.model.match import MatchStatus, MonitoringRecord, Phase, SyncState
from longstop.storage.base import HotReader, HotRow, HotWriter, NodeBeat
from longstop.storage.sqlite.hot import SqliteHotReader, SqliteHotWriter
from tests.contract.stores import NOW, REF, later


class ClosableWriter(HotWriter, Protocol):
    def close(self) -> None: ...


class SqliteHot:
    """The hot view on SQLite. Its clockwork stands still: only closing writes, so nothing depends on timing."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "hot.db"

    def open_writer(self) -> ClosableWriter:
        return SqliteHotWriter(self.path, on_failure=_raise, flush_every_seconds=3600)

    def open_reader(self) -> HotReader:
        return SqliteHotReader(self.path)


def _raise(error: Exception) -> None:
    raise error


BACKENDS: dict[str, Callable[[Path], SqliteHot]] = {"sqlite": SqliteHot}


@pytest.fixture(params=list(BACKENDS))
def hot(request: pytest.FixtureRequest, tmp_path: Path) -> SqliteHot:
    return BACKENDS[request.param](tmp_path)


@pytest.fixture
def reader(hot: SqliteHot) -> Iterator[HotReader]:
    reader = hot.open_reader()
    yield reader
    reader.close()


def rows_of(reader: HotReader) -> list[HotRow | None]:
    """Return every row, in the order of the ids."""
    return [reader.row(record.match_id) for record in reader.records()]


def hot_row(match_id: int = 1, **changes: Any) -> HotRow:
    record = MonitoringRecord(
        match_id=match_id,
        ref=REF,
        phase=Phase.ACTIVE,
        status=MatchStatus.LIVE,
        sync=SyncState.IN_SYNC,
        last_poll_at=NOW + timedelta(microseconds=7),
        total_polls=3,
    )
    row = HotRow(record=record, sequence=4, checksum="c4", payload=b'{"a":1}', captured_at=NOW, scraper_id="node-a")
    return msgspec.structs.replace(row, **changes)


def beat(node: str = "node-a", seconds: float = 0) -> NodeBeat:
    return NodeBeat(node=node, pid=7, started_at=NOW, beat_at=later(seconds), rss_bytes=1, errors_last_minute=0)


def written(hot: SqliteHot, *rows: HotRow, beats: tuple[NodeBeat, ...] = ()) -> None:
    writer = hot.open_writer()
    for row in rows:
        writer.put(row)
    for each in beats:
        writer.beat(each)
    writer.close()


def test_a_view_that_is_not_there_yet_is_empty(reader: HotReader) -> None:
    assert reader.row(1) is None
    assert rows_of(reader) == []
    assert list(reader.beats()) == []


def test_rows_and_beats_come_back_exactly_as_they_were_put(hot: SqliteHot, reader: HotReader) -> None:
    blank = hot_row(2, sequence=None, checksum=None, payload=None, captured_at=None)

    written(hot, hot_row(3), blank, beats=(beat("node-b"), beat("node-a")))

    assert reader.row(3) == hot_row(3)
    assert rows_of(reader) == [blank, hot_row(3)]
    assert list(reader.beats()) == [beat("node-a"), beat("node-b")]


def test_records_come_in_the_order_of_the_ids_and_within_bounds(hot: SqliteHot, reader: HotReader) -> None:
    written(hot, *(hot_row(match_id) for match_id in (4, 1, 3, 2)))

    assert [record.match_id for record in reader.records()] == [1, 2, 3, 4]
    assert [record.match_id for record in reader.records(2, 3)] == [2, 3]


def test_only_the_newest_row_of_a_match_counts(hot: SqliteHot, reader: HotReader) -> None:
    newest = hot_row(sequence=6, checksum="c6", payload=b'{"a":3}')

    written(hot, hot_row(), hot_row(sequence=5, checksum="c5", payload=b'{"a":2}'), newest)

    assert rows_of(reader) == [newest]


def test_a_payload_that_came_back_shows_its_new_sequence_number(hot: SqliteHot, reader: HotReader) -> None:
    written(hot, hot_row())

    written(hot, hot_row(sequence=6))

    assert reader.row(1) == hot_row(sequence=6)


def test_a_restarted_writer_goes_on_with_what_others_wrote(hot: SqliteHot, reader: HotReader) -> None:
    written(hot, hot_row(1), beats=(beat(),))

    written(hot, hot_row(2), beats=(beat(seconds=5),))

    assert rows_of(reader) == [hot_row(1), hot_row(2)]
    assert list(reader.beats()) == [beat(seconds=5)]


def test_a_forgotten_match_is_gone_and_may_come_back(hot: SqliteHot, reader: HotReader) -> None:
    writer = hot.open_writer()
    writer.put(hot_row(1))
    writer.put(hot_row(2))
    writer.close()

    again = hot.open_writer()
    again.forget(1)
    again.close()
    assert [record.match_id for record in reader.records()] == [2]
    assert reader.row(1) is None
    once_more = hot.open_writer()
    once_more.put(hot_row(1))
    once_more.close()

    assert [record.match_id for record in reader.records()] == [1, 2]


def test_only_the_named_matches_are_kept(hot: SqliteHot, reader: HotReader) -> None:
    writer = hot.open_writer()
    for number in (1, 2, 3):
        writer.put(hot_row(number))
    writer.close()

    again = hot.open_writer()
    again.put(hot_row(1))
    again.keep_only({2})
    again.close()

    assert [record.match_id for record in reader.records()] == [2]
