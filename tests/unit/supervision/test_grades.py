from collections.abc import Iterable
from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.clock import Moment
from longstop.errors import IllegalTransition
from longstop.model.match import MatchStatus, MonitoringRecord, Phase
from longstop.supervision.grades import (
    GOOD_INTERVALS,
    TRANSITIONS,
    Age,
    Grade,
    Level,
    Sample,
    Standing,
    after_interval,
    in_vain,
    level_of,
    match_grade,
    percentile,
    reason_of,
    recovered,
    recycled,
)
from tests.readers import MOMENT, NOW, a_record

GOOD, OLD, BAD = (1.0,), (60.0,), (120.0,)


def sample(*seconds: float, paused: int = 0) -> Sample:
    ages = tuple(Age(each, number, f"crex_M{number}") for number, each in enumerate(seconds, start=1))
    return Sample(ages=ages, paused=frozenset(range(100, 100 + paused)), stall_seconds=min(seconds, default=0.0))


def walk(start: Standing, samples: Iterable[Sample]) -> list[Grade]:
    grades = []
    for each in samples:
        start = after_interval(start, each)
        grades.append(start.grade)
    return grades


@pytest.mark.req("MON-8")
@pytest.mark.parametrize(
    ("taken", "level"),
    [
        # A night without a match.
        (sample(), Level.GOOD),
        (sample(59.9), Level.GOOD),
        (sample(60.0), Level.OLD),
        # The median is old, the oldest is not too old.
        (sample(1.0, 60.0, 60.0), Level.OLD),
        # One of twenty is within the 95 %, one of twenty-one is not.
        (sample(*[1.0] * 18, 60.0, 60.0), Level.OLD),
        (sample(*[1.0] * 19, 119.0), Level.GOOD),
        # Whoever is read least counts, however many are well.
        (sample(*[1.0] * 99, 120.0), Level.BAD),
        (sample(89.9, 89.9), Level.OLD),
        # Nothing is read anywhere.
        (sample(90.0, 91.0), Level.BAD),
        (sample(1.0, 91.0), Level.OLD),
        # Who rests makes it degraded, and no worse while anything is read.
        (sample(paused=1), Level.OLD),
        (sample(1.0, paused=20), Level.OLD),
        (Sample(paused=frozenset({1, 2}), stall_seconds=89.9), Level.OLD),
        (Sample(paused=frozenset({1, 2}), stall_seconds=90.0), Level.BAD),
        (Sample(ages=(Age(3.0, 3, "new"),), paused=frozenset({1, 2}), stall_seconds=90.0), Level.BAD),
    ],
)
def test_the_level_follows_the_thresholds(taken: Sample, level: Level) -> None:
    assert level_of(taken) is level
    assert bool(reason_of(taken)) == (level is not Level.GOOD)


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
    assert walk(Standing(grade=grade), [sample(*each) for each in ages])[-1] is after


def test_a_recycle_leads_to_recovering_and_out_of_it() -> None:
    failing = Standing(grade=Grade.FAILING, reason="why")

    assert recycled(failing).grade is Grade.RECOVERING
    assert recovered(recycled(failing)) == Standing(grade=Grade.HEALTHY)
    assert in_vain(recycled(failing)) == failing


@pytest.mark.parametrize("grade", [Grade.HEALTHY, Grade.DEGRADED, Grade.RECOVERING])
def test_only_a_failing_scraper_is_recycled(grade: Grade) -> None:
    with pytest.raises(IllegalTransition):
        recycled(Standing(grade=grade))


def test_a_healthy_scraper_has_no_reason_and_another_one_has() -> None:
    degraded = after_interval(Standing(), sample(61.0, 1.0, 90.0))
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


def test_in_a_stall_who_has_just_come_into_play_is_not_to_blame() -> None:
    old, new = Age(95.0, 1, "old"), Age(3.0, 2, "new")

    assert Sample(ages=(old, new), stall_seconds=95.0).offenders == (old,)


AGES = st.lists(st.floats(0, 400), max_size=6)
SAMPLES = st.lists(st.builds(lambda ages, paused: sample(*ages, paused=paused), AGES, st.integers(0, 2)), max_size=40)


@given(samples=SAMPLES)
def test_every_move_is_in_the_table(samples: list[Sample]) -> None:
    grades = [Grade.HEALTHY, *walk(Standing(), samples)]

    moves = [(before, after) for before, after in pairwise(grades) if before is not after]
    assert all(after in TRANSITIONS[before] for before, after in moves)


@given(samples=SAMPLES)
def test_nothing_is_healthy_again_without_enough_good_intervals(samples: list[Sample]) -> None:
    grades = [Grade.HEALTHY, *walk(Standing(), samples)]

    for place in range(1, len(grades)):
        if grades[place] is Grade.HEALTHY and grades[place - 1] is not Grade.HEALTHY:
            last = samples[place - GOOD_INTERVALS : place]
            assert [level_of(each) for each in last] == [Level.GOOD] * GOOD_INTERVALS


@given(bad=st.sampled_from([OLD, BAD]), intervals=st.integers(2, 60))
def test_ages_that_go_over_the_threshold_every_other_time_do_not_make_it_flap(
    bad: tuple[float, ...], intervals: int
) -> None:
    around = [sample(*(bad if number % 2 == 0 else GOOD)) for number in range(intervals)]

    grades = walk(Standing(), around)

    assert Grade.HEALTHY not in grades


@given(samples=SAMPLES)
def test_whatever_went_before_three_good_intervals_make_it_healthy(samples: list[Sample]) -> None:
    grades = walk(Standing(), [*samples, sample(1.0), sample(1.0), sample(1.0)])

    assert grades[-1] is Grade.HEALTHY


@given(ages=AGES, paused=st.integers(0, 50))
def test_those_who_rest_beside_others_make_it_no_worse_than_degraded(ages: list[float], paused: int) -> None:
    without, with_them = level_of(sample(*ages)), level_of(sample(*ages, paused=paused))

    assert with_them in (without, max(without, Level.OLD))


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
        # Nobody has to have read it.
        (a_record(polled=9000, status=MatchStatus.UPCOMING), Grade.HEALTHY),
        (a_record(polled=9000, status=MatchStatus.COMPLETED), Grade.HEALTHY),
        (a_record(polled=9000, phase=Phase.PAUSED), Grade.DEGRADED),
        (msgspec.structs.replace(a_record(polled=9000, phase=Phase.PAUSED), is_on_hold=True), Grade.HEALTHY),
        (a_record(polled=None), Grade.HEALTHY),
    ],
)
def test_a_match_is_graded_by_its_failures_and_its_age(record: MonitoringRecord, grade: Grade) -> None:
    assert match_grade(record, MOMENT) is grade


def test_a_clock_that_was_set_back_makes_no_match_worse() -> None:
    assert match_grade(a_record(polled=1), Moment(NOW - timedelta(hours=1), 0.0)) is Grade.HEALTHY


@pytest.mark.req("NFR-005")
@pytest.mark.parametrize("leap", [timedelta(hours=1), timedelta(hours=-1)])
def test_no_leap_of_the_wall_clock_makes_a_match_older_or_younger(leap: timedelta) -> None:
    read, unread = (msgspec.structs.replace(a_record(polled=1), last_poll_monotonic=each) for each in (999.0, 600.0))

    grades = [match_grade(record, Moment(NOW + leap, 1000.0)) for record in (read, unread)]

    assert grades == [Grade.HEALTHY, Grade.FAILING]
