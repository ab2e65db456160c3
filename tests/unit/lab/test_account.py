"""What is accounted for at a trial's end."""

from datetime import UTC, datetime, timedelta

from longstop_lab.account import events_published, total
from longstop_lab.simulator.judge import Verdict
from longstop_lab.simulator.truth import TruthLine

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def told(seconds: float, kind: str, op: str = "insert") -> TruthLine:
    return TruthLine(at=NOON + timedelta(seconds=seconds), match="7", op=op, kind=kind, id="1", content={})


def test_only_events_that_were_first_shown_meanwhile_count() -> None:
    before, meanwhile, after = told(0, "delivery"), [told(1, "delivery"), told(60, "goal")], told(61, "delivery")
    no_events = [told(2, "status"), told(3, "delivery", op="update"), told(4, "goal", op="void")]

    counted = events_published([before, *meanwhile, *no_events, after], since=NOON, until=NOON + timedelta(seconds=60))

    assert counted == 2


def test_what_was_forgotten_of_one_sport_is_not_made_good_by_another() -> None:
    one = Verdict(
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

    both = total([one, one])

    assert (both.forgotten, both.witnessed) == (2, 6)
