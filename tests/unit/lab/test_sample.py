"""What is measured while a trial runs."""

import pytest

from longstop_lab.sample import was_read_since


@pytest.mark.parametrize(
    ("age", "is_younger"), [(None, False), (0.5, True), (4.9, True), (5.0, False), (3600.0, False)]
)
def test_a_match_was_read_since_a_moment_when_its_age_is_less_than_the_time_since(
    age: float | None, is_younger: bool
) -> None:
    # Its time of day is an hour ahead of ours, and says nothing.
    entry = {"data_age_seconds": age, "last_poll_at": "2099-01-01T00:00:00.000Z"}

    assert was_read_since(entry, 100.0, asked=105.0) is is_younger
