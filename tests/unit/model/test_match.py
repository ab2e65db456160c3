"""A match's phases, its urgency and its name."""

from datetime import datetime, timedelta
from itertools import product

import pytest

from longstop.errors import IllegalTransition, UsageError
from longstop.model.match import MatchRef, MatchStatus, Phase, Priority, move, priority_of
from tests.builders import NOW

LEGAL = {
    (Phase.DISCOVERED, Phase.ACTIVE),
    (Phase.DISCOVERED, Phase.PAUSED),
    (Phase.DISCOVERED, Phase.COMPLETED),
    (Phase.ACTIVE, Phase.PAUSED),
    (Phase.ACTIVE, Phase.COMPLETED),
    (Phase.PAUSED, Phase.ACTIVE),
    (Phase.PAUSED, Phase.COMPLETED),
    (Phase.COMPLETED, Phase.ACTIVE),
    (Phase.COMPLETED, Phase.ARCHIVED),
}


@pytest.mark.req("MON-1")
@pytest.mark.parametrize(("before", "after"), list(product(Phase, Phase)))
def test_a_match_moves_by_the_table_and_not_otherwise(before: Phase, after: Phase) -> None:
    if before is after or (before, after) in LEGAL:
        assert move(before, after) is after
    else:
        with pytest.raises(IllegalTransition, match=f"from {before} to {after}"):
            move(before, after)


@pytest.mark.req("MON-2")
@pytest.mark.parametrize(
    ("status", "start_at", "priority"),
    [
        (MatchStatus.LIVE, None, Priority.LIVE),
        (MatchStatus.BREAK, NOW + timedelta(days=1), Priority.LIVE),
        (MatchStatus.UPCOMING, NOW + timedelta(hours=1), Priority.IMMINENT),
        (MatchStatus.UPCOMING, NOW - timedelta(hours=3), Priority.IMMINENT),
        (MatchStatus.UPCOMING, None, Priority.IMMINENT),
        (MatchStatus.UPCOMING, NOW + timedelta(hours=1, seconds=1), None),
        (MatchStatus.COMPLETED, NOW, Priority.COMPLETED),
    ],
)
def test_each_status_has_its_urgency(status: MatchStatus, start_at: datetime | None, priority: Priority | None) -> None:
    assert priority_of(status, start_at, NOW) is priority


@pytest.mark.req("MON-2")
def test_a_lower_priority_goes_first() -> None:
    assert sorted([Priority.COMPLETED, Priority.LIVE, Priority.IMMINENT]) == [0, 1, 2]


def test_a_reference_is_written_and_read_back() -> None:
    ref = MatchRef("crex", "11-HD")

    assert (str(ref), MatchRef.parse(str(ref))) == ("crex_11-HD", ref)


@pytest.mark.parametrize(
    "text", ["", "crex", "_1", "crex_", "Crex_1", "crex_../1", "crex_1/2", "crex_ 1", "crex_" + "1" * 65, "crex_1\n"]
)
def test_what_is_no_reference_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="not a match id"):
        MatchRef.parse(text)
