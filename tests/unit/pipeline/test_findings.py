"""What is missing or does not add up."""

from longstop.pipeline.findings import confirmed, find, gaps, token
from longstop.pipeline.tally import Difference
from longstop.storage.base import Finding, FindingKind
from tests.builders import delivery, event, fold, match_state


def places(*labels: str, **runs: int) -> list[tuple[str, str]]:
    return [(found.place, found.detail) for found in gaps(1, [delivery(label, **runs) for label in labels])]


def test_balls_in_a_row_leave_no_gap() -> None:
    assert places("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "1.1") == []


def test_a_ball_that_must_have_been_bowled_is_a_gap() -> None:
    assert places("0.1", "0.4") == [("1:0", "missing: ball 2, 3")]


def test_a_first_over_that_is_not_there_is_a_gap() -> None:
    assert places("1.1") == [("1:0", "the whole over is missing")]


def test_overs_that_are_not_there_are_gaps_one_by_one() -> None:
    assert [place for place, _ in places("0.1", "3.1")] == ["1:1", "1:2"]


def test_an_over_of_five_balls_is_no_gap() -> None:
    assert places("0.1", "0.2", "0.3", "0.4", "0.5", "1.1") == []


def test_a_wide_carries_the_label_of_the_ball_to_come_and_proves_nothing() -> None:
    assert places("0.4", wides=1) == []


def test_findings_are_those_of_all_innings_and_boards() -> None:
    events = fold(
        event("delivery:1:0:1", "1", delivery("0.2")),
        event("delivery:2:0:1", "2", delivery("0.1")),
        event("delivery:2:0:2", "3", delivery("0.2"), op="void", position=None),
    )

    found = find(match_state(events), {1: Difference(), 2: Difference(runs=2)})

    assert [(each.kind, each.place) for each in found] == [(FindingKind.MISMATCH, "2"), (FindingKind.GAP, "1:0")]


def test_a_finding_opens_when_two_looks_agree_and_then_stays() -> None:
    gap = Finding(kind=FindingKind.GAP, place="1:0", detail="missing: ball 2")

    assert confirmed([gap], (), ()) == ()
    assert confirmed([gap], {token(gap)}, ()) == (gap,)
    assert confirmed([gap], (), (gap,)) == (gap,)
    assert confirmed([], {token(gap)}, (gap,)) == ()


def test_another_detail_is_another_doubt() -> None:
    before = Finding(kind=FindingKind.MISMATCH, place="1", detail="+1 runs")
    after = Finding(kind=FindingKind.MISMATCH, place="1", detail="+2 runs")

    assert confirmed([after], {token(before)}, ()) == ()
