"""When to look next."""

from datetime import datetime, timedelta

import pytest

from longstop.model.match import MatchStatus, Phase, SyncState
from longstop.watching.cadence import Cadence, interval, is_due, listing_interval, may_be_archived
from tests.builders import NOW, record

CADENCE = Cadence()
SOON = NOW + timedelta(minutes=30)
LATER = NOW + timedelta(hours=5)


@pytest.mark.req("MON-2")
@pytest.mark.parametrize(
    ("status", "start_at", "seconds"),
    [
        (MatchStatus.LIVE, None, 2.5),
        (MatchStatus.BREAK, None, 2.5),
        (MatchStatus.UPCOMING, SOON, 60.0),
        (MatchStatus.UPCOMING, None, 60.0),
        (MatchStatus.UPCOMING, LATER, 3600.0),
        (MatchStatus.COMPLETED, None, 300.0),
    ],
)
def test_each_urgency_has_its_interval(status: MatchStatus, start_at: datetime | None, seconds: float) -> None:
    assert interval(record(status=status, start_at=start_at), NOW, CADENCE) == seconds


def test_a_match_that_is_recovering_is_as_urgent_as_a_live_one() -> None:
    finished = record(status=MatchStatus.COMPLETED, sync=SyncState.RECOVERING)

    assert interval(finished, NOW, CADENCE) == CADENCE.live


def test_a_match_is_due_when_its_interval_is_over_and_not_before() -> None:
    polled = record(last_poll_at=NOW)

    assert not is_due(polled, NOW + timedelta(seconds=2.4), CADENCE)
    assert is_due(polled, NOW + timedelta(seconds=2.5), CADENCE)


def test_a_clock_that_was_set_back_puts_no_match_to_sleep() -> None:
    assert is_due(record(last_poll_at=NOW), NOW - timedelta(hours=1), CADENCE)


def test_a_match_never_looked_at_is_due() -> None:
    assert is_due(record(last_poll_at=None, status=MatchStatus.COMPLETED), NOW, CADENCE)


def test_the_listing_is_asked_as_often_as_the_most_urgent_match_wants() -> None:
    finished, live = record(status=MatchStatus.COMPLETED), record()

    assert listing_interval([finished, live], NOW, CADENCE) == 2.5
    assert listing_interval([finished], NOW, CADENCE) == 60.0
    assert listing_interval([], NOW, CADENCE) == 60.0


@pytest.mark.req("MON-1")
@pytest.mark.parametrize(
    ("phase", "hours", "is_time"),
    [
        (Phase.COMPLETED, 24, True),
        (Phase.COMPLETED, 23.99, False),
        (Phase.ACTIVE, 48, False),
        (Phase.ARCHIVED, 48, False),
    ],
)
def test_a_match_is_put_away_a_day_after_its_end(phase: Phase, hours: float, is_time: bool) -> None:
    assert may_be_archived(phase, NOW, NOW + timedelta(hours=hours)) is is_time


def test_a_match_without_an_end_is_never_put_away() -> None:
    assert not may_be_archived(Phase.COMPLETED, None, NOW)
