"""The check at the end of a run."""

from datetime import UTC, datetime, timedelta

import pytest

from longstop_lab.client import was_read_since
from longstop_lab.final_check import DISCOVERY_SECONDS, add_up, discoverable, events_published, expected_events
from longstop_lab.simulator.judge import TruthComparison
from longstop_lab.simulator.truth import TruthLine

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def event(seconds: float, kind: str, op: str = "insert") -> TruthLine:
    return TruthLine(at=NOON + timedelta(seconds=seconds), match="7", op=op, kind=kind, id="1", content={})


def statuses(*moments: tuple[float, str], match: str = "7") -> list[TruthLine]:
    return [
        TruthLine(
            at=NOON + timedelta(seconds=seconds),
            match=match,
            op="update",
            kind="status",
            id="status",
            content={"status": status, "shift_seconds": 0.0},
        )
        for seconds, status in moments
    ]


def test_only_events_that_were_first_shown_in_the_period_count() -> None:
    before, meanwhile, after = event(0, "delivery"), [event(1, "delivery"), event(60, "goal")], event(61, "delivery")
    no_events = [event(2, "status"), event(3, "delivery", op="update"), event(4, "goal", op="void")]

    counted = events_published([before, *meanwhile, *no_events, after], since=NOON, until=NOON + timedelta(seconds=60))

    assert counted == 2


def test_missing_versions_of_all_sports_add_up() -> None:
    one = TruthComparison(
        matches=1,
        events_truth=2,
        events_stored=2,
        lost=0,
        duplicated=0,
        ghost=0,
        declared=0,
        forgotten=1,
        witnessed=3,
        details=("one",),
    )

    both = add_up([one, one])

    assert (both.matches, both.forgotten, both.witnessed, both.details) == (2, 2, 6, ("one", "one"))


@pytest.mark.parametrize(
    ("moments", "is_discoverable"),
    [
        # Still listed, however short: the last full sync reads it.
        ([(0, "Not started"), (99, "1st half")], True),
        ([(0, "1st half"), (5, "Halftime")], True),
        # Over, and listed long enough; a break in the middle is still in the list.
        ([(0, "1st half"), (6, "Halftime"), (8, "2nd half"), (10, "Ended")], True),
        ([(-60, "1st half"), (DISCOVERY_SECONDS, "AET")], True),
        # Over before several polls of the list.
        ([(-60, "1st half"), (9, "Ended")], False),
        ([(0, "1st half"), (9.9, "Abandoned")], False),
        ([(-60, "1st half"), (-5, "Ended")], False),
        # Two short periods are not one long one.
        ([(0, "1st half"), (6, "Postponed"), (20, "1st half"), (26, "Ended")], False),
        # Never listed.
        ([(0, "Not started"), (60, "Postponed")], False),
    ],
)
def test_a_match_is_discoverable_if_it_is_listed_or_was_listed_long_enough(
    moments: list[tuple[float, str]], is_discoverable: bool
) -> None:
    assert (discoverable(statuses(*moments), since=NOON) == {"7"}) is is_discoverable


def test_of_football_known_and_discoverable_matches_are_expected_and_of_cricket_all() -> None:
    goal, ball = (
        TruthLine(at=NOON, match=match, op="insert", kind=kind, id="1", content={})
        for match, kind in (("8", "goal"), ("1000", "delivery"))
    )
    never_listed = statuses((0, "Ended"), match="9")
    unknown, known = statuses((0, "1st half")), statuses((0, "Ended"), match="8")
    truth = [*never_listed, *unknown, *known, goal, ball]

    of_football = expected_events("football", truth, known={"8", "1000"}, since=NOON)
    of_cricket = expected_events("cricket", truth, known=set(), since=NOON)

    assert of_football == [*unknown, *known, goal]
    assert of_cricket == [ball]


@pytest.mark.parametrize(
    ("age", "is_younger"), [(None, False), (0.5, True), (4.9, True), (5.0, False), (3600.0, False)]
)
def test_a_match_was_read_since_a_moment_when_its_age_is_less_than_the_time_since(
    age: float | None, is_younger: bool
) -> None:
    # Its time of day is an hour ahead of ours and must not matter.
    entry = {"data_age_seconds": age, "last_poll_at": "2099-01-01T00:00:00.000Z"}

    assert was_read_since(entry, 100.0, requested_at=105.0) is is_younger
