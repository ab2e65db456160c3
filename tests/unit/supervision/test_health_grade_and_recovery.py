"""The grade of a scraper: freshness, hysteresis, and what to do when it fails."""

from collections.abc import Iterable
from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from longstop.clock import Moment
from longstop.model.match import MatchRef, MatchStatus, Phase
from longstop.model.polling_status import MonitoringRecord
from longstop.supervision.health_grade_and_recovery import (
    GOOD_INTERVALS,
    MAX_RECYCLES,
    Age,
    FailedRecycles,
    Freshness,
    Grade,
    GradeState,
    RecoveryAction,
    Sample,
    after_interval,
    grade_of,
    match_grade,
    moved,
    percentile,
    reason_of,
    recovery_action,
    worth_recycling,
)
from tests.readers import MOMENT, NOW, a_record


def polled(record: MonitoringRecord, at: float, jump: float = 0.0) -> MonitoringRecord:
    """Return the record after a successful poll at this monotonic time; the wall clock may have jumped before."""
    return replace(record, last_poll_at=NOW + timedelta(seconds=at + jump), last_poll_monotonic=at)


def ages(freshness: Freshness, now: float) -> dict[str, float]:
    return {age.ref: age.seconds for age in freshness.sample(now).ages}


def test_an_age_counts_from_the_last_change_of_the_poll() -> None:
    freshness, record = Freshness(), a_record()

    freshness.observe([record], 100.0)
    freshness.observe([polled(record, 110.0)], 110.0)
    freshness.observe([polled(record, 110.0)], 130.0)

    assert ages(freshness, 131.0) == {"crex_M1": 21.0}


def test_a_match_that_comes_into_play_with_an_old_poll_is_not_late_yet() -> None:
    freshness = Freshness()

    freshness.observe([a_record(1, polled=3600, status=MatchStatus.UPCOMING)], 0.0)
    freshness.observe([a_record(1, polled=3600), a_record(2, polled=None)], 50.0)

    assert ages(freshness, 51.0) == {"crex_M1": 1.0, "crex_M2": 1.0}


@pytest.mark.parametrize("jump", [-3600, 3600])
def test_a_wall_clock_that_jumps_makes_no_match_old(jump: float) -> None:
    freshness, record = Freshness(), a_record()
    freshness.observe([record], 0.0)

    freshness.observe([polled(record, 10.0, jump)], 10.0)

    assert ages(freshness, 11.0) == {"crex_M1": 1.0}


def test_a_match_paused_by_its_breaker_is_counted_and_has_no_age() -> None:
    freshness = Freshness()

    freshness.observe([a_record(1), a_record(2, phase=Phase.PAUSED)], 0.0)

    assert (list(ages(freshness, 1.0)), freshness.sample(1.0).paused) == (["crex_M1"], frozenset({2}))


def test_a_match_paused_by_an_operator_does_not_count() -> None:
    freshness = Freshness()

    freshness.observe([replace(a_record(1, phase=Phase.PAUSED), is_on_hold=True)], 0.0)

    assert (freshness.sample(1.0).ages, freshness.sample(1.0).paused) == ((), frozenset())


def test_after_a_pause_the_age_starts_over() -> None:
    freshness = Freshness()

    freshness.observe([a_record(1)], 0.0)
    freshness.observe([a_record(1, phase=Phase.PAUSED)], 10.0)
    freshness.observe([a_record(1)], 400.0)

    assert ages(freshness, 401.0) == {"crex_M1": 1.0}


def test_a_stall_counts_from_the_last_successful_poll_while_something_is_in_play() -> None:
    freshness, first, second = Freshness(), a_record(1), a_record(2)
    freshness.observe([first, second], 0.0)
    freshness.observe([first, polled(second, 40.0)], 40.0)

    assert freshness.sample(50.0).stall_seconds == 10.0
    freshness.observe([], 50.0)
    assert freshness.sample(500.0).stall_seconds == 0.0


@pytest.mark.req("MON-8")
def test_matches_paused_by_their_breakers_do_not_hide_a_stall() -> None:
    freshness = Freshness()

    freshness.observe([a_record(1), a_record(2)], 0.0)
    freshness.observe([a_record(number, phase=Phase.PAUSED) for number in (1, 2)], 10.0)

    assert (freshness.sample(95.0).stall_seconds, freshness.sample(95.0).is_stalled) == (95.0, True)


@pytest.mark.req("MON-8")
def test_a_newcomer_does_not_end_a_stall_before_it_was_read() -> None:
    freshness, newcomer = Freshness(), a_record(2, polled=None)
    freshness.observe([a_record(1)], 0.0)

    freshness.observe([a_record(1), newcomer], 80.0)
    assert freshness.sample(95.0).is_stalled
    freshness.observe([a_record(1), polled(newcomer, 96.0)], 96.0)
    assert freshness.sample(97.0).stall_seconds == 1.0


def test_a_poll_of_a_match_that_is_not_in_play_ends_no_stall() -> None:
    freshness, upcoming = Freshness(), a_record(2, status=MatchStatus.UPCOMING)

    freshness.observe([a_record(1), upcoming], 0.0)
    freshness.observe([a_record(1), polled(upcoming, 60.0)], 60.0)

    assert freshness.sample(95.0).stall_seconds == 95.0
    assert not freshness.has_read


def blocked(freshness: Freshness, now: float) -> set[str]:
    return {age.ref for age in freshness.sample(now).ages if age.is_blocked}


def test_in_a_stall_an_open_circuit_blocks_all_matches_of_its_source() -> None:
    freshness, canary = Freshness(), a_record(2)
    shut_out = replace(a_record(1), is_held=True, is_shut_out=True)
    elsewhere = replace(a_record(3), ref=MatchRef("espn", "M3"))
    freshness.observe([shut_out, canary, elsewhere], 0.0)

    assert blocked(freshness, 95.0) == {"crex_M1", "crex_M2"}
    freshness.observe([shut_out, polled(canary, 96.0), elsewhere], 96.0)
    assert blocked(freshness, 130.0) == {"crex_M1"}


@pytest.mark.req("MON-8")
def test_in_a_stall_a_match_that_waits_in_our_queue_blocks_only_itself() -> None:
    freshness = Freshness()

    freshness.observe([replace(a_record(1), is_held=True), a_record(2)], 0.0)

    assert blocked(freshness, 95.0) == {"crex_M1"}


def test_an_exhausted_resource_does_not_block_a_source() -> None:
    freshness = Freshness()

    freshness.observe([replace(a_record(1), is_held=True, lacking="memory"), a_record(2)], 0.0)

    assert blocked(freshness, 95.0) == set()


def test_a_stall_begins_when_something_comes_into_play() -> None:
    freshness = Freshness()

    freshness.observe([replace(a_record(1), is_on_hold=True)], 0.0)
    freshness.observe([a_record(1)], 500.0)

    assert freshness.sample(530.0).stall_seconds == 30.0


def test_read_since_returns_the_matches_read_after_a_moment() -> None:
    freshness, records = Freshness(), [a_record(number) for number in (1, 2, 3)]
    freshness.observe(records, 0.0)
    freshness.observe([polled(records[0], 10.0), records[1], polled(records[2], 10.0)], 10.0)

    assert freshness.read_since({1, 2}, 5.0) == ("crex_M1",)
    assert freshness.read_since({1, 2, 3}, 10.0) == ()


def test_first_sight_is_no_success() -> None:
    freshness = Freshness()

    freshness.observe([a_record(1)], 10.0)

    assert freshness.read_since({1}, 5.0) == ()


def test_a_poll_that_shows_the_end_counts_and_the_match_is_not_wanted_after_it() -> None:
    freshness, record = Freshness(), a_record()
    freshness.observe([record], 0.0)
    assert freshness.is_any_wanted({1})

    freshness.observe([replace(polled(record, 10.0), status=MatchStatus.COMPLETED)], 10.0)

    assert freshness.read_since({1}, 5.0) == ("crex_M1",)
    assert not freshness.is_any_wanted({1})
    assert ages(freshness, 11.0) == {}


@pytest.mark.req("MON-8")
def test_how_long_a_stall_is_can_be_said() -> None:
    freshness, patient = Freshness(stall_after=5.0), Freshness()
    for each in (freshness, patient):
        each.observe([a_record()], 100.0)

    assert not freshness.sample(104.9).is_stalled
    assert freshness.sample(105.0).is_stalled
    assert not patient.sample(189.9).is_stalled
    assert patient.sample(190.0).is_stalled


GOOD, OLD, BAD = (1.0,), (60.0,), (120.0,)


def sample(*seconds: float, paused: int = 0) -> Sample:
    ages = tuple(Age(each, number, f"crex_M{number}") for number, each in enumerate(seconds, start=1))
    return Sample(ages=ages, paused=frozenset(range(100, 100 + paused)), stall_seconds=min(seconds, default=0.0))


def walk(start: GradeState, samples: Iterable[Sample]) -> list[Grade]:
    grades = []
    for each in samples:
        start = after_interval(start, each)
        grades.append(start.grade)
    return grades


@pytest.mark.req("MON-8")
@pytest.mark.parametrize(
    ("taken", "grade"),
    [
        # A night without a match.
        (sample(), Grade.HEALTHY),
        (sample(59.9), Grade.HEALTHY),
        (sample(60.0), Grade.DEGRADED),
        # The median is old, the oldest is not too old.
        (sample(1.0, 60.0, 60.0), Grade.DEGRADED),
        # One of twenty is within the 95 %, one of twenty-one is not.
        (sample(*[1.0] * 18, 60.0, 60.0), Grade.DEGRADED),
        (sample(*[1.0] * 19, 119.0), Grade.HEALTHY),
        # The match that is read least counts, even if most are fine.
        (sample(*[1.0] * 99, 120.0), Grade.FAILING),
        (sample(89.9, 89.9), Grade.DEGRADED),
        # Nothing is read anywhere.
        (sample(90.0, 91.0), Grade.FAILING),
        (sample(1.0, 91.0), Grade.DEGRADED),
        # Paused matches make it degraded, and no worse while anything is read.
        (sample(paused=1), Grade.DEGRADED),
        (sample(1.0, paused=20), Grade.DEGRADED),
        (Sample(paused=frozenset({1, 2}), stall_seconds=89.9), Grade.DEGRADED),
        (Sample(paused=frozenset({1, 2}), stall_seconds=90.0), Grade.FAILING),
        (Sample(ages=(Age(3.0, 3, "new"),), paused=frozenset({1, 2}), stall_seconds=90.0), Grade.FAILING),
    ],
)
def test_the_level_follows_the_thresholds(taken: Sample, grade: Grade) -> None:
    assert grade_of(taken) is grade
    assert bool(reason_of(taken)) == (grade is not Grade.HEALTHY)


@pytest.mark.req("MON-8")
@pytest.mark.parametrize(
    ("grade", "ages", "after"),
    [
        (Grade.HEALTHY, [GOOD], Grade.HEALTHY),
        (Grade.HEALTHY, [OLD], Grade.DEGRADED),
        # However bad it is, one step at a time.
        (Grade.HEALTHY, [BAD], Grade.DEGRADED),
        (Grade.HEALTHY, [BAD, BAD], Grade.FAILING),
        (Grade.DEGRADED, [BAD], Grade.FAILING),
        (Grade.DEGRADED, [OLD], Grade.DEGRADED),
        (Grade.DEGRADED, [GOOD], Grade.DEGRADED),
        (Grade.DEGRADED, [GOOD, GOOD], Grade.HEALTHY),
        (Grade.DEGRADED, [GOOD, OLD, GOOD], Grade.DEGRADED),
        (Grade.FAILING, [BAD], Grade.FAILING),
        (Grade.FAILING, [OLD], Grade.DEGRADED),
        (Grade.FAILING, [GOOD], Grade.DEGRADED),
        (Grade.FAILING, [GOOD, GOOD], Grade.HEALTHY),
        # Only what the recycle brings ends the recovering.
        (Grade.RECOVERING, [GOOD], Grade.RECOVERING),
        (Grade.RECOVERING, [BAD], Grade.RECOVERING),
    ],
)
def test_the_grade_moves_by_the_table(grade: Grade, ages: list[tuple[float, ...]], after: Grade) -> None:
    assert walk(GradeState(grade=grade), [sample(*each) for each in ages])[-1] is after


def test_a_recycle_leads_to_recovering_and_out_of_it() -> None:
    failing = GradeState(grade=Grade.FAILING, reason="why")

    recovering = moved(failing, Grade.RECOVERING)

    assert recovering.grade is Grade.RECOVERING
    assert moved(recovering, Grade.HEALTHY) == GradeState(grade=Grade.HEALTHY)
    assert moved(recovering, Grade.FAILING) == failing


def test_a_healthy_scraper_has_no_reason_and_another_one_has() -> None:
    degraded = after_interval(GradeState(), sample(61.0, 1.0, 90.0))
    waiting = after_interval(degraded, sample(1.0))
    healthy = after_interval(waiting, sample(1.0))

    assert degraded.reason == "older than 60 s: crex_M3, crex_M1"
    assert waiting.reason == degraded.reason
    assert healthy.reason == ""


def test_the_reason_names_a_few_and_counts_the_rest() -> None:
    assert reason_of(sample(1.0, *[125.0] * 7)).endswith("crex_M8, crex_M7, crex_M6, crex_M5, crex_M4 and 2 more")
    assert reason_of(sample(95.0, 130.0)) == "nothing in play was read for 95 s"
    assert reason_of(sample(61.0, paused=2)) == "older than 60 s: crex_M1; 2 paused"
    assert reason_of(sample(95.0, paused=2)) == "nothing in play was read for 95 s; 2 paused"


def test_in_a_stall_a_match_that_has_just_come_into_play_is_not_overdue() -> None:
    old, new = Age(95.0, 1, "old"), Age(3.0, 2, "new")

    assert Sample(ages=(old, new), stall_seconds=95.0).overdue == (old,)


#: All allowed transitions without a recycle.
TRANSITIONS = {
    Grade.HEALTHY: {Grade.DEGRADED},
    Grade.DEGRADED: {Grade.HEALTHY, Grade.FAILING},
    Grade.FAILING: {Grade.DEGRADED},
}
AGES = st.lists(st.floats(0, 400), max_size=6)
SAMPLES = st.lists(st.builds(lambda ages, paused: sample(*ages, paused=paused), AGES, st.integers(0, 2)), max_size=40)


@given(samples=SAMPLES)
def test_every_move_is_in_the_table(samples: list[Sample]) -> None:
    grades = [Grade.HEALTHY, *walk(GradeState(), samples)]

    moves = [(before, after) for before, after in pairwise(grades) if before is not after]
    assert all(after in TRANSITIONS[before] for before, after in moves)


@given(samples=SAMPLES)
def test_nothing_is_healthy_again_without_enough_good_intervals(samples: list[Sample]) -> None:
    grades = [Grade.HEALTHY, *walk(GradeState(), samples)]

    for place in range(1, len(grades)):
        if grades[place] is Grade.HEALTHY and grades[place - 1] is not Grade.HEALTHY:
            last = samples[place - GOOD_INTERVALS : place]
            assert [grade_of(each) for each in last] == [Grade.HEALTHY] * GOOD_INTERVALS


@given(bad=st.sampled_from([OLD, BAD]), intervals=st.integers(2, 60))
def test_ages_that_go_over_the_threshold_every_other_time_do_not_make_it_flap(
    bad: tuple[float, ...], intervals: int
) -> None:
    around = [sample(*(bad if number % 2 == 0 else GOOD)) for number in range(intervals)]

    grades = walk(GradeState(), around)

    assert Grade.HEALTHY not in grades


@given(samples=SAMPLES)
def test_whatever_went_before_three_good_intervals_make_it_healthy(samples: list[Sample]) -> None:
    grades = walk(GradeState(), [*samples, sample(1.0), sample(1.0), sample(1.0)])

    assert grades[-1] is Grade.HEALTHY


@given(ages=AGES, paused=st.integers(0, 50))
def test_paused_matches_beside_others_make_it_no_worse_than_degraded(ages: list[float], paused: int) -> None:
    without, with_them = grade_of(sample(*ages)), grade_of(sample(*ages, paused=paused))

    assert with_them in (without, Grade.DEGRADED)
    assert without is not Grade.FAILING or with_them is without


@given(values=st.lists(st.floats(0, 1e6), min_size=1), share=st.floats(0.01, 1.0))
def test_a_percentile_is_a_value_that_enough_do_not_exceed(values: list[float], share: float) -> None:
    found = percentile(values, share)

    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)


def test_of_nothing_there_is_no_percentile() -> None:
    assert percentile([], 0.5) is None


def failing(count: int) -> MonitoringRecord:
    return msgspec.structs.replace(a_record(), consecutive_failures=count)


@pytest.mark.parametrize(
    ("record", "grade"),
    [
        (a_record(polled=120), Grade.HEALTHY),
        (a_record(polled=121), Grade.DEGRADED),
        (a_record(polled=300), Grade.DEGRADED),
        (a_record(polled=301), Grade.FAILING),
        (failing(2), Grade.HEALTHY),
        (failing(3), Grade.DEGRADED),
        (failing(5), Grade.DEGRADED),
        (failing(6), Grade.FAILING),
        # No reader is needed.
        (a_record(polled=9000, status=MatchStatus.UPCOMING), Grade.HEALTHY),
        (a_record(polled=9000, status=MatchStatus.COMPLETED), Grade.HEALTHY),
        (a_record(polled=9000, phase=Phase.PAUSED), Grade.DEGRADED),
        (msgspec.structs.replace(a_record(polled=9000, phase=Phase.PAUSED), is_on_hold=True), Grade.HEALTHY),
        (a_record(polled=None), Grade.HEALTHY),
    ],
)
def test_a_match_is_graded_by_its_failures_and_its_age(record: MonitoringRecord, grade: Grade) -> None:
    assert match_grade(record, MOMENT) is grade


@pytest.mark.parametrize(
    ("record", "grade"),
    [
        (a_record(polled=60), Grade.HEALTHY),
        (a_record(polled=61), Grade.DEGRADED),
        (a_record(polled=120), Grade.DEGRADED),
        (a_record(polled=121), Grade.FAILING),
        (a_record(polled=9000, status=MatchStatus.COMPLETED), Grade.HEALTHY),
    ],
)
def test_without_a_scraper_a_match_is_graded_by_the_limits_of_a_scraper(record: MonitoringRecord, grade: Grade) -> None:
    assert match_grade(record, MOMENT, is_running=False) is grade


def test_a_clock_that_was_set_back_makes_no_match_worse() -> None:
    assert match_grade(a_record(polled=1), Moment(NOW - timedelta(hours=1), 0.0)) is Grade.HEALTHY


@pytest.mark.req("NFR-005")
@pytest.mark.parametrize("leap", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_jump_of_the_wall_clock_does_not_change_the_age_of_a_match(leap: timedelta) -> None:
    read, unread = (msgspec.structs.replace(a_record(polled=1), last_poll_monotonic=each) for each in (999.0, 600.0))

    grades = [match_grade(record, Moment(NOW + leap, 1000.0)) for record in (read, unread)]

    assert grades == [Grade.HEALTHY, Grade.FAILING]


GIVEN_UP = FailedRecycles(matches={1: MAX_RECYCLES, 2: MAX_RECYCLES})
STALLED_TWICE = FailedRecycles(matches={1: MAX_RECYCLES}, stalls=MAX_RECYCLES)


def overdue_sample(*seconds: float, blocked: tuple[int, ...] = (), paused: tuple[int, ...] = ()) -> Sample:
    ages = (Age(each, number, f"crex_M{number}", number in blocked) for number, each in enumerate(seconds, start=1))
    return Sample(ages=tuple(ages), paused=frozenset(paused), stall_seconds=min(seconds, default=3600.0))


@pytest.mark.parametrize(
    ("taken", "failed", "wanted"),
    [
        (overdue_sample(95.0, 96.0), FailedRecycles(), RecoveryAction.RECYCLE),
        (overdue_sample(1.0, 130.0), FailedRecycles(), RecoveryAction.RECYCLE),
        (overdue_sample(1.0, 130.0), FailedRecycles(matches={2: MAX_RECYCLES - 1}), RecoveryAction.RECYCLE),
        # The circuit is open, or the site has rate-limited us: recycling does not help.
        (overdue_sample(95.0, 96.0, blocked=(1, 2)), FailedRecycles(), RecoveryAction.WAIT),
        (overdue_sample(1.0, 130.0, blocked=(2,)), FailedRecycles(), RecoveryAction.WAIT),
        # The site refuses us, and every match is paused: more requests do not help, however often we tried.
        (overdue_sample(paused=(1, 2)), FailedRecycles(), RecoveryAction.WAIT),
        (overdue_sample(paused=(1, 2)), STALLED_TWICE, RecoveryAction.WAIT),
        (overdue_sample(95.0, blocked=(1,), paused=(2,)), STALLED_TWICE, RecoveryAction.WAIT),
        # One site is down, the other one should be read.
        (overdue_sample(95.0, 96.0, blocked=(1,)), FailedRecycles(), RecoveryAction.RECYCLE),
        # Nothing is read, and recycling did not help: matches that have joined since change nothing about that.
        (overdue_sample(95.0, 96.0), STALLED_TWICE, RecoveryAction.RESTART),
        (overdue_sample(95.0, 96.0, blocked=(1,)), STALLED_TWICE, RecoveryAction.RESTART),
        (
            overdue_sample(*[900.0] * 50, 95.0),
            FailedRecycles(matches=dict.fromkeys(range(1, 51), 2), stalls=2),
            RecoveryAction.RESTART,
        ),
        # Matches that were given up while others were read do not prevent a recycle of the others.
        (overdue_sample(95.0, 96.0), FailedRecycles(matches={1: MAX_RECYCLES}), RecoveryAction.RECYCLE),
        # One match is not helped; the others are read, and are not troubled again for it.
        (overdue_sample(1.0, 130.0), GIVEN_UP, RecoveryAction.GIVE_UP),
        # The others have ended: now nothing is read, and nothing else is left to be tried.
        (overdue_sample(130.0), GIVEN_UP, RecoveryAction.RESTART),
    ],
)
def test_the_remedy_follows_the_table(taken: Sample, failed: FailedRecycles, wanted: RecoveryAction) -> None:
    assert recovery_action(taken, failed) is wanted


def test_a_process_that_was_no_remedy_itself_does_not_ask_for_the_next() -> None:
    assert recovery_action(overdue_sample(95.0), STALLED_TWICE, may_restart=False) is RecoveryAction.GIVE_UP


def test_only_those_are_recycled_whom_it_may_still_help() -> None:
    hoped = worth_recycling(
        overdue_sample(900.0, 95.0, 96.0, blocked=(3,)), FailedRecycles(matches={1: MAX_RECYCLES, 2: 1})
    )

    assert [age.match_id for age in hoped] == [2]


def test_a_failed_recycle_counts_for_the_matches_it_was_for() -> None:
    after = FailedRecycles(matches={1: 1, 3: 1}).after([1, 2], overdue_sample(130.0, 130.0, 125.0))

    assert after == FailedRecycles(matches={1: 2, 2: 1, 3: 1}, stalls=1)


def test_matches_that_were_read_again_are_forgotten_and_so_is_the_stall() -> None:
    after = FailedRecycles(matches={1: 2, 2: 1, 4: 2}, stalls=1).pruned(overdue_sample(1.0, 130.0))

    assert after == FailedRecycles(matches={2: 1})


def test_a_match_that_is_paused_at_the_outcome_was_not_helped() -> None:
    after = FailedRecycles(matches={1: 1}).after([1], overdue_sample(paused=(1,)))

    assert after.matches == {1: 2}


def test_a_recycle_for_a_few_while_others_are_read_is_none_of_a_stall() -> None:
    assert FailedRecycles().after([2], overdue_sample(1.0, 250.0)) == FailedRecycles(matches={2: 1})
