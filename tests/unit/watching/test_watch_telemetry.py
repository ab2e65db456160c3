"""What a watch reports: changes of a match, and errors within a minute."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.model.polling_status import SyncState
from longstop.telemetry.bus import Bus
from longstop.watching.watch_telemetry import MAX_COUNTED, ErrorWindow, WatchEvents
from tests.builders import match_state
from tests.memory import MemorySink


def test_only_a_match_that_is_in_sync_now_is_reported_as_in_sync() -> None:
    sink = MemorySink()
    events = WatchEvents(Bus([sink]), match_state().row, max_errors=10)
    recovering = match_state(sync=SyncState.RECOVERING)
    in_sync = match_state(sync=SyncState.IN_SYNC)

    events.changes(recovering, in_sync)
    events.changes(in_sync, recovering)

    assert [event.name for event in sink.events] == ["match.in_sync"]


@pytest.mark.req("US3.4")
def test_the_eleventh_error_of_a_minute_is_reported_with_the_types_of_all() -> None:
    window = ErrorWindow(threshold=10)

    reported = [window.add(now, {"FetchTimeout": 2}) for now in range(5)]
    burst = window.add(59.9, {"EmptyBody": 1})

    assert reported == [None] * 5
    assert burst == {"EmptyBody": 1, "FetchTimeout": 10}


def test_what_is_a_minute_old_no_longer_counts() -> None:
    window = ErrorWindow(threshold=10)
    window.add(0.0, {"FetchTimeout": 10})

    assert window.add(60.0, {"FetchTimeout": 10}) is None
    assert window.add(60.1, {"EmptyBody": 1}) == {"EmptyBody": 1, "FetchTimeout": 10}


def test_trouble_that_lasts_is_reported_once_and_again_only_after_a_calm() -> None:
    window = ErrorWindow(threshold=10)

    lasting = [window.add(now, {"FetchTimeout": 1}) is not None for now in range(0, 600, 5)]
    calm = window.add(700.0, {})
    again = [window.add(701.0 + now, {"FetchTimeout": 1}) is not None for now in range(11)]

    assert lasting.count(True) == 1
    assert calm is None
    assert again == [False] * 10 + [True]


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 15)), max_size=80), st.integers(1, 30))
def test_a_burst_is_reported_exactly_when_the_count_of_a_minute_passes_the_threshold(
    polls: list[tuple[float, int]], threshold: int
) -> None:
    window, seen, was_burst, now = ErrorWindow(threshold), list[float](), False, 0.0

    for gap, errors in polls:
        now += gap
        seen += [now] * errors
        count = min(sum(now - at < 60 for at in seen), MAX_COUNTED)
        burst = window.add(now, {"FetchTimeout": errors})
        is_burst = count > threshold
        assert (sum(burst.values()) if burst else None) == (count if is_burst and not was_burst else None)
        was_burst = is_burst


def test_a_storm_costs_no_more_memory_than_a_bad_minute() -> None:
    burst = ErrorWindow(threshold=10).add(0.0, {"FetchTimeout": 100_000})

    assert burst == {"FetchTimeout": MAX_COUNTED}
