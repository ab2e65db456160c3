"""The yardstick for amplification."""

from datetime import timedelta

from bench.chaos.demand import requests_needed
from longstop.simulator.truth import TruthLine
from tests.builders import NOW


def line(match: str, after: float) -> TruthLine:
    return TruthLine(at=NOW + timedelta(seconds=after), match=match, op="insert", kind="delivery", id="1", content={})


def test_a_silent_world_needs_the_list_only() -> None:
    assert requests_needed([], began=NOW, seconds=10, interval=2.5) == 4


def test_what_was_there_before_is_read_once_page_by_page() -> None:
    before = [line("A", -1)] * 25 + [line("B", -1)]

    assert requests_needed(before, began=NOW, seconds=2.5, interval=2.5) == 1 + (3 + 2) + (1 + 2)


def test_two_changes_of_a_match_within_one_interval_need_one_look() -> None:
    assert requests_needed([line("A", 0.2), line("A", 0.8)], began=NOW, seconds=1, interval=1) == 1 + 2
    assert requests_needed([line("A", 0.2), line("B", 0.8)], began=NOW, seconds=1, interval=1) == 1 + 4
    assert requests_needed([line("A", 0.2), line("A", 1.8)], began=NOW, seconds=2, interval=1) == 2 + 4
