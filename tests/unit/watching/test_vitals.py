"""What a watch remembers, and what follows from it."""

from datetime import timedelta
from typing import Any

import pytest

from longstop.clock import Moment
from longstop.errors import FetchTimeout, PageNotFound
from longstop.model.match import MatchStatus, Phase, SyncState
from longstop.pipeline.effort import Effort
from longstop.pipeline.state import MatchState
from longstop.storage.base import Finding, FindingKind
from longstop.watching.cadence import Why
from longstop.watching.pulse import SHUT_OUT
from longstop.watching.restarts import RestartReason
from longstop.watching.rules import WatchRules
from longstop.watching.vitals import Vitals
from tests.builders import NOW, board, match_row, match_state, score

OLDER, NEWER = board(first=score("12/1 2.3")), board(first=score("13/1 2.4"))
FINAL = WatchRules(important=("final",))
#: Monotonic clocks do not begin at zero.
START = 1000.0


def _at(seconds: float) -> Moment:
    return Moment(NOW + timedelta(seconds=seconds), START + seconds)


def _state(title: str = "T1 vs T2 - T20", **row: Any) -> MatchState:
    teams = {"T1": "Reds", "T2": "Blues"}
    return match_state(row=match_row(title=title, **row), sync=SyncState.IN_SYNC, board=NEWER, teams=teams)


class Watch:
    """The vitals of a match, and what happens to it."""

    def __init__(self, state: MatchState | None = None, rules: WatchRules | None = None) -> None:
        self.state = state or _state()
        self.vitals = Vitals(self.state.row, rules or WatchRules(), _at(0))
        self.vitals.listed = NEWER

    def look(self, at: float, *, is_news: bool = False, took: float = 0.0, state: MatchState | None = None) -> None:
        self.vitals.begin_look(_at(at))
        self.vitals.looked(state or self.state, Effort(), _at(at), _at(at + took), is_news=is_news)

    def fail(self, at: float, error: FetchTimeout | PageNotFound | None = None) -> None:
        effort, met = Effort(), error or FetchTimeout("30 s")
        effort.failed(met)
        self.vitals.begin_look(_at(at))
        self.vitals.failed(met, effort, _at(at))

    def is_due(self, at: float, *, is_news: bool = False, at_least: float = 0.0) -> bool:
        return self.vitals.is_due(self.state, _at(at), is_news=is_news, at_least=at_least)

    def pause(self, at: float) -> None:
        for _ in range(5):
            permit = self.vitals.breaker.permit(START + at)
            assert permit is not None
            self.vitals.breaker.fail(permit, START + at)
        self.vitals.paused()


# --- when to look ---------------------------------------------------------------------------------------------------


def test_a_match_is_due_at_its_tempo_be_the_last_look_good_or_bad() -> None:
    watch = Watch()
    assert watch.is_due(0)
    watch.look(10)
    assert (watch.is_due(11), watch.is_due(12.5)) == (False, True)

    watch.fail(20)

    assert (watch.is_due(21), watch.is_due(22.5)) == (False, True)


def test_a_match_is_not_due_sooner_than_the_caller_wants() -> None:
    watch = Watch()
    assert watch.is_due(0, at_least=10)
    watch.look(10)

    assert (watch.is_due(19, at_least=10), watch.is_due(20, at_least=10)) == (False, True)


@pytest.mark.req("EC3")
def test_a_page_that_was_not_found_rests_for_a_minute_whatever_the_list_shows() -> None:
    watch = Watch()
    watch.fail(10, PageNotFound("404"))

    watch.vitals.missing(_at(10))

    assert not watch.is_due(69, is_news=True)
    assert watch.is_due(70)
    assert watch.vitals.record(watch.state, _at(11)).not_before == NOW + timedelta(seconds=70)


def test_a_good_look_ends_the_rest_of_a_page_that_was_not_found() -> None:
    watch = Watch()
    watch.vitals.missing(_at(10))

    watch.look(12)

    assert watch.is_due(15)
    assert watch.vitals.pulse.absence.times == 0


@pytest.mark.req("US2.2")
def test_a_match_whose_breaker_is_open_is_not_due_until_it_has_rested() -> None:
    watch = Watch()

    watch.pause(10)

    assert (watch.is_due(309, is_news=True), watch.is_due(310)) == (False, True)
    assert watch.vitals.record(watch.state, _at(10)).not_before == NOW + timedelta(seconds=310)


def test_a_look_that_was_held_back_is_a_try_and_nothing_else() -> None:
    watch = Watch()
    watch.look(0)

    watch.vitals.held(SHUT_OUT, _at(10))

    record = watch.vitals.record(watch.state, _at(10))
    assert (watch.is_due(11), watch.is_due(12.5)) == (False, True)
    assert (record.consecutive_failures, record.total_failures, record.last_error) == (0, 0, None)


@pytest.mark.req("FR-025")
def test_an_important_match_is_told_by_a_word_of_its_title_whatever_its_case() -> None:
    final, friendly = _state("T1 vs T2 - World Cup FINAL"), _state("T1 vs T2 - friendly")

    assert Watch(final, FINAL).vitals.tempo(final, _at(0)).why is Why.IMPORTANT
    assert Watch(friendly, FINAL).vitals.tempo(friendly, _at(0)).why is Why.BASELINE
    assert Watch(final).vitals.tempo(final, _at(0)).why is Why.BASELINE


# --- whole looks and second witnesses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "is_revisited"),
    [
        ({"findings": (Finding(kind=FindingKind.MISMATCH, place="1", detail="2 runs"),)}, True),
        ({"teams": {}}, True),  # names that were late
        ({}, False),
    ],
)
def test_what_is_open_about_a_match_is_looked_into_by_whole_looks_further_and_further_apart(
    changes: dict[str, Any], is_revisited: bool
) -> None:
    fields = {"row": match_row(), "sync": SyncState.IN_SYNC, "board": NEWER, "teams": {"T1": "Reds", "T2": "Blues"}}
    watch, whole = Watch(match_state(**{**fields, **changes})), list[int]()

    for second in range(100):
        if watch.vitals.wants_whole(watch.state, _at(second)):
            whole.append(second)
        watch.look(second)

    assert whole == ([10, 30, 70] if is_revisited else [])


def test_once_nothing_is_open_the_distances_begin_anew() -> None:
    finding = Finding(kind=FindingKind.MISMATCH, place="1", detail="2 runs")
    open_, closed = match_state(findings=(finding,), board=NEWER, teams={"T1": "R", "T2": "B"}), _state()
    watch = Watch(closed)
    watch.look(0, state=open_)
    watch.look(10, state=open_)

    watch.look(20, state=closed)
    watch.look(30, state=open_)

    assert not watch.vitals.wants_whole(open_, _at(39))
    assert watch.vitals.wants_whole(open_, _at(40))


@pytest.mark.req("FLD-8")
def test_a_finished_match_wants_a_whole_look_two_hours_after_its_end() -> None:
    over = _state(status=MatchStatus.COMPLETED, phase=Phase.COMPLETED, completed_at=NOW)
    watch = Watch(over)
    watch.vitals.read_whole_at = NOW

    before, due = (watch.vitals.wants_whole(over, _at(hours * 3600)) for hours in (1.9, 2.0))
    watch.vitals.read_whole_at = NOW + timedelta(hours=2)

    assert (before, due, watch.vitals.wants_whole(over, _at(2.1 * 3600))) == (False, True, False)


@pytest.mark.req("MON-1")
def test_a_match_that_has_been_over_for_a_day_and_was_read_once_more_may_be_put_away() -> None:
    row = match_row(status=MatchStatus.COMPLETED, phase=Phase.COMPLETED, completed_at=NOW)
    watch = Watch()

    before = watch.vitals.may_be_archived(row, _at(24 * 3600))
    watch.vitals.read_whole_at = NOW + timedelta(hours=24)

    assert (before, watch.vitals.may_be_archived(row, _at(24 * 3600))) == (False, True)


def test_only_a_match_in_play_needs_a_second_witness_of_its_standing_still() -> None:
    live = Watch()
    resting = Watch(match_state(board=board(status=MatchStatus.BREAK)))
    unseen = Watch(match_state())

    wanted = [watch.vitals.wants_check(watch.state, _at(61)) for watch in (live, resting, unseen)]

    assert wanted == [True, False, False]


# --- age ------------------------------------------------------------------------------------------------------------


def test_before_the_first_look_a_match_is_as_old_as_its_last_stored_change() -> None:
    watch = Watch(_state(updated_at=NOW - timedelta(hours=1)))

    assert watch.vitals.record(watch.state, _at(0)).last_poll_at == NOW - timedelta(hours=1)


def test_a_look_makes_a_match_as_young_as_its_question() -> None:
    watch = Watch()

    watch.look(10, took=7)

    assert watch.vitals.last_poll_at == NOW + timedelta(seconds=10)


def test_a_match_whose_pages_are_frozen_gets_no_younger_neither_by_looks_nor_by_lines() -> None:
    watch = Watch(match_state(board=OLDER, sync=SyncState.IN_SYNC))
    watch.look(10)
    for line in (board(first=score("14/1 2.5"), fingerprint="moved"), NEWER):
        watch.vitals.heard_of(line)
    for second in range(20, 100, 10):
        watch.look(second)

    watch.vitals.saw_line(OLDER, _at(100), _at(100))

    record = watch.vitals.record(watch.state, _at(100))
    assert record.last_poll_at == NOW + timedelta(seconds=30)  # the last one that may have been a cache
    assert record.frozen_since == NOW + timedelta(seconds=10)


def test_a_line_makes_a_match_as_young_as_the_listing() -> None:
    watch = Watch()

    watch.vitals.saw_line(NEWER, _at(5), _at(6))

    assert watch.vitals.last_poll_at == NOW + timedelta(seconds=5)
    assert watch.vitals.pulse.rhythm.unchanged == 1


# --- restarts -------------------------------------------------------------------------------------------------------


@pytest.mark.req("FR-001")
def test_a_match_in_play_that_makes_no_progress_is_begun_anew_and_then_given_its_time() -> None:
    watch = Watch()
    row = watch.state.row
    assert watch.vitals.restart_reason(row, _at(300), is_looking=False) is None
    assert watch.vitals.restart_reason(row, _at(301), is_looking=False) is RestartReason.STALE

    watch.vitals.restarted(_at(301))

    assert watch.vitals.restart_reason(row, _at(601), is_looking=False) is None
    assert watch.is_due(301)
    assert watch.vitals.record(watch.state, _at(301)).restarts == 1


@pytest.mark.req("FR-025")
def test_an_important_match_is_stale_in_half_the_time() -> None:
    watch = Watch(_state("the final"), FINAL)

    assert watch.vitals.restart_reason(watch.state.row, _at(150), is_looking=False) is None
    assert watch.vitals.restart_reason(watch.state.row, _at(151), is_looking=False) is RestartReason.STALE


@pytest.mark.parametrize("status", [MatchStatus.UPCOMING, MatchStatus.COMPLETED])
def test_a_match_that_is_not_in_play_is_never_stale(status: MatchStatus) -> None:
    watch = Watch(_state(status=status))

    assert watch.vitals.restart_reason(watch.state.row, _at(3600), is_looking=False) is None


def test_a_long_look_whose_answers_keep_coming_is_not_a_dead_one() -> None:
    watch = Watch()
    watch.vitals.begin_look(_at(0))

    for answers in range(1, 10):
        watch.vitals.progressed(answers, watch.state.row, _at(answers * 100.0))
        assert watch.vitals.restart_reason(watch.state.row, _at(answers * 100.0), is_looking=True) is None
    watch.vitals.progressed(9, watch.state.row, _at(1201))

    assert watch.vitals.restart_reason(watch.state.row, _at(1201), is_looking=True) is RestartReason.STALE


@pytest.mark.parametrize(("title", "patience"), [("T1 vs T2", 300.0), ("the final", 150.0)])
def test_a_look_without_an_answer_for_so_long_is_held_back_by_nobody(title: str, patience: float) -> None:
    watch = Watch(_state(title), FINAL)
    watch.vitals.held(SHUT_OUT, _at(10))
    watch.vitals.begin_look(_at(400))

    watch.vitals.progressed(0, watch.state.row, _at(400 + patience))
    assert watch.vitals.record(watch.state, _at(400 + patience)).is_held
    assert watch.vitals.restart_reason(watch.state.row, _at(400 + patience), is_looking=True) is None
    watch.vitals.progressed(0, watch.state.row, _at(401 + patience))

    assert not watch.vitals.record(watch.state, _at(401 + patience)).is_held
    assert watch.vitals.restart_reason(watch.state.row, _at(401 + patience), is_looking=True) is RestartReason.STALE


@pytest.mark.req("FR-001")
def test_the_eleventh_failure_in_a_row_begins_a_watch_anew() -> None:
    watch = Watch()
    for second in range(10):
        watch.fail(second)
    assert watch.vitals.restart_reason(watch.state.row, _at(10), is_looking=False) is None

    watch.fail(10)

    assert watch.vitals.restart_reason(watch.state.row, _at(10), is_looking=False) is RestartReason.ERRORS


@pytest.mark.req("US2.2")
def test_a_paused_match_is_begun_anew_once_when_it_has_rested_and_not_for_being_stale() -> None:
    watch = Watch(_state(phase=Phase.PAUSED))
    watch.pause(0)

    resting = watch.vitals.restart_reason(watch.state.row, _at(299), is_looking=False)
    rested = watch.vitals.restart_reason(watch.state.row, _at(301), is_looking=False)
    watch.vitals.restarted(_at(301))

    assert (resting, rested) == (None, RestartReason.COOL_DOWN)
    assert watch.vitals.restart_reason(watch.state.row, _at(302), is_looking=False) is None


def test_a_match_found_paused_at_the_start_is_looked_at_without_a_restart() -> None:
    watch = Watch(_state(phase=Phase.PAUSED))

    assert watch.is_due(0)
    assert watch.vitals.restart_reason(watch.state.row, _at(0), is_looking=False) is None


# --- what is shown --------------------------------------------------------------------------------------------------


@pytest.mark.req("MON-3")
def test_the_record_shows_how_it_goes() -> None:
    watch = Watch()
    watch.look(10, is_news=True)
    watch.vitals.saw_line(NEWER, _at(12), _at(12))
    watch.fail(15)

    record = watch.vitals.record(watch.state, _at(20))

    assert (record.total_polls, record.total_failures, record.consecutive_failures) == (2, 1, 1)
    assert record.last_error == "FetchTimeout: 30 s"
    assert record.last_attempt_at == NOW + timedelta(seconds=15)
    assert record.last_poll_at == NOW + timedelta(seconds=12)
    assert record.changed_at == NOW + timedelta(seconds=10)
    assert (record.interval_seconds, record.tempo, record.is_important) == (2.5, "baseline", False)
    assert (record.not_before, record.frozen_since) == (None, None)


def test_a_good_look_clears_the_last_error_and_keeps_the_count() -> None:
    watch = Watch()
    watch.fail(5)

    watch.look(10)

    record = watch.vitals.record(watch.state, _at(10))
    assert (record.last_error, record.consecutive_failures, record.total_failures) == (None, 0, 1)


@pytest.mark.req("NFR-005")
@pytest.mark.parametrize("leap", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_match_is_as_old_as_it_is_whatever_the_wall_clock_did_since(leap: timedelta) -> None:
    watch = Watch()
    watch.look(10)
    later = Moment(NOW + leap, START + 15)

    record = watch.vitals.record(watch.state, later)

    assert (record.age_at(later), watch.vitals.age_at(later)) == (5.0, 5.0)


# --- what a former life has left ------------------------------------------------------------------------------------


def test_until_the_first_look_the_age_counts_from_the_last_one_of_a_former_life_whatever_the_wall_clock_did() -> None:
    row = _state(updated_at=NOW - timedelta(minutes=40)).row
    former = Moment(NOW - timedelta(seconds=5), START - 5)

    vitals = Vitals(row, WatchRules(), _at(0), former)

    leapt = Moment(NOW + timedelta(hours=1), START + 2)
    assert vitals.last_poll_at == former.wall
    assert vitals.age_at(leapt) == 7


def test_a_change_that_was_stored_after_the_last_look_that_was_shown_is_the_younger_moment() -> None:
    row = _state(updated_at=NOW - timedelta(seconds=1)).row

    vitals = Vitals(row, WatchRules(), _at(0), Moment(NOW - timedelta(seconds=5), START - 5))

    assert vitals.last_poll_at == row.updated_at
    assert vitals.age_at(_at(0)) == 1
