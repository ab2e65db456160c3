from datetime import timedelta

import pytest
from msgspec.structs import replace

from longstop.api.shapes import from_hot, from_store, record_age, shown_age
from longstop.clock import Moment
from longstop.model.match import Phase, SyncState
from tests.readers import NOW, a_hot_row, a_match, a_record, a_snapshot


@pytest.mark.parametrize(
    ("seconds", "age"),
    [
        (3.0, 3.0),
        (0.0014, 0.001),
        (-5.0, 0.0),  # the other clock is ahead
    ],
)
def test_an_age_is_in_milliseconds_and_never_negative(seconds: float, age: float) -> None:
    assert shown_age(seconds) == age


@pytest.mark.req("NFR-005")
@pytest.mark.parametrize("leap", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_live_view_is_as_old_as_it_is_whatever_the_wall_clock_shows(leap: timedelta) -> None:
    record = replace(a_record(polled=2), last_poll_monotonic=998.0)
    now = Moment(NOW + leap, 1000.0)

    view, stored = from_hot(a_match(), a_hot_row(record)), from_store(a_match(), a_snapshot(), record)

    assert view is not None
    assert (view.age_at(now), stored.age_at(now), record_age(record, now)) == (2.0, 2.0, 2.0)


def test_what_only_the_store_knows_is_as_old_as_the_wall_clock_says() -> None:
    view = from_store(a_match(), a_snapshot(), None)

    assert view.age_at(Moment(NOW, 5.0)) == 40.0


def test_a_live_view_without_a_payload_is_none() -> None:
    assert from_hot(a_match(), a_hot_row(payload=None)) is None


def test_a_live_payload_whose_poll_is_unknown_is_as_old_as_its_capture() -> None:
    row = a_hot_row(a_record(polled=None))

    view = from_hot(a_match(), row)

    assert view is not None
    assert view.polled_at == row.captured_at


def test_a_stored_view_that_nobody_watches_is_as_old_as_its_snapshot_and_says_so() -> None:
    view = from_store(a_match(), a_snapshot(), None)

    assert view.polled_at == a_snapshot().created_at
    assert view.sync is SyncState.UNWATCHED


def test_an_archived_match_is_settled_though_nobody_watches_it() -> None:
    archived = replace(a_match(), phase=Phase.ARCHIVED)

    assert from_store(archived, a_snapshot(), None).sync is SyncState.IN_SYNC


def test_a_stored_view_takes_poll_and_sync_from_a_record_that_has_them() -> None:
    view = from_store(a_match(), a_snapshot(), a_record(polled=2))

    assert view.polled_at == NOW - timedelta(seconds=2)
    assert view.sync is SyncState.IN_SYNC
