"""How the watching of one match goes, cycle by cycle."""

import pytest

from longstop.sources.base import Board
from longstop.watching.lag import CHECK_AFTER, Behind
from longstop.watching.pulse import SHUT_OUT, Pulse
from longstop.watching.restarts import RestartPolicy, RestartReason, restart_reason
from tests.builders import board, score

OLDER, NEWER = board(first=score("12/1 2.3")), board(first=score("13/1 2.4"))
CALM = 300.0
FROZEN_AFTER = 30.0


def _looked(
    pulse: Pulse, now: float, own: Board = NEWER, listed: Board | None = NEWER, *, is_news: bool = False
) -> Pulse:
    return pulse.after_look(now, is_news=is_news, errors=0, calm_after=CALM, own=own, listed=listed)


def _failed(pulse: Pulse, *moments: float) -> Pulse:
    for now in moments:
        pulse = pulse.after_failure(now, errors=1, calm_after=CALM)
    return pulse


def test_a_good_look_makes_a_match_young_and_forgets_its_failures() -> None:
    troubled = _failed(Pulse.at(0.0), 1.0, 2.0).after_missing(2.0, apart=60.0)

    pulse = _looked(troubled, 10.0)

    assert (pulse.good_at, pulse.tried_at, pulse.looked_at, pulse.failures, pulse.absence.times) == (10, 10, 10, 0, 0)


def test_a_failed_look_is_a_try_and_no_sign_of_life() -> None:
    pulse = _failed(Pulse.at(0.0), 10.0)

    assert (pulse.good_at, pulse.tried_at, pulse.looked_at, pulse.failures) == (0, 10, 10, 1)
    assert pulse.rhythm == Pulse.at(0.0).rhythm


def test_failed_looks_without_an_error_of_the_site_neither_slow_a_match_nor_calm_it() -> None:
    slowed = Pulse.at(0.0).after_failure(1.0, errors=5, calm_after=CALM)

    pulse = slowed
    for now in range(2, 400):
        pulse = pulse.after_failure(float(now), errors=0, calm_after=CALM)

    assert pulse.pace == slowed.pace
    assert pulse.failures == 399


def test_a_look_for_which_nobody_was_asked_says_nothing_about_the_match() -> None:
    before = _failed(Pulse.at(0.0), 10.0)

    held = before.held(20.0, SHUT_OUT)

    assert held.tried_at == 20.0
    assert (held.good_at, held.looked_at, held.failures, held.pace) == (0.0, 10.0, 1, before.pace)


def test_an_unchanged_line_is_a_good_cycle_without_a_look() -> None:
    pulse = Pulse.at(0.0).after_line(5.0, NEWER, NEWER)

    assert (pulse.good_at, pulse.tried_at, pulse.looked_at, pulse.rhythm.unchanged) == (5.0, 5.0, None, 1)


def test_errors_on_the_way_of_a_good_look_slow_it_like_any_others() -> None:
    pulse = Pulse.at(0.0).after_look(1.0, is_news=True, errors=5, calm_after=CALM, own=NEWER, listed=NEWER)

    assert pulse.pace.factor == 2.0
    assert pulse.failures == 0


def test_a_match_whose_own_page_stands_still_while_the_list_moves_on_gets_no_younger() -> None:
    pulse = _looked(Pulse.at(0.0), 10.0, OLDER, NEWER)  # a cache, perhaps
    assert (pulse.is_blind(10.0), pulse.good_at) == (False, 10.0)

    frozen = _looked(pulse.after_list_moved().after_list_moved(), 10.0 + FROZEN_AFTER, OLDER, NEWER)

    assert frozen.is_blind(10.0 + FROZEN_AFTER)
    assert frozen.good_at == 10.0


def test_two_pages_that_differ_for_good_are_no_frozen_feed() -> None:
    pulse = Pulse.at(0.0)

    for now in range(10, 400, 10):
        pulse = _looked(pulse, float(now), OLDER, NEWER)

    assert pulse.frozen(400.0) is None
    assert pulse.good_at == 390.0


def test_a_page_that_moves_though_it_is_behind_is_no_frozen_feed() -> None:
    pulse = Pulse.at(0.0)

    for now in range(10, 400, 10):
        pulse = pulse.after_list_moved()
        pulse = pulse.after_look(float(now), is_news=True, errors=0, calm_after=CALM, own=OLDER, listed=NEWER)

    assert pulse.frozen(400.0) is None


@pytest.mark.req("FR-001")
def test_a_frozen_page_makes_the_match_stale_and_its_watch_is_begun_anew() -> None:
    pulse = Pulse.at(0.0)

    for now in range(10, 400, 10):
        pulse = _looked(pulse.after_list_moved(), float(now), OLDER, NEWER)

    life = pulse.life(progress_at=0.0, is_in_play=True)
    assert restart_reason(life, 400.0, RestartPolicy()) is RestartReason.STALE


def test_a_list_that_is_behind_does_not_make_a_match_blind() -> None:
    pulse = Pulse.at(0.0)

    for now in (10.0, 50.0, 90.0):
        pulse = _looked(pulse, now, NEWER, OLDER)

    assert (pulse.lag.behind, pulse.is_blind(90.0), pulse.good_at) == (Behind.LIST, False, 90.0)


def test_a_thawed_page_is_believed_at_once() -> None:
    frozen = _looked(_looked(Pulse.at(0.0), 10.0, OLDER), 50.0, OLDER)

    thawed = _looked(frozen, 60.0, NEWER, is_news=True)

    assert not thawed.is_blind(60.0)
    assert thawed.good_at == 60.0


def test_a_line_that_stands_still_for_a_minute_needs_a_second_witness() -> None:
    pulse = _looked(Pulse.at(0.0), 100.0, is_news=True)
    for now in range(110, 160, 10):
        pulse = pulse.after_line(float(now), NEWER, NEWER)

    assert not pulse.wants_check(100.0 + CHECK_AFTER - 0.1, CHECK_AFTER)
    assert pulse.wants_check(100.0 + CHECK_AFTER, CHECK_AFTER)
    assert not _looked(pulse, 100.0 + CHECK_AFTER).wants_check(100.0 + CHECK_AFTER + 1.0, CHECK_AFTER)


def test_a_list_that_is_behind_needs_the_match_itself_every_ten_seconds() -> None:
    pulse = _looked(Pulse.at(0.0), 10.0, NEWER, OLDER)

    assert not pulse.wants_check(19.9, CHECK_AFTER)
    assert pulse.wants_check(20.0, CHECK_AFTER)


def test_a_list_that_differs_for_good_is_no_frozen_one() -> None:
    pulse = Pulse.at(0.0)

    for now in range(10, 400, 10):
        pulse = _looked(pulse, float(now), NEWER, OLDER)

    assert pulse.frozen(400.0) is None


def test_a_list_that_stands_still_while_the_match_moves_is_frozen() -> None:
    pulse = Pulse.at(0.0)

    for now in range(10, 60, 10):
        pulse = _looked(pulse, float(now), NEWER, OLDER, is_news=True)

    frozen = pulse.frozen(60.0)
    assert frozen is not None
    assert frozen.behind is Behind.LIST


def test_two_witnesses_that_are_silent_for_ten_minutes_of_play_are_both_behind() -> None:
    pulse = Pulse.at(0.0)

    for now in range(10, 620, 10):
        pulse = pulse.after_line(float(now), NEWER, NEWER)

    assert (pulse.lag.behind, pulse.lag.since) == (Behind.BOTH, 600.0)


def test_a_watch_begun_anew_keeps_what_is_known_of_the_game_and_of_the_errors() -> None:
    before = _failed(_looked(Pulse.at(0.0), 10.0, OLDER), *[float(now) for now in range(20, 31)])

    anew = before.anew(100.0)

    assert (anew.began, anew.good_at, anew.tried_at, anew.looked_at, anew.failures) == (100.0, 10.0, None, None, 0)
    assert (anew.rhythm, anew.pace, anew.lag, anew.absence) == (before.rhythm, before.pace, before.lag, before.absence)
    assert anew.pace.factor > 1.0


@pytest.mark.parametrize(("progress_at", "counts"), [(5.0, 10.0), (20.0, 20.0)])
def test_the_last_sign_of_progress_is_a_good_look_or_an_answer_within_one(progress_at: float, counts: float) -> None:
    life = _looked(Pulse.at(0.0), 10.0).life(progress_at=progress_at, is_in_play=True)

    assert life.good_at == counts
