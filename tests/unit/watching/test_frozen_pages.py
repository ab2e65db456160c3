"""Detecting a page that does not change while play goes on."""

import pytest

from longstop.model.match import MatchStatus
from longstop.sports.cricket.model import Board, Result, ResultKind
from longstop.watching.frozen_pages import SILENT_AFTER, WITNESS, Behind, Lag, page_behind
from tests.builders import board, score

OLDER, NEWER = board(first=score("12/1 2.3")), board(first=score("13/1 2.4"))
FROZEN_AFTER = 30.0


OVER = board(
    first=score("13/1 2.4"), status=MatchStatus.COMPLETED, result=Result(outcome=ResultKind.WON, text="T1 won")
)
AT_LUNCH = board(first=score("13/1 2.4"), status=MatchStatus.BREAK)


@pytest.mark.parametrize(
    ("own", "listed", "behind"),
    [
        (OLDER, NEWER, Behind.MATCH),
        (NEWER, OLDER, Behind.LIST),
        (NEWER, NEWER, Behind.NEITHER),
        (NEWER, OVER, Behind.MATCH),
        (OVER, NEWER, Behind.LIST),
        (None, NEWER, Behind.NEITHER),
        (NEWER, None, Behind.NEITHER),
    ],
)
def test_who_shows_less_than_the_other_is_behind(own: Board | None, listed: Board | None, behind: Behind) -> None:
    assert page_behind(own, listed, 0.0) is behind


@pytest.mark.parametrize(
    ("shown", "seconds", "behind"),
    [
        (NEWER, SILENT_AFTER, Behind.BOTH),
        (NEWER, SILENT_AFTER - 0.1, Behind.NEITHER),
        (AT_LUNCH, 10 * SILENT_AFTER, Behind.NEITHER),  # a break that is announced may last
        (OVER, 10 * SILENT_AFTER, Behind.NEITHER),
    ],
)
def test_two_witnesses_of_a_standstill_are_believed_for_ten_minutes_of_play(
    shown: Board, seconds: float, behind: Behind
) -> None:
    assert page_behind(shown, shown, seconds) is behind


def test_a_page_that_is_behind_is_reported_even_after_a_long_silence() -> None:
    assert page_behind(OLDER, NEWER, SILENT_AFTER) is Behind.MATCH


@pytest.mark.parametrize("behind", [Behind.MATCH, Behind.LIST])
def test_a_disagreement_is_a_cache_for_half_a_minute_and_a_frozen_page_after_it(behind: Behind) -> None:
    lag = Lag().after(100.0, behind).after(120.0, behind)

    assert not lag.has_lasted(100.0 + FROZEN_AFTER - 0.1, FROZEN_AFTER)
    assert lag.has_lasted(100.0 + FROZEN_AFTER, FROZEN_AFTER)


def test_a_disagreement_that_ends_and_comes_back_is_counted_from_the_start() -> None:
    lag = Lag().after(0.0, Behind.MATCH).after(20.0, Behind.NEITHER).after(25.0, Behind.MATCH)

    assert not lag.has_lasted(54.0, FROZEN_AFTER)
    assert lag.has_lasted(55.0, FROZEN_AFTER)


def test_the_other_one_being_behind_is_another_disagreement() -> None:
    lag = Lag().after(0.0, Behind.MATCH).after(29.0, Behind.LIST)

    assert not lag.has_lasted(31.0, FROZEN_AFTER)


def test_a_silence_of_both_is_frozen_at_once_since_it_has_lasted_already() -> None:
    assert Lag().after(700.0, Behind.BOTH).has_lasted(700.0, FROZEN_AFTER)


def test_where_nobody_is_behind_nothing_is_frozen() -> None:
    assert not Lag().has_lasted(10_000.0, FROZEN_AFTER)


def test_everybody_who_can_be_behind_has_a_witness_against_him() -> None:
    assert set(WITNESS) == set(Behind) - {Behind.NEITHER}
