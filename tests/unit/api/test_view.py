from datetime import timedelta

import pytest

from longstop.api.view import age_seconds, from_hot, from_store
from longstop.model.match import SyncState
from tests.readers import NOW, a_hot_row, a_match, a_record, a_snapshot


@pytest.mark.parametrize(
    ("offset", "age"),
    [
        (timedelta(seconds=3), 3.0),
        (timedelta(milliseconds=1, microseconds=400), 0.001),
        (timedelta(seconds=-5), 0.0),  # the other clock is ahead
    ],
)
def test_an_age_is_in_milliseconds_and_never_negative(offset: timedelta, age: float) -> None:
    assert age_seconds(NOW - offset, NOW) == age


def test_a_live_view_without_a_payload_is_none() -> None:
    assert from_hot(a_match(), a_hot_row(payload=None)) is None


def test_a_live_payload_whose_poll_is_unknown_is_as_old_as_its_capture() -> None:
    row = a_hot_row(a_record(polled=None))

    view = from_hot(a_match(), row)

    assert view is not None
    assert view.polled_at == row.captured_at


def test_a_stored_view_that_nobody_watches_is_as_old_as_its_snapshot_and_not_in_sync() -> None:
    view = from_store(a_match(), a_snapshot(), None)

    assert view.polled_at == a_snapshot().created_at
    assert view.sync is SyncState.RECOVERING


def test_a_stored_view_takes_poll_and_sync_from_a_record_that_has_them() -> None:
    view = from_store(a_match(), a_snapshot(), a_record(polled=2))

    assert view.polled_at == NOW - timedelta(seconds=2)
    assert view.sync is SyncState.IN_SYNC
