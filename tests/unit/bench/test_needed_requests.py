"""The baseline for amplification."""

from datetime import timedelta

from bench.chaos.needed_requests import requests_needed, requests_to_follow
from longstop_lab.simulator.truth import TruthLine
from tests.builders import NOW


def line(match: str, after: float, kind: str = "delivery") -> TruthLine:
    return TruthLine(at=NOW + timedelta(seconds=after), match=match, op="insert", kind=kind, id="1", content={})


def test_a_silent_world_needs_the_list_only() -> None:
    assert requests_needed([], began=NOW, seconds=10, interval=2.5) == 4


def test_what_was_there_before_is_read_once_page_by_page() -> None:
    before = [line("A", -1)] * 25 + [line("B", -1)]

    assert requests_needed(before, began=NOW, seconds=2.5, interval=2.5) == 1 + (3 + 2) + (1 + 2)


def test_two_changes_of_a_match_within_one_interval_need_one_poll() -> None:
    assert requests_needed([line("A", 0.2), line("A", 0.8)], began=NOW, seconds=1, interval=1) == 1 + 2
    assert requests_needed([line("A", 0.2), line("B", 0.8)], began=NOW, seconds=1, interval=1) == 1 + 4
    assert requests_needed([line("A", 0.2), line("A", 1.8)], began=NOW, seconds=2, interval=1) == 2 + 4


def test_what_is_published_after_the_end_does_not_count() -> None:
    assert requests_needed([line("A", 1.1)], began=NOW, seconds=1, interval=1) == 1


def test_the_end_of_an_over_needs_one_page_more_and_that_of_an_innings_the_whole_list_and_the_scorecard() -> None:
    balls = [line("A", -1)] * 24

    over = requests_to_follow([*balls, line("A", 0.5, "over")], began=NOW, seconds=1, pace=lambda _m, _a: 1.0)
    innings = requests_to_follow([*balls, line("A", 0.5, "innings")], began=NOW, seconds=1, pace=lambda _m, _a: 1.0)

    assert over == 1 + 3
    assert innings == 1 + 3 + 2


def test_a_slow_site_lets_the_perfect_client_ask_less_often_and_read_more_at_once() -> None:
    balls = [line("A", nth + 0.5) for nth in range(12)]

    at_once = requests_to_follow(balls, began=NOW, seconds=12, pace=lambda _m, _a: 1.0)
    slow = requests_to_follow(balls, began=NOW, seconds=12, pace=lambda _m, _a: 1.0, latency=lambda _a: 6.0)

    assert at_once == 12 + 12 * 2
    assert slow == 2 + (2 + 1)


def test_each_match_has_its_own_pace_and_it_may_change() -> None:
    balls = [line(match, nth + 0.5) for nth in range(4) for match in ("A", "B")]

    def pace(match: str | None, after: float) -> float:
        return 2.0 if match == "B" and after >= 2 else 1.0

    assert requests_to_follow(sorted(balls, key=lambda each: each.at), began=NOW, seconds=4, pace=pace) == 4 + 8 + 6
