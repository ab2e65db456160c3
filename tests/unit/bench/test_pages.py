"""A thousand pages: which of them mean harm, and what counts as growth."""

from collections import Counter
from typing import Any

import pytest

from bench.pages import DEADLINE_SECONDS, Kind, Sample, is_good, kind_of, slope

GOOD = {
    "contexts_left": 0,
    "pages_unclosed": 0,
    "processes_left": 0,
    "processes_slope": 0.3,
    "descriptors_slope": -1.0,
    "wait_max_s": DEADLINE_SECONDS + 0.1,
    "closing_s": 1.0,
    "good_share": 1.0,
}


def samples(processes: list[int], every: int = 20) -> list[Sample]:
    return [Sample(pages=(nth + 1) * every, processes=held, descriptors=9) for nth, held in enumerate(processes)]


@pytest.mark.parametrize("hundred", [0, 1, 9])
def test_of_every_hundred_pages_five_spin_two_crash_and_one_leaks(hundred: int) -> None:
    kinds = Counter(kind_of(number) for number in range(hundred * 100, (hundred + 1) * 100))

    assert kinds == {Kind.SPIN: 5, Kind.CRASH: 2, Kind.LEAK: 1, Kind.GOOD: 92}


def test_a_process_that_stays_for_each_hundred_pages_is_growth() -> None:
    assert slope(samples([10] * 5 + [11] * 5 + [12] * 5), "processes") == pytest.approx(1.0)


def test_a_browser_that_stands_beside_the_next_one_for_a_while_is_none() -> None:
    assert slope(samples([14, 14, 14, 14, 14, 28, 14, 14, 28, 28]), "processes") == 0


def test_less_than_two_hundred_pages_say_nothing_of_growth() -> None:
    assert slope(samples([10, 90]), "processes") == 0


def test_pages_that_leave_nothing_and_grow_nothing_are_good() -> None:
    assert is_good(GOOD)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("contexts_left", 1),
        ("pages_unclosed", 1),
        ("processes_left", 2),
        ("processes_slope", 2.5),
        ("descriptors_slope", 2.5),
        ("wait_max_s", DEADLINE_SECONDS + 1.5),
        ("closing_s", 11.0),
        ("good_share", 0.9),
    ],
)
def test_one_thing_amiss_is_enough(name: str, value: Any) -> None:
    assert not is_good({**GOOD, name: value})
