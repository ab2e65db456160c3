"""The polling state of a feed, and its decisions."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from longstop.clock import Moment
from longstop.errors import FetchTimeout, PageNotFound, SourceError, WrongMatch
from longstop.model.data_finding import Finding, FindingKind
from longstop.model.match import MatchStatus, Phase
from longstop.model.polling_status import MonitoringRecord, SyncState
from longstop.sports.cricket.model import Board, CricketState
from longstop.watching.poll_intervals_and_frozen_pages import Behind, IntervalReason, RestartReason, WatchRules
from longstop.watching.polling_state_and_decisions import CHECK_AFTER, CONFIRMATIONS, SOURCE_WIDE, WatchState
from tests.builders import NOW, board, match_row, match_state, score

OLDER, NEWER = board(first=score("12/1 2.3")), board(first=score("13/1 2.4"))
FINAL = WatchRules(important=("final",))
#: Monotonic clocks do not begin at zero.
START = 1000.0


def _at(seconds: float) -> Moment:
    return Moment(NOW + timedelta(seconds=seconds), START + seconds)


def _match(title: str = "T1 vs T2 - T20", **row: Any) -> CricketState:
    teams = {"T1": "Reds", "T2": "Blues"}
    return match_state(row=match_row(title=title, **row), sync=SyncState.IN_SYNC, board=NEWER, teams=teams)


class Watch:
    """A match with its polling state."""

    def __init__(self, match: CricketState | None = None, rules: WatchRules | None = None) -> None:
        self.match = match or _match()
        starting = WatchState.starting(self.match.row, rules or WatchRules(), _at(0))
        self.state = replace(starting, listed=NEWER)

    def poll(self, at: float, *, is_news: bool = False, took: float = 0.0, match: CricketState | None = None) -> None:
        began, now = _at(at), _at(at + took)
        self.state = self.state.poll_started(began).after_poll(
            match or self.match, began, now, errors=0, is_news=is_news, is_full=False
        )

    def fail(self, at: float, error: SourceError | None = None) -> None:
        self.state = self.state.poll_started(_at(at)).after_failure(error or FetchTimeout("30 s"), _at(at), errors=1)

    def is_due(self, at: float, *, is_news: bool = False, minimum: float = 0.0) -> bool:
        return self.state.is_due(self.match, _at(at), is_news=is_news, minimum=minimum)

    def restart_reason(self, now: Moment, *, is_polling: bool) -> RestartReason | None:
        return self.state.restart_reason(self.match.row, now, is_polling=is_polling)

    def record(self, now: Moment) -> MonitoringRecord:
        return self.state.record(self.match, now)

    def pause(self, at: float) -> None:
        """Pause the match as its breaker does."""
        self.state = self.state.paused(START + at + self.state.rules.breaker.open_seconds)


# --- when to look ---------------------------------------------------------------------------------------------------


def test_a_match_is_due_at_its_interval_be_the_last_poll_good_or_bad() -> None:
    watch = Watch()
    assert watch.is_due(0)
    watch.poll(10)
    assert (watch.is_due(11), watch.is_due(12.5)) == (False, True)

    watch.fail(20)

    assert (watch.is_due(21), watch.is_due(22.5)) == (False, True)


@pytest.mark.parametrize("status", [MatchStatus.UPCOMING, MatchStatus.LIVE, MatchStatus.COMPLETED])
def test_a_match_that_is_not_believed_is_polled_every_five_seconds_and_later_every_twenty(status: MatchStatus) -> None:
    watch = Watch(_match(status=status))

    for at in range(0, 50, 5):
        watch.fail(at, WrongMatch("the page is of another match"))
    assert not watch.is_due(45 + 2.5, is_news=True)
    assert watch.is_due(50)
    watch.fail(50, WrongMatch("the page is of another match"))

    assert not watch.is_due(50 + 15, is_news=True)
    assert watch.is_due(50 + 20)


def test_a_finished_match_that_awaits_a_confirmation_is_polled_as_in_play() -> None:
    watch = Watch(replace(_match(status=MatchStatus.COMPLETED), suspects=frozenset({"delivery:1:0:1 void"})))
    watch.poll(0)

    assert watch.is_due(2.5)


def test_a_break_does_not_delay_a_confirmation() -> None:
    quiet = _match(status=MatchStatus.BREAK)
    watch = Watch(quiet)
    for at in range(0, 60, 5):
        watch.poll(at)
    watch.match = replace(quiet, suspects=frozenset({"delivery:1:0:1 void"}))

    assert watch.is_due(55 + 2.5)


def test_a_match_is_not_due_sooner_than_the_caller_wants() -> None:
    watch = Watch()
    assert watch.is_due(0, minimum=10)
    watch.poll(10)

    assert (watch.is_due(19, minimum=10), watch.is_due(20, minimum=10)) == (False, True)


@pytest.mark.req("EC3")
def test_a_missing_page_is_not_polled_for_a_minute_whatever_the_list_shows() -> None:
    watch = Watch()
    watch.fail(10, PageNotFound("404"))

    watch.state = watch.state.after_missing(_at(10))

    assert not watch.is_due(69, is_news=True)
    assert watch.is_due(70)
    assert watch.record(_at(11)).not_before == NOW + timedelta(seconds=70)


def test_a_good_poll_ends_the_rest_of_a_page_that_was_not_found() -> None:
    watch = Watch()
    watch.state = watch.state.after_missing(_at(10))

    watch.poll(12)

    assert watch.is_due(15)
    assert watch.state.missing == 0


@pytest.mark.req("US2.2")
def test_a_match_whose_breaker_is_open_is_not_due_until_it_has_cooled_down() -> None:
    watch = Watch()

    watch.pause(10)

    assert (watch.is_due(309, is_news=True), watch.is_due(310)) == (False, True)
    assert watch.record(_at(10)).not_before == NOW + timedelta(seconds=310)


def test_a_signal_of_change_is_followed_at_once_but_not_while_the_match_is_paused() -> None:
    watch = Watch()
    watch.poll(10)

    at_once = watch.state.signalled_poll_at(watch.match, _at(20))

    assert at_once == START + 20
    assert watch.state.paused(START + 21).signalled_poll_at(watch.match, _at(20)) is None
    assert watch.state.after_missing(_at(20)).signalled_poll_at(watch.match, _at(79)) is None


def test_a_poll_that_was_postponed_is_a_try_and_nothing_else() -> None:
    watch = Watch()
    watch.poll(0)

    watch.state = watch.state.after_postponed(SOURCE_WIDE, _at(10))

    record = watch.record(_at(10))
    assert (watch.is_due(11), watch.is_due(12.5)) == (False, True)
    assert (record.consecutive_failures, record.total_failures, record.last_error) == (0, 0, None)


@pytest.mark.req("FR-025")
def test_an_important_match_is_reported_by_a_word_of_its_title_whatever_its_case() -> None:
    final, friendly = _match("T1 vs T2 - World Cup FINAL"), _match("T1 vs T2 - friendly")

    assert Watch(final, FINAL).state.interval(final, _at(0)).reason is IntervalReason.IMPORTANT
    assert Watch(friendly, FINAL).state.interval(friendly, _at(0)).reason is IntervalReason.BASELINE
    assert Watch(final).state.interval(final, _at(0)).reason is IntervalReason.BASELINE


@pytest.mark.req("EC3")
def test_only_a_listing_read_since_the_page_was_first_missing_confirms_that_a_match_is_gone() -> None:
    state = _start().after_listing(None)
    for now in (0.0, 60.0, 120.0):
        state = state.after_missing(_moment(now))

    assert not state.is_gone()
    assert state.after_listing(None).is_gone()
    assert not state.after_listing(NEWER).is_gone()


@pytest.mark.req("EC3")
def test_404s_that_an_operator_provokes_within_seconds_count_as_one() -> None:
    state = _start()
    for now in (0.0, 1.0, 2.0):
        state = replace(state.after_missing(_moment(now)), not_before=0.0).after_listing(None)

    assert state.missing == 1
    assert not state.is_gone()


# --- whole polls and second witnesses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "is_revisited"),
    [
        ({"findings": (Finding(kind=FindingKind.MISMATCH, place="1", detail="2 runs"),)}, True),
        ({"teams": {"T1": "Reds"}}, True),  # a name that is late
        ({}, False),
    ],
)
def test_what_is_open_about_a_match_is_checked_by_full_polls_further_and_further_apart(
    changes: dict[str, Any], is_revisited: bool
) -> None:
    fields = {"row": match_row(), "sync": SyncState.IN_SYNC, "board": NEWER, "teams": {"T1": "Reds", "T2": "Blues"}}
    watch, whole = Watch(match_state(**{**fields, **changes})), list[int]()

    for second in range(100):
        if watch.state.needs_full_poll(watch.match, _at(second)):
            whole.append(second)
        watch.poll(second)

    assert whole == ([10, 30, 70] if is_revisited else [])


def test_once_nothing_is_open_the_distances_restart() -> None:
    finding = Finding(kind=FindingKind.MISMATCH, place="1", detail="2 runs")
    open_, closed = match_state(findings=(finding,), board=NEWER, teams={"T1": "R", "T2": "B"}), _match()
    watch = Watch(closed)
    watch.poll(0, match=open_)
    watch.poll(10, match=open_)

    watch.poll(20, match=closed)
    watch.poll(30, match=open_)

    assert not watch.state.needs_full_poll(open_, _at(39))
    assert watch.state.needs_full_poll(open_, _at(40))


@pytest.mark.req("FLD-8")
def test_a_finished_match_wants_a_full_poll_two_hours_after_its_end() -> None:
    over = _match(status=MatchStatus.COMPLETED, phase=Phase.COMPLETED, completed_at=NOW)
    watch = Watch(over)
    watch.state = replace(watch.state, full_poll_at=NOW)

    before, due = (watch.state.needs_full_poll(over, _at(hours * 3600)) for hours in (1.9, 2.0))
    watch.state = replace(watch.state, full_poll_at=NOW + timedelta(hours=2))

    assert (before, due, watch.state.needs_full_poll(over, _at(2.1 * 3600))) == (False, True, False)


@pytest.mark.req("MON-1")
def test_a_match_that_has_been_over_for_a_day_and_was_read_once_more_may_be_archived() -> None:
    over = _match(status=MatchStatus.COMPLETED, phase=Phase.COMPLETED, completed_at=NOW)
    doubted = replace(over, suspects=frozenset({"delivery:1:0:1 void"}))
    watch = Watch()

    before = watch.state.may_be_archived(over, _at(24 * 3600))
    watch.state = replace(watch.state, full_poll_at=NOW + timedelta(hours=24))

    after = (watch.state.may_be_archived(each, _at(24 * 3600)) for each in (over, doubted))
    assert (before, *after) == (False, True, False)


def test_only_a_match_in_play_needs_a_second_witness_of_its_standing_still() -> None:
    live = Watch()
    paused = Watch(match_state(board=board(status=MatchStatus.BREAK)))
    unseen = Watch(match_state())

    wanted = [watch.state.needs_check(watch.match, _at(61)) for watch in (live, paused, unseen)]

    assert wanted == [True, False, False]


# --- age ------------------------------------------------------------------------------------------------------------


def test_before_the_first_poll_a_match_is_as_old_as_its_last_stored_change() -> None:
    watch = Watch(_match(updated_at=NOW - timedelta(hours=1)))

    assert watch.record(_at(0)).last_poll_at == NOW - timedelta(hours=1)


def test_a_poll_makes_a_match_as_young_as_its_question() -> None:
    watch = Watch()

    watch.poll(10, took=7)

    assert watch.record(_at(10)).last_poll_at == NOW + timedelta(seconds=10)


def test_a_match_whose_pages_are_frozen_gets_no_younger_neither_by_polls_nor_by_lines() -> None:
    watch = Watch(match_state(board=OLDER, sync=SyncState.IN_SYNC))
    watch.poll(10)
    for line in (board(first=score("14/1 2.5"), fingerprint="moved"), NEWER):
        watch.state = watch.state.after_listing(line)
    for second in range(20, 100, 10):
        watch.poll(second)

    watch.state = watch.state.after_entry(OLDER, _at(100), _at(100))

    record = watch.record(_at(100))
    assert record.last_poll_at == NOW + timedelta(seconds=30)  # the last one that may have been a cache
    assert record.frozen_since == NOW + timedelta(seconds=10)


def test_a_entry_makes_a_match_as_young_as_the_listing() -> None:
    watch = Watch()

    watch.state = watch.state.after_entry(NEWER, _at(5), _at(6))

    assert watch.record(_at(10)).last_poll_at == NOW + timedelta(seconds=5)
    assert watch.state.activity.news == (False,)


# --- restarts -------------------------------------------------------------------------------------------------------


@pytest.mark.req("FR-001")
def test_a_match_in_play_that_makes_no_progress_is_restarted_and_then_given_its_time() -> None:
    watch = Watch()
    assert watch.restart_reason(_at(300), is_polling=False) is None
    assert watch.restart_reason(_at(301), is_polling=False) is RestartReason.STALE

    watch.state = watch.state.restarted(_at(301))

    assert watch.restart_reason(_at(601), is_polling=False) is None
    assert watch.is_due(301)
    assert watch.record(_at(301)).restarts == 1


@pytest.mark.req("FR-025")
def test_an_important_match_is_stale_in_half_the_time() -> None:
    watch = Watch(_match("the final"), FINAL)

    assert watch.restart_reason(_at(150), is_polling=False) is None
    assert watch.restart_reason(_at(151), is_polling=False) is RestartReason.STALE


@pytest.mark.parametrize("status", [MatchStatus.UPCOMING, MatchStatus.COMPLETED])
def test_a_match_that_is_not_in_play_is_never_stale(status: MatchStatus) -> None:
    watch = Watch(_match(status=status))

    assert watch.restart_reason(_at(3600), is_polling=False) is None


def test_a_long_poll_whose_answers_keep_coming_is_not_a_dead_one() -> None:
    watch = Watch()
    watch.state = watch.state.poll_started(_at(0))

    for answers in range(1, 10):
        watch.state = watch.state.poll_progressed(answers, watch.match.row, _at(answers * 100.0))
        assert watch.restart_reason(_at(answers * 100.0), is_polling=True) is None
    watch.state = watch.state.poll_progressed(9, watch.match.row, _at(1201))

    assert watch.restart_reason(_at(1201), is_polling=True) is RestartReason.STALE


@pytest.mark.parametrize(("title", "patience"), [("T1 vs T2", 300.0), ("the final", 150.0)])
def test_a_poll_without_an_answer_for_so_long_is_not_postponed(title: str, patience: float) -> None:
    watch = Watch(_match(title), FINAL)
    watch.state = watch.state.after_postponed(SOURCE_WIDE, _at(10))
    watch.state = watch.state.poll_started(_at(400))

    watch.state = watch.state.poll_progressed(0, watch.match.row, _at(400 + patience))
    assert watch.record(_at(400 + patience)).is_held
    assert watch.restart_reason(_at(400 + patience), is_polling=True) is None
    watch.state = watch.state.poll_progressed(0, watch.match.row, _at(401 + patience))

    assert not watch.record(_at(401 + patience)).is_held
    assert watch.restart_reason(_at(401 + patience), is_polling=True) is RestartReason.STALE


@pytest.mark.req("FR-001")
def test_the_eleventh_failure_in_a_row_restarts_a_watch() -> None:
    watch = Watch()
    for second in range(10):
        watch.fail(second)
    assert watch.restart_reason(_at(10), is_polling=False) is None

    watch.fail(10)

    assert watch.restart_reason(_at(10), is_polling=False) is RestartReason.ERRORS


@pytest.mark.req("US2.2")
def test_a_paused_match_is_restarted_once_when_it_has_cooled_down_and_not_for_being_stale() -> None:
    watch = Watch(_match(phase=Phase.PAUSED))
    watch.pause(0)

    paused = watch.restart_reason(_at(299), is_polling=False)
    rested = watch.restart_reason(_at(301), is_polling=False)
    watch.state = watch.state.restarted(_at(301))

    assert (paused, rested) == (None, RestartReason.COOL_DOWN)
    assert watch.restart_reason(_at(302), is_polling=False) is None


def test_a_match_found_paused_at_the_start_is_polled_without_a_restart() -> None:
    watch = Watch(_match(phase=Phase.PAUSED))

    assert watch.is_due(0)
    assert watch.restart_reason(_at(0), is_polling=False) is None


# --- what is shown --------------------------------------------------------------------------------------------------


@pytest.mark.req("MON-3")
def test_the_record_shows_how_it_goes() -> None:
    watch = Watch()
    watch.poll(10, is_news=True)
    watch.state = watch.state.after_entry(NEWER, _at(12), _at(12))
    watch.fail(15)

    record = watch.record(_at(20))

    assert (record.total_polls, record.total_failures, record.consecutive_failures) == (2, 1, 1)
    assert record.last_error == "FetchTimeout: 30 s"
    assert record.last_attempt_at == NOW + timedelta(seconds=15)
    assert record.last_poll_at == NOW + timedelta(seconds=12)
    assert record.changed_at == NOW + timedelta(seconds=10)
    assert (record.interval_seconds, record.tempo, record.is_important) == (2.5, "baseline", False)
    assert (record.not_before, record.frozen_since) == (None, None)


def test_a_poll_without_news_does_not_move_the_last_change() -> None:
    watch = Watch()
    watch.poll(10, is_news=True)

    watch.poll(30)

    assert watch.record(_at(30)).changed_at == NOW + timedelta(seconds=10)


def test_a_good_poll_clears_the_last_error_and_keeps_the_count() -> None:
    watch = Watch()
    watch.fail(5)

    watch.poll(10)

    record = watch.record(_at(10))
    assert (record.last_error, record.consecutive_failures, record.total_failures) == (None, 0, 1)


@pytest.mark.req("NFR-005")
@pytest.mark.parametrize("leap", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_match_is_as_old_as_it_is_whatever_the_wall_clock_did_since(leap: timedelta) -> None:
    watch = Watch()
    watch.poll(10)
    later = Moment(NOW + leap, START + 15)

    record = watch.record(later)

    assert record.age_at(later) == 5.0


# --- what a former life has left ------------------------------------------------------------------------------------


def test_until_the_first_poll_the_age_counts_from_the_last_one_of_an_earlier_run_whatever_the_wall_clock_did() -> None:
    row = _match(updated_at=NOW - timedelta(minutes=40)).row
    former = Moment(NOW - timedelta(seconds=5), START - 5)

    state = WatchState.starting(row, WatchRules(), _at(0), former)

    leapt = Moment(NOW + timedelta(hours=1), START + 2)
    record = state.record(_match(), leapt)
    assert record.last_poll_at == former.wall
    assert record.age_at(leapt) == 7


def test_a_change_that_was_stored_after_the_last_poll_that_was_shown_is_the_younger_moment() -> None:
    row = _match(updated_at=NOW - timedelta(seconds=1)).row

    state = WatchState.starting(row, WatchRules(), _at(0), Moment(NOW - timedelta(seconds=5), START - 5))

    record = state.record(_match(), _at(0))
    assert record.last_poll_at == row.updated_at
    assert record.age_at(_at(0)) == 1


def test_the_age_after_a_restart_survives_a_jump_of_the_clock_though_the_last_poll_stored_a_change() -> None:
    asked = Moment(NOW - timedelta(seconds=5), START - 5)
    row = _match(updated_at=asked.wall + timedelta(seconds=0.2)).row

    leapt = Moment(NOW + timedelta(hours=1), START)
    state = WatchState.starting(row, WatchRules(), leapt, asked)

    assert state.record(_match(), leapt).age_at(leapt) == pytest.approx(4.8)


def test_a_change_stored_after_a_jump_of_the_clock_does_not_make_the_data_younger() -> None:
    asked = Moment(NOW - timedelta(seconds=5), START - 5)
    row = _match(updated_at=NOW + timedelta(hours=1)).row

    state = WatchState.starting(row, WatchRules(), _at(0), asked)

    assert state.record(_match(), _at(0)).age_at(_at(0)) == 5


# --- cycle by cycle ---------------------------------------------------------------------------------------------------


FROZEN_AFTER = 30.0
LIVE = match_row(status=MatchStatus.LIVE)


def _moment(monotonic: float) -> Moment:
    return Moment(NOW + timedelta(seconds=monotonic), monotonic)


def _start() -> WatchState:
    return WatchState.starting(LIVE, WatchRules(), _moment(0.0))


def _polled(
    state: WatchState,
    now: float,
    own: Board = NEWER,
    listed: Board | None = NEWER,
    *,
    is_news: bool = False,
    errors: int = 0,
) -> WatchState:
    match, at = match_state(row=LIVE, board=own), _moment(now)
    return replace(state, listed=listed).after_poll(match, at, at, errors=errors, is_news=is_news, is_full=False)


def _lined(state: WatchState, now: float) -> WatchState:
    return replace(state, listed=NEWER).after_entry(NEWER, _moment(now), _moment(now))


def _moved(state: WatchState) -> WatchState:
    """Return the state after the list has changed and the match's own page has not."""
    return replace(state, lag=state.lag.after_change(Behind.MATCH))


def _failed(state: WatchState, *moments: float, errors: int = 1) -> WatchState:
    for now in moments:
        state = state.after_failure(FetchTimeout("30 s"), _moment(now), errors=errors)
    return state


def test_a_good_poll_resets_the_age_of_a_match_and_forgets_its_failures() -> None:
    troubled = _failed(_start(), 1.0, 2.0).after_missing(_moment(2.0))

    state = _polled(troubled, 10.0)

    assert (state.accepted_at, state.tried_at, state.polled_at, state.failures, state.missing) == (
        10,
        10,
        10,
        0,
        0,
    )


def test_a_failed_poll_is_a_try_and_no_sign_of_life() -> None:
    state = _failed(_start(), 10.0)

    assert (state.accepted_at, state.tried_at, state.polled_at, state.failures) == (0, 10, 10, 1)
    assert state.activity == _start().activity


def test_failed_polls_without_an_error_of_the_site_neither_slow_a_match_nor_calm_it() -> None:
    slowed = _failed(_start(), 1.0, errors=5)

    state = slowed
    for now in range(2, 400):
        state = _failed(state, float(now), errors=0)

    assert state.backoff == slowed.backoff
    assert state.failures == 399


def test_a_poll_without_a_request_says_nothing_about_the_match() -> None:
    before = _failed(_start(), 10.0)

    held = before.after_postponed(SOURCE_WIDE, _moment(20.0))

    assert held.tried_at == 20.0
    assert (held.accepted_at, held.polled_at, held.failures, held.backoff) == (0.0, 10.0, 1, before.backoff)


def test_an_unchanged_entry_is_a_good_cycle_without_a_poll() -> None:
    state = _lined(_start(), 5.0)

    assert (state.accepted_at, state.tried_at, state.polled_at, state.activity.news) == (5.0, 5.0, 0.0, (False,))


def test_errors_on_the_way_of_a_good_poll_slow_it_like_any_others() -> None:
    state = _polled(_start(), 1.0, is_news=True, errors=5)

    assert state.backoff.factor == 2.0
    assert state.failures == 0


def test_a_match_whose_own_page_is_frozen_while_the_list_changes_gets_no_younger() -> None:
    state = _polled(_start(), 10.0, OLDER, NEWER)  # a cache, perhaps
    assert (state.is_outdated(10.0), state.accepted_at) == (False, 10.0)

    frozen = _polled(_moved(_moved(state)), 10.0 + FROZEN_AFTER, OLDER, NEWER)

    assert frozen.is_outdated(10.0 + FROZEN_AFTER)
    assert frozen.accepted_at == 10.0


def test_two_pages_that_differ_for_good_are_no_frozen_page() -> None:
    state = _start()

    for now in range(10, 400, 10):
        state = _polled(state, float(now), OLDER, NEWER)

    assert state.frozen(400.0) is None
    assert state.accepted_at == 390.0


def test_a_page_that_moves_though_it_is_behind_is_no_frozen_page() -> None:
    state = _start()

    for now in range(10, 400, 10):
        state = _polled(_moved(state), float(now), OLDER, NEWER, is_news=True)

    assert state.frozen(400.0) is None


def test_news_of_a_page_restarts_the_count_of_how_often_the_other_has_moved() -> None:
    ahead = _moved(_moved(_polled(_start(), 10.0, OLDER, NEWER)))
    assert ahead.is_outdated(50.0)

    once = _moved(_polled(ahead, 20.0, OLDER, NEWER, is_news=True))

    assert not once.is_outdated(50.0)
    assert _moved(once).is_outdated(50.0)


@pytest.mark.req("FR-001")
def test_a_frozen_page_makes_the_match_stale_and_its_watch_is_restarted() -> None:
    state = _start()

    for now in range(10, 400, 10):
        state = _polled(_moved(state), float(now), OLDER, NEWER)

    reason = state.restart_reason(LIVE, _moment(400.0), is_polling=False)
    assert reason is RestartReason.STALE


def test_a_list_that_is_behind_does_not_make_a_match_blind() -> None:
    state = _start()

    for now in (10.0, 50.0, 90.0):
        state = _polled(state, now, NEWER, OLDER)

    assert (state.lag.behind, state.is_outdated(90.0), state.accepted_at) == (Behind.LIST, False, 90.0)


def test_a_recovered_page_is_believed_at_once() -> None:
    frozen = _polled(_polled(_start(), 10.0, OLDER), 50.0, OLDER)

    resumed = _polled(frozen, 60.0, NEWER, is_news=True)

    assert not resumed.is_outdated(60.0)
    assert resumed.accepted_at == 60.0


def test_an_entry_that_is_frozen_for_a_minute_needs_a_second_sign() -> None:
    state, match = _polled(_start(), 100.0, is_news=True), match_state(row=LIVE, board=NEWER)
    for now in range(110, 160, 10):
        state = _lined(state, float(now))

    assert not state.needs_check(match, _moment(100.0 + CHECK_AFTER - 0.1))
    assert state.needs_check(match, _moment(100.0 + CHECK_AFTER))
    assert not _polled(state, 100.0 + CHECK_AFTER).needs_check(match, _moment(100.0 + CHECK_AFTER + 1.0))


def test_a_list_that_differs_for_good_is_no_frozen_one() -> None:
    state = _start()

    for now in range(10, 400, 10):
        state = _polled(state, float(now), NEWER, OLDER)

    assert state.frozen(400.0) is None


def test_a_list_that_does_not_change_while_the_match_does_is_frozen() -> None:
    state = _start()

    for now in range(10, 60, 10):
        state = _polled(state, float(now), NEWER, OLDER, is_news=True)

    frozen = state.frozen(60.0)
    assert frozen is not None
    assert frozen.behind is Behind.LIST


def test_two_witnesses_that_are_silent_for_ten_minutes_of_play_are_both_behind() -> None:
    state = _start()

    for now in range(10, 620, 10):
        state = _lined(state, float(now))

    assert (state.lag.behind, state.lag.since) == (Behind.BOTH, 600.0)


def test_a_watch_restarted_keeps_what_is_known_of_the_game_and_of_the_errors() -> None:
    before = _failed(_polled(_start(), 10.0, OLDER), *[float(now) for now in range(20, 31)])

    after = before.restarted(_moment(100.0))

    assert (after.started_at, after.accepted_at, after.tried_at, after.polled_at, after.failures) == (
        100.0,
        10.0,
        None,
        100.0,
        0,
    )
    assert (after.activity, after.backoff, after.lag) == (before.activity, before.backoff, before.lag)
    assert after.missing == before.missing
    assert after.backoff.factor > 1.0


@pytest.mark.parametrize(("progress_at", "counts"), [(5.0, 10.0), (20.0, 20.0)])
def test_the_last_sign_of_progress_is_a_good_poll_or_an_answer_within_one(progress_at: float, counts: float) -> None:
    polling = _polled(_start(), 10.0).poll_started(_moment(progress_at))

    assert not polling.is_stale(LIVE, _moment(counts + 300.0), is_polling=True)
    assert polling.is_stale(LIVE, _moment(counts + 300.1), is_polling=True)


# --- when "not found" means that a match is over ----------------------------------------------------------------------


APART = 60.0


def _missing_at(*moments: float) -> WatchState:
    """Return the state after 404s at these moments."""
    state = _start()
    for now in moments:
        state = state.after_missing(_moment(now))
    return state


@pytest.mark.req("EC3")
def test_a_match_is_gone_when_its_page_was_missing_three_times_a_minute_apart() -> None:
    assert not _missing_at(0, 60).after_listing(None).is_gone()
    assert _missing_at(0, 60, 120).after_listing(None).is_gone()


@pytest.mark.req("EC3")
def test_a_match_that_a_list_still_shows_is_not_gone_however_often_its_page_is_missing() -> None:
    assert not _missing_at(*range(0, 6000, 60)).after_listing(NEWER).is_gone()


@given(st.lists(st.floats(0, 59.9), max_size=50))
def test_a_burst_of_answers_within_a_minute_says_it_once(moments: list[float]) -> None:
    assert _missing_at(0.0, *sorted(moments)).missing == 1


@given(st.lists(st.floats(0.1, 200), max_size=50))
def test_a_match_is_never_gone_within_two_minutes(gaps: list[float]) -> None:
    state, now = _start(), 1000.0

    for gap in gaps:
        state, now = state.after_missing(_moment(now)), now + gap
        is_gone = state.after_listing(None).is_gone()
        assert now - gap - 1000.0 >= (CONFIRMATIONS - 1) * APART or not is_gone
