"""Breakers: one alone, and those of one source's hosts."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from longstop.resilience.breaker import (
    SLICES,
    TRANSITIONS,
    Breaker,
    BreakerPolicy,
    BreakerState,
    Consecutive,
    FailureShare,
    HostBreakers,
    HostPermit,
    Permit,
    Transition,
    match_policy,
    source_policy,
    target_policy,
)

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN


def _permit(breaker: Breaker, now: float) -> Permit:
    permit = breaker.permit(now)
    assert permit is not None
    return permit


def _fail(breaker: Breaker, times: int, now: float = 0.0) -> list[Transition]:
    reported = [breaker.fail(_permit(breaker, now), now) for _ in range(times)]
    return [each for each in reported if each is not None]


def _succeed(breaker: Breaker, times: int, now: float, seconds: float = 0.0) -> list[Transition]:
    reported = [breaker.succeed(_permit(breaker, now), now, seconds) for _ in range(times)]
    return [each for each in reported if each is not None]


# --- the three instances --------------------------------------------------------------------------------------------


@pytest.mark.req("FR-003")
def test_a_target_opens_after_five_failures_for_a_minute_and_closes_after_five_good_answers() -> None:
    breaker = Breaker(target_policy(), "crex")

    opened = _fail(breaker, 5, now=100)
    while_open = breaker.permit(159.9)
    closed = _succeed(breaker, 4, now=160), _succeed(breaker, 1, now=161)

    assert [(each.to, each.seconds, each.reason) for each in opened] == [(OPEN, 60, "5 failures in a row")]
    assert while_open is None
    assert closed == ([], [Transition(subject="crex", to=CLOSED, reason="5 successful probes", rejected=1)])


@pytest.mark.req("US2.2")
def test_a_match_opens_after_five_failures_within_ten_minutes_and_one_success_closes_it() -> None:
    breaker = Breaker(match_policy(), "crex")

    for now in (0, 200, 400, 600, 801):  # never five of them within ten minutes
        assert _fail(breaker, 1, now=now) == []
    opened = _fail(breaker, 2, now=802)[0]
    closed = _succeed(breaker, 1, now=1102)

    assert (opened.to, opened.seconds) == (OPEN, 300)
    assert [each.to for each in closed] == [CLOSED]


@pytest.mark.req("CAP-9")
def test_a_source_opens_at_35_percent_of_30_attempts_and_three_probes_close_it() -> None:
    breaker = Breaker(source_policy(), "crex")

    _succeed(breaker, 19, now=0)
    before = _fail(breaker, 10, now=300)  # 10 of 29: enough of a share, too few attempts
    opened = _fail(breaker, 1, now=301)
    closed = _succeed(breaker, 2, now=1201), _succeed(breaker, 1, now=1202)

    assert before == []
    assert [(each.to, each.seconds) for each in opened] == [(OPEN, 900)]
    assert opened[0].reason == "11 of 30 attempts failed within 600 s"
    assert closed[0] == []
    assert closed[1][0].to is CLOSED


def test_the_limits_themselves_count() -> None:
    match, source = Breaker(match_policy(), "crex"), Breaker(source_policy(), "crex")
    _fail(match, 4, now=0)
    _succeed(source, 26, now=0)
    below = _fail(source, 13, now=0)  # 13 of 39

    at_the_limit = _fail(match, 1, now=600), _fail(source, 1, now=0)  # 14 of 40 are just 35 %

    assert below == []
    assert [each.to for (each,) in at_the_limit] == [OPEN, OPEN]


def test_a_share_below_the_limit_never_opens() -> None:
    breaker = Breaker(source_policy(), "crex")

    for now in range(1000):
        _succeed(breaker, 2, now)
        assert _fail(breaker, 1, now) == []


# --- one by one -----------------------------------------------------------------------------------------------------


def test_a_success_between_failures_resets_the_count() -> None:
    breaker = Breaker(target_policy(), "crex")

    reported = [*_fail(breaker, 4), *_succeed(breaker, 1, 0), *_fail(breaker, 4)]

    assert reported == []
    assert breaker.state(0) is CLOSED


def test_a_good_answer_that_took_too_long_counts_as_a_failure() -> None:
    breaker = Breaker(target_policy(slow_seconds=8), "crex")

    fast_enough = _succeed(breaker, 5, 0, seconds=8.0)
    too_slow = _succeed(breaker, 5, 0, seconds=8.1)

    assert fast_enough == []
    assert [each.to for each in too_slow] == [OPEN]


def test_a_failure_while_half_open_opens_it_again_for_the_whole_time() -> None:
    breaker = Breaker(target_policy(), "crex")
    _fail(breaker, 5)
    _succeed(breaker, 4, 60)

    opened = _fail(breaker, 1, now=65)

    assert [(each.to, each.seconds, each.reason) for each in opened] == [(OPEN, 60, "a probe failed")]
    assert breaker.remaining(65) == 60
    assert breaker.permit(124.9) is None
    assert _succeed(breaker, 4, 125) == []  # the four of before no longer count


def test_the_number_of_concurrent_trials_is_bounded() -> None:
    breaker = Breaker(target_policy(), "crex")
    _fail(breaker, 5)

    permits = [breaker.permit(60) for _ in range(7)]

    assert [permit is None for permit in permits] == [False] * 5 + [True] * 2
    assert breaker.rejected == 2


def test_a_probe_that_is_given_back_makes_room_once() -> None:
    breaker = Breaker(match_policy(), "crex")
    _fail(breaker, 5)
    probe = _permit(breaker, 300)

    breaker.release(probe)
    breaker.release(probe)
    again = [breaker.permit(301) for _ in range(2)]

    assert [permit is None for permit in again] == [False, True]


def test_a_late_success_from_before_the_trip_does_not_help_to_close_it() -> None:
    breaker = Breaker(match_policy(), "crex")
    late = _permit(breaker, 0)
    _fail(breaker, 5)
    probe = _permit(breaker, 300)

    reported = breaker.succeed(late, 301)

    assert reported is None
    assert breaker.state(301) is HALF_OPEN
    assert breaker.permit(301) is None  # nor has it made room
    assert breaker.succeed(probe, 302) is not None


def test_a_late_failure_from_before_the_trip_opens_nothing_again() -> None:
    breaker = Breaker(match_policy(), "crex")
    late = [_permit(breaker, 0) for _ in range(5)]
    _fail(breaker, 5)
    _succeed(breaker, 1, 300)

    reported = [breaker.fail(permit, 301) for permit in late]

    assert reported == [None] * 5
    assert breaker.state(301) is CLOSED


def test_the_first_permit_carries_the_transition_to_half_open() -> None:
    breaker = Breaker(target_policy(), "crex")
    _fail(breaker, 5)

    first, second = _permit(breaker, 60), _permit(breaker, 60)

    assert first.transition == Transition(subject="crex", to=HALF_OPEN, reason="the pause is over")
    assert second.transition is None


def test_good_news_from_elsewhere_opens_it_by_half_before_its_time() -> None:
    breaker = Breaker(target_policy(), "crex")
    nothing_to_do = breaker.half_open("a canary succeeded")
    _fail(breaker, 5)

    woken = breaker.half_open("a canary succeeded")

    assert nothing_to_do is None
    assert woken is not None
    assert woken.to is HALF_OPEN
    assert breaker.permit(1) is not None
    assert breaker.half_open("a canary succeeded") is None


def test_closing_reports_the_requests_rejected_since_it_opened() -> None:
    breaker = Breaker(match_policy(open_seconds=10), "crex")
    _fail(breaker, 5)
    assert [breaker.permit(1) for _ in range(3)] == [None] * 3
    _fail(breaker, 1, now=10)
    assert breaker.permit(11) is None

    closed = _succeed(breaker, 1, 20)
    _fail(breaker, 5, now=30)
    closed_again = _succeed(breaker, 1, 40)

    assert [each.rejected for each in closed + closed_again] == [4, 0]
    assert breaker.rejected == 4


@pytest.mark.req("FR-003")
@pytest.mark.parametrize(("stored", "left"), [(20.0, 20.0), (1e9, 60.0), (0.0, 0.0), (-1e9, 0.0)])
def test_a_breaker_that_an_earlier_run_opened_stays_open_for_the_rest_and_never_longer_than_its_policy(
    stored: float, left: float
) -> None:
    breaker = Breaker(target_policy(), "crex.com")

    opened = breaker.reopen(100, stored, "5 failures in a row")

    assert opened == Transition(subject="crex.com", to=OPEN, reason="5 failures in a row", seconds=left)
    assert breaker.remaining(100) == left
    assert left == 0 or breaker.permit(100 + left - 0.1) is None
    assert _permit(breaker, 100 + left).transition is not None  # to half open: it has not closed
    assert [each.to for each in _succeed(breaker, 5, 100 + left)] == [CLOSED]


def test_a_share_remembers_no_more_than_its_slices_however_busy_the_site() -> None:
    breaker = Breaker(source_policy(), "crex")

    for second in range(3000):
        _succeed(breaker, 3, second)

    assert len(breaker._failures._slices) <= SLICES  # type: ignore[union-attr] # what it holds is the matter


def test_what_is_older_than_the_window_no_longer_counts() -> None:
    breaker = Breaker(source_policy(), "crex")
    _succeed(breaker, 20, now=0)
    _fail(breaker, 9, now=0)

    assert _fail(breaker, 20, now=601) == []
    assert breaker.state(601) is CLOSED


# --- against a model ------------------------------------------------------------------------------------------------


class Model:
    """A reference model of the breaker: it keeps everything and counts it again each time."""

    def __init__(self, policy: BreakerPolicy) -> None:
        self.policy = policy
        self.state = CLOSED
        self.until = 0.0
        self.length = policy.open_seconds
        #: Results since it last closed: when, and whether they were good.
        self.history: list[tuple[float, bool]] = []
        #: Permits that still mean something.
        self.valid: set[int] = set()
        self.good = 0
        self.rejected = 0

    def see(self, now: float) -> BreakerState:
        return HALF_OPEN if self.state is OPEN and now >= self.until else self.state

    def permit(self, number: int, now: float) -> bool:
        if self.see(now) is HALF_OPEN and self.state is OPEN:
            self.go(HALF_OPEN)
        if self.state is OPEN or (self.state is HALF_OPEN and len(self.valid) == self.policy.max_probes):
            self.rejected += 1
            return False
        self.valid.add(number)
        return True

    def reported(self, number: int, now: float, is_good: bool) -> None:
        if number not in self.valid:
            return
        self.valid.remove(number)
        if self.state is CLOSED:
            self.history.append((now, is_good))
            if not is_good and self.is_too_much(now):
                self.open(now, self.policy.open_seconds)
        elif not is_good:
            self.open(now, self.length)
        else:
            self.good += 1
            if self.good == self.policy.successes_to_close:
                self.go(CLOSED)
                self.history = []

    def is_too_much(self, now: float) -> bool:
        rule = self.policy.rule
        if isinstance(rule, Consecutive):
            last = self.history[-rule.threshold :]
            is_near = rule.within_seconds is None or now - last[0][0] <= rule.within_seconds
            return len(last) == rule.threshold and not any(good for _, good in last) and is_near
        width = rule.window_seconds / SLICES
        counted = [good for at, good in self.history if at // width > now // width - SLICES]
        return len(counted) >= rule.min_attempts and counted.count(False) / len(counted) >= rule.share

    def open(self, now: float, seconds: float) -> None:
        self.go(OPEN)
        self.until, self.length = now + seconds, seconds

    def go(self, to: BreakerState) -> None:
        assert to in TRANSITIONS[self.state]
        self.state, self.good, self.valid = to, 0, set()


POLICIES = st.builds(
    BreakerPolicy,
    rule=st.one_of(
        st.builds(Consecutive, threshold=st.integers(1, 4), within_seconds=st.sampled_from([None, 4.0])),
        # Slices of half a second, so that moments and slices are exact numbers.
        st.builds(FailureShare, window_seconds=st.just(10.0), min_attempts=st.integers(1, 6), share=st.just(0.5)),
    ),
    open_seconds=st.sampled_from([1.0, 5.0]),
    successes_to_close=st.integers(1, 4),
    max_probes=st.integers(1, 3),
    slow_seconds=st.sampled_from([None, 2.0]),
)


class BreakerMachine(RuleBasedStateMachine):
    """Any order of permits, answers, cancels and good news, at any distance."""

    permits = Bundle("permits")

    @initialize(policy=POLICIES)
    def begin(self, policy: BreakerPolicy) -> None:
        self.breaker, self.model, self.now = Breaker(policy, "crex"), Model(policy), 100.0
        self.asked = 0

    @rule(quarters=st.integers(1, 30))
    def wait(self, quarters: int) -> None:
        self.now += quarters / 4

    @rule(target=permits)
    def ask(self) -> tuple[int, Permit | None]:
        self.asked += 1
        permit = self.breaker.permit(self.now)
        assert (permit is not None) is self.model.permit(self.asked, self.now)
        return self.asked, permit

    @rule(asked=consumes(permits), seconds=st.sampled_from([0.0, 2.0, 3.0]))
    def succeed(self, asked: tuple[int, Permit | None], seconds: float) -> None:
        number, permit = asked
        if permit is not None:
            before = self.model.state
            reported = self.breaker.succeed(permit, self.now, seconds)
            slow = self.breaker.policy.slow_seconds
            self.model.reported(number, self.now, is_good=slow is None or seconds <= slow)
            self._check_transition(before, reported)

    @rule(asked=consumes(permits))
    def fail(self, asked: tuple[int, Permit | None]) -> None:
        number, permit = asked
        if permit is not None:
            before = self.model.state
            reported = self.breaker.fail(permit, self.now)
            self.model.reported(number, self.now, is_good=False)
            self._check_transition(before, reported)

    @rule(asked=consumes(permits))
    def cancel(self, asked: tuple[int, Permit | None]) -> None:
        number, permit = asked
        if permit is not None:
            self.breaker.release(permit)
            self.model.valid.discard(number)

    @rule()
    def good_news(self) -> None:
        reported, before = self.breaker.half_open("a canary succeeded"), self.model.state
        if before is OPEN:
            self.model.go(HALF_OPEN)
        self._check_transition(before, reported)

    @invariant()
    def they_agree(self) -> None:
        assert self.breaker.state(self.now) is self.model.see(self.now)
        assert self.breaker.rejected == self.model.rejected
        if self.model.see(self.now) is OPEN:
            assert self.breaker.remaining(self.now) == self.model.until - self.now > 0
        else:
            assert self.breaker.remaining(self.now) == 0

    def _check_transition(self, before: BreakerState, reported: Transition | None) -> None:
        assert (reported and reported.to) == (None if self.model.state is before else self.model.state)


BreakerMachine.TestCase.settings = settings(max_examples=300, stateful_step_count=60)
TestBreaker = BreakerMachine.TestCase


# --- the hosts of one source, and their canary -----------------------------------------------------------------------


CANARY_SECONDS = 2.5


def _targets(*broken: str, at: float = 0.0) -> HostBreakers:
    targets = HostBreakers(target_policy(), CANARY_SECONDS)
    for host in broken:
        for _ in range(5):
            targets.fail(_enter(targets, host, at), at)
    return targets


def _enter(targets: HostBreakers, host: str, now: float) -> HostPermit:
    permit = targets.enter(host, now)
    assert permit is not None
    return permit


def test_a_broken_host_opens_only_its_own_circuit() -> None:
    targets = _targets("a")

    assert targets.enter("a", 1) is None
    assert targets.enter("b", 1) is not None
    assert (targets.open_hosts(1), targets.remaining("a", 1)) == (("a",), 59)


@pytest.mark.req("FR-003")
def test_one_canary_goes_out_at_a_time_and_the_next_one_after_its_interval() -> None:
    targets = _targets("a")

    too_early = targets.enter("a", 2.4)
    canary = _enter(targets, "a", 2.5)
    meanwhile = targets.enter("a", 30)
    targets.fail(canary, 31)
    next_one = _enter(targets, "a", 31)
    targets.fail(next_one, 31.1)
    too_early_again = targets.enter("a", 33.4)

    assert (too_early, meanwhile, too_early_again) == (None, None, None)
    assert canary.permit is None
    assert next_one.permit is None
    assert targets.enter("a", 33.5) is not None


def test_all_hosts_of_a_source_share_one_canary() -> None:
    targets = _targets("a", "b")

    _enter(targets, "a", 3)

    assert targets.enter("b", 3) is None


@pytest.mark.req("FR-003")
def test_a_canary_that_comes_back_lets_all_hosts_be_tried_and_counts_as_the_first_good_answer() -> None:
    targets = _targets("a", "b")

    woken = targets.succeed(_enter(targets, "a", 3), 3.1, 0.1)
    own = [targets.succeed(_enter(targets, "a", 4), 4, 0.1) for _ in range(4)]
    other = [targets.succeed(_enter(targets, "b", 4), 4, 0.1) for _ in range(5)]

    assert [(move.subject, move.to) for move in woken] == [("a", HALF_OPEN), ("b", HALF_OPEN)]
    assert [len(moves) for moves in own] == [0, 0, 0, 1]
    assert [len(moves) for moves in other] == [0, 0, 0, 0, 1]
    assert own[-1][0].to is other[-1][0].to is CLOSED


def test_a_canary_can_close_a_host_that_needs_one_good_answer() -> None:
    targets = HostBreakers(target_policy(threshold=1, successes=1), CANARY_SECONDS)
    targets.fail(_enter(targets, "a", 0), 0)

    moves = targets.succeed(_enter(targets, "a", 3), 3, 0.1)

    assert [move.to for move in moves] == [HALF_OPEN, CLOSED]


def test_a_canary_that_fails_or_crawls_changes_nothing() -> None:
    targets = _targets("a")

    failed = targets.fail(_enter(targets, "a", 3), 4)
    crawled = targets.succeed(_enter(targets, "a", 6), 15, 9.0)

    assert (failed, crawled) == ((), ())
    assert targets.remaining("a", 15) == 45


def test_a_canary_that_is_cancelled_makes_room_for_another() -> None:
    targets = _targets("a")

    targets.release(_enter(targets, "a", 3))

    assert _enter(targets, "a", 5.5).permit is None


def test_an_old_canary_that_is_given_back_twice_does_not_make_room_for_a_third() -> None:
    targets = _targets("a")
    old = _enter(targets, "a", 3)
    targets.fail(old, 3)
    _enter(targets, "a", 6)

    targets.release(old)

    assert targets.enter("a", 9) is None


@pytest.mark.req("FR-003")
def test_without_a_canary_a_host_is_probed_after_its_pause_and_the_transition_is_reported() -> None:
    targets = _targets("a")

    permit = _enter(targets, "a", 60)

    assert permit.permit is not None
    assert [(move.subject, move.to) for move in permit.transitions] == [("a", HALF_OPEN)]


def test_a_canary_that_returns_after_the_pause_of_its_host_rejects_no_request() -> None:
    targets = _targets("a")
    canary = _enter(targets, "a", 59)
    probes = [_enter(targets, "a", 60) for _ in range(5)]

    moves = targets.succeed(canary, 61, 2.0)

    assert moves == ()
    assert all(targets.succeed(probe, 62, 2.0) == () for probe in probes[:4])
    (closed,) = targets.succeed(probes[4], 62, 2.0)
    assert (closed.to, closed.rejected) == (CLOSED, 0)


def test_a_host_that_opens_again_by_a_slow_answer_waits_for_its_canary_too() -> None:
    targets = _targets("a")
    moves = targets.succeed(_enter(targets, "a", 60), 69, 9.0)

    assert [move.to for move in moves] == [OPEN]
    assert targets.enter("a", 71) is None
    assert targets.enter("a", 71.5) is not None
