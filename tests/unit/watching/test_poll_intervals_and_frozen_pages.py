"""When to poll next: activity, backoff, and the interval that follows from them."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longstop.clock import Moment
from longstop.model.match import MatchStatus, Phase
from longstop.model.polling_status import SyncState
from longstop.sports.cricket.model import Board, CricketState, Result, ResultKind
from longstop.watching.poll_intervals_and_frozen_pages import (
    CYCLES,
    GOOD_BETWEEN_ACCIDENTS,
    SILENT_AFTER,
    WITNESS,
    Activity,
    Behind,
    Cadence,
    ErrorBackoff,
    IntervalReason,
    Lag,
    PollInterval,
    RestartReason,
    WatchRules,
    listing_interval,
    must_reread,
    page_behind,
    revisit_after,
)
from longstop.watching.polling_state_and_decisions import ARCHIVE_AFTER, MANY_FAILURES, WatchState
from tests.builders import NOW, board, match_row, match_state, score

CADENCE = Cadence()
SOON, LATER = NOW + timedelta(minutes=30), NOW + timedelta(hours=5)
#: The activity of a match after ten polls, of which this many brought news, including the last.
LIVELY, CALM = Activity(changed_at=0.0, news=(False,) * 4 + (True,) * 6), Activity(changed_at=0.0, news=(True,) * 5)
STILL = Activity(changed_at=0.0, news=(False,) * 10)
SLOWED = {errors: ErrorBackoff(errors=errors) for errors in (5, 10, 20)}


def _watch(cadence: Cadence = CADENCE, *, is_important: bool = False, **changes: Any) -> WatchState:
    """Return the polling state of a feed that was started at 0, with changes."""
    rules = WatchRules(cadence=cadence, important=("final",) if is_important else ())
    fields = {"rules": rules, "started_at": 0.0, "polled_at": 0.0, "accepted_at": 0.0, "activity": CALM}
    return WatchState(**{**fields, **changes})


def _match(status: MatchStatus = MatchStatus.LIVE, sync: SyncState = SyncState.IN_SYNC, **row: Any) -> CricketState:
    known = {"title": "the final", "created_at": NOW - timedelta(days=1)} | row
    return match_state(row=match_row(status=status, **known), sync=sync)


def _interval(
    monotonic: float = 0.0,
    cadence: Cadence = CADENCE,
    status: MatchStatus = MatchStatus.LIVE,
    start_at: datetime | None = None,
    sync: SyncState = SyncState.IN_SYNC,
    **changes: Any,
) -> PollInterval:
    return _watch(cadence, **changes).interval(_match(status, sync, start_at=start_at), Moment(NOW, monotonic))


def _is_due(
    tried_at: float | None, now: float, match: CricketState | None = None, *, is_news: bool = False, **changes: Any
) -> bool:
    return _watch(tried_at=tried_at, **changes).is_due(match or _match(), Moment(NOW, now), is_news=is_news)


def _hours(hours: float) -> datetime:
    return NOW + timedelta(hours=hours)


# --- how often ------------------------------------------------------------------------------------------------------


@pytest.mark.req("FR-022", "MON-2")
@pytest.mark.parametrize(
    ("status", "start_at", "seconds", "reason"),
    [
        (MatchStatus.LIVE, None, 2.5, IntervalReason.BASELINE),
        (MatchStatus.BREAK, None, 2.5, IntervalReason.BASELINE),  # the word alone is no break yet
        (MatchStatus.UPCOMING, SOON, 60.0, IntervalReason.IMMINENT),
        (MatchStatus.UPCOMING, NOW - timedelta(hours=1), 60.0, IntervalReason.IMMINENT),
        (MatchStatus.UPCOMING, None, 60.0, IntervalReason.IMMINENT),
        (MatchStatus.UPCOMING, LATER, 3600.0, IntervalReason.UPCOMING),
        (MatchStatus.COMPLETED, None, 300.0, IntervalReason.COMPLETED),
    ],
)
def test_each_urgency_has_its_interval(
    status: MatchStatus, start_at: datetime | None, seconds: float, reason: IntervalReason
) -> None:
    assert _interval(status=status, start_at=start_at) == PollInterval(seconds=seconds, reason=reason)


@pytest.mark.parametrize("status", [MatchStatus.UPCOMING, MatchStatus.COMPLETED])
def test_what_was_first_seen_just_now_is_polled_again_soon(status: MatchStatus) -> None:
    new, old = (_match(status, created_at=NOW - timedelta(seconds=age)) for age in (119, 121))
    state = WatchState.starting(new.row, WatchRules(cadence=CADENCE), Moment(NOW, 0.0))

    assert state.interval(new, Moment(NOW, 0.0)).seconds == 15
    assert state.interval(old, Moment(NOW, 0.0)).seconds > 15


@pytest.mark.req("FR-022", "US5")
def test_a_match_with_news_in_more_than_half_of_its_cycles_is_polled_every_two_seconds() -> None:
    assert _interval(activity=LIVELY) == PollInterval(seconds=2.0, reason=IntervalReason.BUSY)


@pytest.mark.req("FR-024", "US5")
@pytest.mark.parametrize(
    ("status", "activity", "seconds", "reason"),
    [
        (MatchStatus.BREAK, STILL, 0.0, IntervalReason.BREAK),  # by its word and ten cycles
        (
            MatchStatus.LIVE,
            STILL,
            179.9,
            IntervalReason.BASELINE,
        ),  # balls are 30 s apart: ten cycles alone are no break
        (MatchStatus.LIVE, STILL, 180.0, IntervalReason.BREAK),  # by the clock
        (MatchStatus.BREAK, CALM, 180.0, IntervalReason.BREAK),
        (
            MatchStatus.LIVE,
            STILL.after(200.0, is_news=True),
            200.0,
            IntervalReason.BASELINE,
        ),  # ended by the first change
        (MatchStatus.BREAK, STILL.after(1.0, is_news=True), 2.0, IntervalReason.BASELINE),
    ],
)
def test_in_a_break_a_match_is_polled_every_30_seconds(
    status: MatchStatus, activity: Activity, seconds: float, reason: IntervalReason
) -> None:
    interval = _interval(seconds, status=status, activity=activity)

    assert interval == PollInterval(seconds=30.0 if reason is IntervalReason.BREAK else 2.5, reason=reason)


@pytest.mark.parametrize("status", [MatchStatus.UPCOMING, MatchStatus.COMPLETED])
def test_what_is_not_in_play_has_no_break(status: MatchStatus) -> None:
    assert _interval(10_000.0, status=status, start_at=LATER, activity=STILL).reason is not IntervalReason.BREAK


@pytest.mark.req("FR-025")
def test_an_important_match_is_polled_faster_but_not_in_a_break() -> None:
    in_play = _interval(is_important=True)
    in_a_break = _interval(is_important=True, status=MatchStatus.BREAK, activity=STILL)
    over = _interval(is_important=True, status=MatchStatus.COMPLETED)

    assert in_play == PollInterval(seconds=2.0, reason=IntervalReason.IMPORTANT)
    assert (in_a_break.reason, over.reason) == (IntervalReason.BREAK, IntervalReason.COMPLETED)


@pytest.mark.parametrize("changes", [{"is_important": True}, {"activity": LIVELY}])
def test_an_operator_who_polls_more_often_than_a_busy_match_needs_is_not_slowed_by_it(changes: Any) -> None:
    assert _interval(cadence=Cadence(live=0.5), **changes).seconds == 0.5


def test_a_match_not_yet_compared_is_as_urgent_as_a_live_one_until_it_has_failed_often() -> None:
    finished: dict[str, Any] = {"status": MatchStatus.COMPLETED, "sync": SyncState.RECOVERING}

    assert _interval(**finished, failures=MANY_FAILURES - 1).seconds == 2.5
    assert _interval(**finished, failures=MANY_FAILURES).seconds == 300.0


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.req("FR-022", "US5")
@pytest.mark.parametrize(("errors", "seconds"), [(5, 5.0), (10, 10.0), (20, 20.0)])
def test_errors_slow_a_match_down(errors: int, seconds: float) -> None:
    slowed = PollInterval(seconds=seconds, reason=IntervalReason.ERRORS, minimum=seconds)

    assert _interval(backoff=SLOWED[errors]) == slowed
    assert _interval(backoff=SLOWED[errors], activity=LIVELY) == slowed
    assert _interval(backoff=SLOWED[errors], is_important=True) == slowed


@pytest.mark.parametrize(
    "changes",
    [
        {"status": MatchStatus.BREAK, "activity": STILL},
        {"status": MatchStatus.UPCOMING, "start_at": SOON},
        {"status": MatchStatus.UPCOMING, "start_at": LATER},
        {"status": MatchStatus.COMPLETED},
    ],
)
def test_errors_never_hurry_a_match_that_is_slow_already(changes: dict[str, Any]) -> None:
    slowed, usual = _interval(**changes, backoff=SLOWED[20]), _interval(**changes)

    assert (slowed.seconds, slowed.reason, slowed.minimum) == (usual.seconds, usual.reason, 20.0)


def test_a_match_that_cannot_be_read_is_in_no_break_however_long_nothing_changed() -> None:
    assert _interval(10_000.0, backoff=SLOWED[20], failures=40) == PollInterval(
        seconds=20.0, reason=IntervalReason.ERRORS, minimum=20.0
    )


COURSES = {
    "status": st.sampled_from(MatchStatus),
    "start_at": st.sampled_from([None, SOON, LATER]),
    "sync": st.sampled_from(SyncState),
    "activity": st.sampled_from([LIVELY, CALM, STILL]),
    "is_important": st.booleans(),
    "failures": st.integers(0, 12),
}


@given(st.fixed_dictionaries(COURSES), st.integers(0, 30), st.floats(0, 400))
def test_whatever_else_holds_errors_only_ever_slow(course: dict[str, Any], errors: int, monotonic: float) -> None:
    slowed = _interval(monotonic, backoff=ErrorBackoff(errors=errors), **course)

    assert slowed.seconds >= _interval(monotonic, backoff=ErrorBackoff(), **course).seconds


# --- when it is time ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "due_after"), [(MatchStatus.LIVE, 1.25), (MatchStatus.COMPLETED, 298.75)])
def test_a_match_is_due_when_its_interval_is_over_or_would_be_before_the_next_tick(
    status: MatchStatus, due_after: float
) -> None:
    assert _is_due(100.0, 100.0 + due_after, _match(status))
    assert not _is_due(100.0, 100.0 + due_after - 0.01, _match(status))


def test_a_match_never_polled_is_due() -> None:
    assert _is_due(None, 0.0, _match(MatchStatus.UPCOMING, start_at=LATER))
    assert _is_due(None, 0.0, is_news=True, backoff=SLOWED[20])


@pytest.mark.req("FR-024")
def test_news_ends_a_break_at_once_and_errors_hold_it_back() -> None:
    paused = _match(MatchStatus.BREAK)

    assert _is_due(0.0, 2.5, paused, is_news=True, activity=STILL)
    assert not _is_due(0.0, 1.0, paused, is_news=True, activity=STILL)
    assert not _is_due(0.0, 2.5, paused, activity=STILL)
    assert not _is_due(0.0, 19.0, is_news=True, backoff=SLOWED[20])
    assert _is_due(0.0, 20.0, is_news=True, backoff=SLOWED[20])


def test_news_of_a_busy_match_waits_no_longer_than_its_own_interval() -> None:
    assert _is_due(0.0, 1.4, is_news=True, activity=LIVELY)


def test_what_is_open_is_checked_at_growing_distances_and_never_given_up() -> None:
    assert [revisit_after(revisits) for revisits in range(7)] == [10, 20, 40, 80, 160, 300, 300]
    assert revisit_after(100_000) == 300


def test_the_listing_is_asked_as_often_as_the_most_urgent_match_wants() -> None:
    live, over = (
        PollInterval(seconds=2.5, reason=IntervalReason.BASELINE),
        PollInterval(seconds=300.0, reason=IntervalReason.COMPLETED),
    )

    assert listing_interval([over, live], CADENCE) == 2.5
    assert listing_interval([over], CADENCE) == 60.0
    assert listing_interval([], CADENCE) == 60.0


# --- after the end --------------------------------------------------------------------------------------------------


@pytest.mark.req("FLD-8")
@pytest.mark.parametrize(
    ("read_at", "now", "must"),
    [
        (0, 1.99, False),
        (0, 2, True),
        (None, 2, True),
        (2, 5.99, False),
        (1.99, 3, True),
        (2.5, 6, True),
        (6, 23.99, False),
        (6, 24, True),
        (0, 24, True),  # after a day of silence one re-read is enough
        (24, 24, False),
        (24, 1000, False),
    ],
)
def test_a_finished_match_is_read_whole_again_after_2_6_and_24_hours(
    read_at: float | None, now: float, must: bool
) -> None:
    assert must_reread(NOW, None if read_at is None else _hours(read_at), _hours(now)) is must


def test_a_match_that_is_not_over_is_not_read_again() -> None:
    assert not must_reread(None, None, _hours(1000))


@given(st.lists(st.floats(0.01, 8), min_size=1, max_size=60))
def test_polls_at_any_distance_read_a_finished_match_again_three_times_at_most(gaps: list[float]) -> None:
    read_at, hours, rereads = NOW, 0.0, 0

    for gap in gaps:
        hours += gap
        if must_reread(NOW, read_at, _hours(hours)):
            read_at, rereads = _hours(hours), rereads + 1

    assert rereads <= 3
    assert not must_reread(NOW, read_at, _hours(hours))


@pytest.mark.req("MON-1", "FLD-8")
@pytest.mark.parametrize(
    ("phase", "read_at", "now", "may"),
    [
        (Phase.COMPLETED, 24, 24.1, True),
        (Phase.COMPLETED, 6, 24.1, False),  # the last re-read comes first
        (Phase.COMPLETED, None, 25.9, False),
        (Phase.COMPLETED, None, 26, True),  # who cannot be read is put away all the same
        (Phase.COMPLETED, 23, 23.99, False),
        (Phase.ACTIVE, 24, 48, False),
        (Phase.PAUSED, 24, 48, False),
        (Phase.ARCHIVED, 24, 48, False),
    ],
)
def test_a_match_is_archived_a_day_after_its_end_and_after_its_last_reading(
    phase: Phase, read_at: float | None, now: float, may: bool
) -> None:
    watch = _watch(full_poll_at=None if read_at is None else _hours(read_at))

    assert watch.may_be_archived(_match(phase=phase, completed_at=NOW), Moment(_hours(now), 0.0)) is may


def test_a_match_without_an_end_is_never_archived() -> None:
    assert not _watch().may_be_archived(_match(phase=Phase.COMPLETED), Moment(NOW + 10 * ARCHIVE_AFTER, 0.0))


def test_a_sign_of_change_is_followed_at_once_but_once_a_second_at_most() -> None:
    now = Moment(NOW, 100.0)

    moments = [_watch(tried_at=tried_at).signalled_poll_at(_match(), now) for tried_at in (None, 50.0, 99.5)]

    assert moments == [100.0, 100.0, 100.5]


def test_a_sign_of_change_does_not_hurry_a_match_slowed_by_errors() -> None:
    assert _watch(tried_at=50.0, backoff=SLOWED[5]).signalled_poll_at(_match(), Moment(NOW, 100.0)) is None


# --- how lively a match is --------------------------------------------------------------------------------------------


#: Seconds between two cycles.
STEP = 2.5
BREAK_AFTER = 180.0


def _after(*news: bool, step: float = STEP) -> Activity:
    activity = Activity(changed_at=0.0)
    for cycle, is_news in enumerate(news, start=1):
        activity = activity.after(cycle * step, is_news=is_news)
    return activity


@pytest.mark.req("FR-022")
@pytest.mark.parametrize(
    ("news", "is_busy"),
    [
        ([True] * 6 + [False] * 4, True),
        ([True] * 5 + [False] * 5, False),  # half is not more than half
        ([True] * 9, False),  # too few cycles to say
        ([True] * 10 + [False] * 5, False),  # only the last ten count
        ([False] * 50 + [True] * 6, True),
    ],
)
def test_a_match_is_busy_when_more_than_half_of_its_last_ten_cycles_brought_news(
    news: list[bool], is_busy: bool
) -> None:
    assert _after(*news).is_busy is is_busy


@pytest.mark.req("FR-024")
@pytest.mark.parametrize(
    ("status", "cycles", "is_break"),
    [
        (MatchStatus.BREAK, 9, False),
        (MatchStatus.BREAK, 10, True),
        (MatchStatus.LIVE, 10, False),
        (MatchStatus.LIVE, 71, False),  # 177.5 s
        (MatchStatus.LIVE, 72, True),
    ],
)
def test_a_break_begins_by_word_and_ten_equal_cycles_or_by_three_minutes_alone(
    status: MatchStatus, cycles: int, is_break: bool
) -> None:
    activity = _after(*[False] * cycles)

    assert activity.is_break(status, cycles * STEP, BREAK_AFTER) is is_break


@pytest.mark.req("FR-024")
def test_balls_that_are_30_seconds_apart_are_no_break() -> None:
    activity, breaks = Activity(changed_at=0.0), 0

    for cycle in range(1, 600):
        activity = activity.after(cycle * STEP, is_news=cycle % 12 == 0)
        breaks += activity.is_break(MatchStatus.LIVE, cycle * STEP, BREAK_AFTER)

    assert breaks == 0


@pytest.mark.req("FR-024")
@given(st.lists(st.booleans(), max_size=100), st.sampled_from([MatchStatus.LIVE, MatchStatus.BREAK]))
def test_the_first_change_ends_any_break(news: list[bool], status: MatchStatus) -> None:
    now = len(news) * 30.0 + 1.0

    changed = _after(*news, step=30.0).after(now, is_news=True)

    assert not changed.is_break(status, now, BREAK_AFTER)
    assert changed.changed_at == now
    assert not changed.is_quiet


@given(st.lists(st.booleans(), max_size=200))
def test_a_rhythm_remembers_ten_cycles_however_long_the_match(news: list[bool]) -> None:
    activity = _after(*news)

    assert list(activity.news) == news[-CYCLES:]
    assert activity.is_quiet == (len(news) >= CYCLES and not any(news[-CYCLES:]))


# --- how errors slow a match down -------------------------------------------------------------------------------------


CALM_AFTER = 300.0
BASE = 2.5
#: A poll: seconds since the previous one, and its errors.
Polls = list[tuple[float, int]]

GAPS = st.sampled_from([0.5, 2.0, 2.5, 5.0, 10.0, 20.0, 60.0, 301.0])
LOOKS = st.lists(st.tuples(GAPS, st.sampled_from([0, 0, 0, 1, 1, 3, 12])), max_size=120)


def _backoffs(polls: Polls, backoff: ErrorBackoff | None = None, now: float = 0.0) -> list[tuple[float, ErrorBackoff]]:
    """Return the backoff after each poll, with its time."""
    seen, backoff = [], backoff or ErrorBackoff()
    for gap, errors in polls:
        now += gap
        backoff = backoff.after(now, errors=errors, calm_after=CALM_AFTER)
        seen.append((now, backoff))
    return seen


def _last(polls: Polls) -> ErrorBackoff:
    return _backoffs(polls)[-1][1]


def _obeying(seconds: float, every: int, base: float = BASE) -> list[float]:
    """Return the factors of a match whose every nth poll fails."""
    backoff, now, factors = ErrorBackoff(), 0.0, list[float]()
    while now < seconds:
        backoff = backoff.after(now, errors=int(len(factors) % every == 0), calm_after=CALM_AFTER)
        factors.append(backoff.factor)
        now += base if backoff.factor == 1.0 else BASE * backoff.factor
    return factors


@pytest.mark.req("FR-022", "US5")
@pytest.mark.parametrize(
    ("errors", "factor"), [(4, 1.0), (5, 2.0), (9, 2.0), (10, 4.0), (19, 4.0), (20, 8.0), (500, 8.0)]
)
def test_five_ten_and_twenty_errors_slow_a_match_however_they_are_spread_over_polls(errors: int, factor: float) -> None:
    one_by_one = _last([(0.1, 1)] * errors)
    two_polls = _last([(BASE, errors // 2), (BASE, errors - errors // 2)])
    at_once = _last([(BASE, errors)])

    assert [backoff.factor for backoff in (one_by_one, two_polls, at_once)] == [factor] * 3


@pytest.mark.req("FR-022")
def test_four_errors_a_minute_are_nothing_and_five_are_a_bad_spell() -> None:
    assert _last([(15.0, 1)] * 100).factor == 1.0
    assert _last([(14.9, 1)] * 5).factor == 2.0


@pytest.mark.req("FR-022")
def test_a_spell_is_over_after_five_quiet_minutes_and_not_before() -> None:
    spell = [(BASE, 5)]

    assert _last([*spell, (299.9, 0)]).factor == 2.0
    assert _last([*spell, (300.0, 0)]).factor == 1.0


def test_after_a_spell_the_count_restarts() -> None:
    over = [(BASE, 25), (CALM_AFTER, 0)]

    assert _last([*over, (BASE, 4)]).factor == 1.0
    assert _last([*over, (BASE, 5)]).factor == 2.0


def test_in_a_spell_an_accident_neither_slows_further_nor_keeps_it() -> None:
    polls = [(BASE, 5), *[(30.0, 0)] * 9, (30.0, 1)]  # the error comes as the five minutes are over

    *_, (_, at_the_error), (_, after_it) = _backoffs([*polls, (5.0, 0)])

    assert (at_the_error.errors, at_the_error.factor) == (5, 2.0)
    assert after_it.factor == 1.0


@given(LOOKS)
@example([(BASE, 5), *[(30.0, 0)] * 9, (30.0, 1)])  # after four minutes and a half of good polls
def test_an_error_never_makes_a_match_faster(polls: Polls) -> None:
    factors = [1.0, *(backoff.factor for _, backoff in _backoffs(polls))]

    assert all(
        after >= before for (_, errors), before, after in zip(polls, factors, factors[1:], strict=False) if errors
    )


@given(LOOKS)
def test_a_spell_ends_only_after_five_minutes_in_which_errors_were_rare(polls: Polls) -> None:
    seen = _backoffs(polls)

    for end in range(1, len(seen)):
        ended_at, backoff = seen[end]
        if backoff.factor == 1.0 and seen[end - 1][1].factor > 1.0:
            within = [at for at in range(end) if ended_at - seen[at][0] < CALM_AFTER and polls[at][1]]
            assert all(_good_before(polls, at) >= GOOD_BETWEEN_ACCIDENTS for at in within)


def _good_before(polls: Polls, at: int) -> int:
    return next((back for back in range(at) if polls[at - 1 - back][1]), at)


@pytest.mark.req("FR-022")
@given(st.lists(st.tuples(st.floats(0.1, 3600), st.integers(1, 9)), max_size=100))
def test_while_everything_fails_a_match_stays_slow_however_seldom_it_is_polled(polls: Polls) -> None:
    backoffs = _backoffs([(BASE, 5), *polls])

    factors = [backoff.factor for _, backoff in backoffs]
    assert factors == sorted(factors)
    assert factors[0] > 1.0


@given(st.lists(st.sampled_from([0, 0, 0, 1, 20]), max_size=40), st.sampled_from([2.0, 2.5, 5.0, 20.0]))
def test_isolated_errors_never_slow(extra: list[int], step: float) -> None:
    polls = [look for more in extra for look in [(step, 1)] + [(step, 0)] * (GOOD_BETWEEN_ACCIDENTS + more)]

    assert all(backoff.factor == 1.0 for _, backoff in _backoffs(polls))


@pytest.mark.parametrize("base", [2.0, 2.5])
@pytest.mark.parametrize("every", range(1, 16))
def test_errors_at_an_even_rate_slow_a_match_once_and_for_all_or_never(every: int, base: float) -> None:
    factors = _obeying(2 * 3600, every, base)

    assert factors == sorted(factors)


@given(LOOKS)
def test_after_five_minutes_of_good_polls_any_match_is_as_fast_as_ever(polls: Polls) -> None:
    _, backoff = _backoffs([*polls, (BASE, 5), *[(10.0, 0)] * 30])[-1]

    assert backoff.factor == 1.0


def test_a_backoff_remembers_little_however_long_the_trouble() -> None:
    backoff = _last([(BASE, 3)] * 10_000)

    assert len(backoff.recent) <= 20


# --- when the polling of a feed is restarted ----------------------------------------------------------------------


HOUR = 3600.0


def _reason(now: float, *, is_in_play: bool = True, is_quiet: bool = False, **changes: Any) -> RestartReason | None:
    match = _match(MatchStatus.LIVE if is_in_play else MatchStatus.UPCOMING)
    watch = _watch(**{"accepted_at": now, "activity": STILL if is_quiet else CALM, **changes})
    return watch.restart_reason(match.row, Moment(NOW, now), is_polling=False)


@pytest.mark.req("FR-001")
@pytest.mark.parametrize(("silent", "reason"), [(300.0, None), (300.1, RestartReason.STALE)])
def test_a_match_in_play_is_stale_after_five_minutes_without_progress(
    silent: float, reason: RestartReason | None
) -> None:
    assert _reason(1000.0, accepted_at=1000.0 - silent) is reason


def test_a_match_that_is_not_in_play_is_never_stale() -> None:
    assert _reason(5 * HOUR, accepted_at=0.0, is_in_play=False) is None


def test_a_watch_that_has_just_begun_is_given_its_time() -> None:
    assert _reason(1000.0, started_at=900.0, accepted_at=0.0) is None
    assert _reason(1201.0, started_at=900.0, accepted_at=0.0) is RestartReason.STALE


@pytest.mark.req("FR-001")
@pytest.mark.parametrize("is_in_play", [True, False])
def test_the_eleventh_error_in_a_row_restarts_a_watch(is_in_play: bool) -> None:
    assert _reason(10.0, failures=10, is_in_play=is_in_play) is None
    assert _reason(10.0, failures=11, is_in_play=is_in_play) is RestartReason.ERRORS


@pytest.mark.req("FR-010", "EC7")
@pytest.mark.parametrize(
    ("hours", "is_quiet", "reason"),
    [
        (6.0, True, None),
        (6.01, True, RestartReason.LIFETIME),
        (6.01, False, None),  # it waits for a quiet moment
        (6.6, False, None),
        (6.61, False, RestartReason.LIFETIME),  # but not for ever
    ],
)
def test_a_watch_lives_for_six_hours_and_ends_in_a_quiet_moment(
    hours: float, is_quiet: bool, reason: RestartReason | None
) -> None:
    assert _reason(hours * HOUR, is_quiet=is_quiet) is reason


def test_the_lifetime_counts_from_the_beginning_of_this_watch() -> None:
    assert _reason(10 * HOUR, started_at=5 * HOUR, is_quiet=True) is None


def test_an_operator_may_choose_other_lengths() -> None:
    rules = WatchRules(lifetime_seconds=20.0, stale_seconds=5.0)

    assert _reason(10.0, rules=rules, accepted_at=4.0) is RestartReason.STALE
    assert _reason(21.0, rules=rules, is_quiet=True) is RestartReason.LIFETIME


def test_what_is_stuck_is_reported_as_stuck_and_not_as_old() -> None:
    assert _reason(7 * HOUR, accepted_at=0.0, failures=11, is_quiet=True) is RestartReason.STALE


@given(st.floats(0, 6 * HOUR), st.floats(0, 300), st.integers(0, 10), st.booleans(), st.booleans())
def test_a_healthy_watch_is_excluded(
    now: float, silent: float, failures: int, is_in_play: bool, is_quiet: bool
) -> None:
    accepted_at = max(0.0, now - silent)

    reason = _reason(now, accepted_at=accepted_at, failures=failures, is_in_play=is_in_play, is_quiet=is_quiet)

    assert reason is None


# --- frozen pages ----------------------------------------------------------------------------------------------------


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
def test_two_frozen_resources_count_as_frozen_after_ten_minutes_of_play(
    shown: Board, seconds: float, behind: Behind
) -> None:
    assert page_behind(shown, shown, seconds) is behind


def test_a_page_that_is_behind_is_reported_even_after_a_long_silence() -> None:
    assert page_behind(OLDER, NEWER, SILENT_AFTER) is Behind.MATCH


def _stopped(page: Behind) -> Lag:
    """Return the lag after the other page has changed twice."""
    return Lag().after_change(page).after_change(page)


@pytest.mark.parametrize("behind", [Behind.MATCH, Behind.LIST])
def test_a_disagreement_is_a_cache_for_half_a_minute_and_a_frozen_page_after_it(behind: Behind) -> None:
    lag = _stopped(behind).after(100.0, behind).after(120.0, behind)

    assert not lag.is_frozen(100.0 + FROZEN_AFTER - 0.1, FROZEN_AFTER)
    assert lag.is_frozen(100.0 + FROZEN_AFTER, FROZEN_AFTER)


def test_a_disagreement_that_ends_and_comes_back_is_counted_from_the_start() -> None:
    lag = _stopped(Behind.MATCH).after(0.0, Behind.MATCH).after(20.0, Behind.NEITHER).after(25.0, Behind.MATCH)

    assert not lag.is_frozen(54.0, FROZEN_AFTER)
    assert lag.is_frozen(55.0, FROZEN_AFTER)


def test_the_other_one_being_behind_is_another_disagreement() -> None:
    lag = _stopped(Behind.LIST).after(0.0, Behind.MATCH).after(29.0, Behind.LIST)

    assert not lag.is_frozen(31.0, FROZEN_AFTER)


def test_a_silence_of_both_is_frozen_at_once_since_it_has_lasted_already() -> None:
    assert Lag().after(700.0, Behind.BOTH).is_frozen(700.0, FROZEN_AFTER)


def test_without_a_lag_nothing_is_frozen() -> None:
    assert not Lag().is_frozen(10_000.0, FROZEN_AFTER)


def test_everybody_who_can_be_behind_has_a_witness_against_him() -> None:
    assert set(WITNESS) == set(Behind) - {Behind.NEITHER}
