"""When an answer is so odd in size that its session is given up."""

import pytest

from longstop.fetching.browser.sizes import KEPT, NEEDED, Sizes, without_ids

EVENT = "https://site.example/api/v1/event/{}"


def usual(size: int = 50_000, answers: int = NEEDED) -> Sizes:
    """Return sizes that know what is usual."""
    sizes = Sizes()
    for number in range(answers):
        assert not sizes.is_odd(EVENT.format(number), size)
    return sizes


@pytest.mark.req("CAP-4")
@pytest.mark.parametrize(("size", "expected"), [(4_999, True), (5_000, False), (500_000, False), (500_001, True)])
def test_ten_times_smaller_or_larger_than_usual_is_odd(size: int, expected: bool) -> None:
    assert usual().is_odd(EVENT.format("99"), size) is expected


def test_with_too_few_answers_nothing_is_odd() -> None:
    assert not usual(answers=NEEDED - 1).is_odd(EVENT.format("99"), 10)


def test_where_small_answers_are_usual_none_is_odd() -> None:
    assert not usual(size=1_999).is_odd(EVENT.format("99"), 10)


def test_another_address_has_its_own_usual() -> None:
    assert not usual().is_odd("https://site.example/api/v1/event/1/incidents", 10)


def test_only_the_first_odd_answer_in_a_row_counts_and_what_lasts_becomes_usual() -> None:
    sizes = usual()

    odd = [sizes.is_odd(EVENT.format("1"), 100) for _ in range(KEPT)]
    back = sizes.is_odd(EVENT.format("1"), 50_000)

    assert odd == [True, *[False] * (KEPT - 1)]
    assert not back


def test_after_a_usual_answer_the_next_odd_one_counts_again() -> None:
    sizes = usual()

    assert [sizes.is_odd(EVENT.format("1"), size) for size in (100, 50_000, 100)] == [True, False, True]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://site.example/api/v1/event/11352/lineups?x=1", "site.example/api/v1/event/*/lineups"),
        ("https://site.example/api/v3/getSV3?key=11HD", "site.example/api/v3/getSV3"),
        ("https://site.example/match/11HD/live", "site.example/match/*/live"),
        ("https://site.example", "site.example"),
    ],
)
def test_ids_are_left_out_of_an_address(url: str, expected: str) -> None:
    assert without_ids(url) == expected
