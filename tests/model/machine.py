"""The rules that both models share: what a scorer does, what a site does, and what breaks during a poll."""

import sys
from collections.abc import Callable
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from longstop.errors import BodyTruncated, FetchError, FetchTimeout, SourceFailed, SourceRefused
from longstop.sports.cricket.model import CricketKind, InningsSummary
from longstop.sports.cricket.totals_gaps_and_derived_events import pair_of
from tests.model.harness import CommitFault, Crash, ModelHarness
from tests.model.ledger import balls_of
from tests.model.sites import BREAK, RESULT, Site
from tests.model.truth import RUNS, Ball, Truth

VALUES = st.sampled_from(sorted(RUNS))
LEGAL = sorted(value for value, runs in RUNS.items() if runs.is_legal)
PLACE = st.floats(min_value=0, max_value=1, exclude_max=True)
BURST = st.lists(VALUES, min_size=1, max_size=30)
ERRORS = st.sampled_from(
    [
        FetchTimeout("too late"),
        SourceFailed("the site answered 503"),
        SourceRefused("the site answered 429"),
        BodyTruncated("half a page"),
    ]
)
#: More gone at once than this is refused as a broken feed, and has tests of its own.
MOST_GONE = 8
#: How many old pages a cache holds.
COPIES = 6
INNINGS = 4
#: Polls after which a site that behaves has been understood, whatever was before: a step back takes two.
SETTLING_POLLS = 4


class Capture(RuleBasedStateMachine):
    """A match that is scored, corrected, watched and disturbed in any order."""

    make_site: ClassVar[Callable[[], Site]]

    def __init__(self) -> None:
        super().__init__()
        site = type(self).make_site()
        self.harness = ModelHarness(site, Truth(site.people))
        self.copies: list[Truth] = []
        #: The last ball that was corrected, and what it was before.
        self.corrected: tuple[int, str] | None = None

    # --- what a scorer does ---

    @initialize(values=BURST)
    def begin(self, values: list[str]) -> None:
        self.burst(values)

    @rule(value=VALUES)
    def ball(self, value: str) -> None:
        self.burst([value])

    @rule(values=BURST)
    def burst(self, values: list[str]) -> None:
        self._keep_copy()
        for value in values:
            self.truth.bowl(value)

    @rule(place=PLACE, value=st.sampled_from(LEGAL))
    def correction(self, place: float, value: str) -> None:
        ball = self._ball_at(place)
        if ball.runs.is_legal:
            self._keep_copy()
            self.corrected = (ball.id, ball.value)
            self.truth.change(ball, value=value)

    @precondition(lambda self: self.corrected)
    @rule()
    def revert(self) -> None:
        """A → B → A."""
        assert self.corrected
        id_, value = self.corrected
        ball = next((each for each in self.truth.balls if each.id == id_), None)
        if ball is not None:
            self._keep_copy()
            self.corrected = (id_, ball.value)
            self.truth.change(ball, value=value)

    @rule(place=PLACE)
    def void(self, place: float) -> None:
        self._remove(self._ball_at(place))

    @rule()
    def void_newest(self) -> None:
        self._remove(self.truth.balls[-1])

    @rule(place=PLACE, value=VALUES)
    def late_insertion(self, place: float, value: str) -> None:
        self._keep_copy()
        self.truth.insert(self._ball_at(place), value)

    @rule(place=PLACE)
    def wicket(self, place: float) -> None:
        ball = self._ball_at(place)
        if self.truth.may_fall(ball.innings):
            self._keep_copy()
            self.truth.change(ball, is_out=True)

    @rule(place=PLACE)
    def wicket_overturned(self, place: float) -> None:
        fallen = [ball for ball in self.truth.balls if ball.is_out]
        if fallen:
            self._keep_copy()
            self.truth.change(fallen[int(place * len(fallen))], is_out=False)

    @precondition(lambda self: self.truth.innings < INNINGS and not self.truth.headline and self._has_begun)
    @rule()
    def innings_end(self) -> None:
        self._keep_copy()
        self.truth.headline = BREAK
        self.truth.innings += 1

    @precondition(lambda self: self.truth.headline)
    @rule()
    def words_go(self) -> None:
        """The site takes its words back, before the next ball or after a result that was none."""
        self.truth.headline = ""

    @precondition(lambda self: not self.truth.headline and self._has_begun)
    @rule()
    def result(self) -> None:
        self._keep_copy()
        self.truth.headline = RESULT

    @rule(runs=st.sampled_from([0, 0, 3, -1]))
    def scoreboard_goes_wrong_or_right(self, runs: int) -> None:
        self.truth.extra_runs = runs if all(score.runs for score in self.truth.figures().values()) else 0

    # --- polling, well and badly ---

    @rule()
    def poll(self) -> None:
        assert self.harness.poll(), self.harness.owner.record.last_error
        self.check_after_poll()

    @rule()
    def play_and_poll_in_turn(self) -> None:
        """Ball, look, ball, look: the rule without which a base that is always late goes unnoticed."""
        for value in ("1", "wd", "4"):
            self.truth.bowl(value)
            self.poll()

    @rule(values=BURST, nth=st.integers(min_value=1, max_value=4))
    def play_during_a_poll(self, values: list[str], nth: int) -> None:
        self.harness.front.before_answer = self._at(nth, lambda: self.burst(values))
        assert self.harness.poll(), self.harness.owner.record.last_error

    @rule(nth=st.integers(min_value=1, max_value=5))
    def death_after_a_fetch(self, nth: int) -> None:
        def die() -> None:
            raise Crash

        self.harness.front.before_answer = self._at(nth, die)
        self.harness.poll()

    @rule(fault=st.sampled_from(CommitFault), values=BURST)
    def fault_at_a_commit(self, fault: CommitFault, values: list[str]) -> None:
        self.burst(values)
        self.harness.poll(fault=fault)

    @rule(error=ERRORS, nth=st.integers(min_value=1, max_value=4))
    def failed_poll(self, error: FetchError, nth: int) -> None:
        stored = self.harness.ledger.state
        asked: list[str] = []

        def fail(resource: str) -> FetchError | None:
            asked.append(resource)
            return error if len(asked) >= nth else None

        self.harness.front.before_answer = fail
        if not self.harness.poll():
            assert self.harness.ledger.state == stored, "a poll that failed stores nothing"

    @rule()
    def death(self) -> None:
        self.harness.die()

    @rule()
    def orderly_restart(self) -> None:
        self.harness.stop_and_start()

    @rule()
    def take_over(self) -> None:
        self.harness.take_over()

    @precondition(lambda self: self.harness.stale)
    @rule(value=VALUES)
    def a_stale_owner_polls(self, value: str) -> None:
        self.truth.bowl(value)
        stored = self.harness.ledger.state
        for stale in self.harness.stale:
            self.harness.poll(stale)
            assert self.harness.ledger.state == stored, "who has lost the match writes nothing"

    # --- a site that is not itself ---

    @precondition(lambda self: self.copies)
    @rule(place=PLACE, parts=st.sets(st.sampled_from(["getSV3", "getBallFeeds", "full-scorecard"]), min_size=1))
    def an_older_copy_once(self, place: float, parts: set[str]) -> None:
        """A cache shows an old page for one poll, and then the present one again."""
        older = self.copies[int(place * len(self.copies))]
        if self._gone(older) <= MOST_GONE:
            self.harness.front.choose = lambda resource: older if resource in parts else None
            self.harness.poll()
            self.poll()

    @precondition(lambda self: not self.truth.headline)
    @rule()
    def a_result_that_flashes_up(self) -> None:
        self.poll()
        self.poll()
        before = self.harness.ledger.count(CricketKind.RESULT)
        hasty = self.truth.copy()
        hasty.headline = RESULT
        self.harness.front.choose = lambda _resource: hasty
        self.harness.poll()
        self.poll()
        assert self.harness.ledger.count(CricketKind.RESULT) == before, "a result is confirmed by a second poll"

    @rule(place=PLACE)
    def a_ball_that_is_missing_once(self, place: float) -> None:
        """One poll sees a page without a ball, in scoreboard and sums, too: the ledger would see one void too many."""
        self.poll()
        without = self.truth.copy()
        ball = self._ball_at(place)
        if without.may_remove(ball):
            without.remove(ball)
            self.harness.front.choose = lambda _resource: without
            self.harness.poll()
            self.poll()

    # --- the end ---

    def teardown(self) -> None:
        try:
            # A run that failed has its verdict already.
            if sys.exc_info()[0] is None:
                self._end_twice()
        finally:
            self.harness.close()

    def _end_twice(self) -> None:
        """End by a take-over, and by the owner going on: both must arrive at the truth."""
        other = self.harness.twin()
        try:
            self._end(other)
        finally:
            other.close()
        self._end(self.harness)
        assert _essence(self.harness) == _essence(other), "a run with deaths ends like one without"

    def _end(self, harness: ModelHarness) -> None:
        _poll_until_settled(harness)
        self.check_sums(harness)
        harness.truth.extra_runs, harness.truth.headline = 0, ""
        _poll_until_settled(harness)
        self.check_sums(harness)
        self.check_understood(harness)
        harness.truth.headline = BREAK
        _poll_until_settled(harness)
        self.check_whole(harness)
        stored = harness.ledger.state
        _poll_until_settled(harness)
        assert harness.ledger.state == stored, "what is equal is not stored again"
        harness.recount()

    # --- what must be true ---

    def check_after_poll(self) -> None:
        """Check what holds after every poll that was accepted."""
        state = self.harness.owner.state
        assert dict(state.events) == self.harness.ledger.fold, "the base is the fold of what is stored"
        if not state.suspects:
            self.check_sums(self.harness)

    def check_sums(self, harness: ModelHarness) -> None:
        """Every total on the scoreboard is that of the events, or a mismatch is on record."""
        board = harness.truth.board()
        for innings in pair_of(max(board)):
            score = board.get(innings)
            # Zeros may stand for an innings that has not begun: they contradict nothing.
            if score and not score.is_blank and innings not in harness.ledger.mismatched:
                assert harness.ledger.sum_of(innings) == (score.runs, score.wickets), f"innings {innings} adds up"

    def check_understood(self, harness: ModelHarness) -> None:
        """Check what holds once a consistent site was polled for a while in play."""
        raise NotImplementedError

    def check_whole(self, harness: ModelHarness) -> None:
        """Check what holds at the end of an innings, when everything was read again."""
        closed = {
            event.key.numbers[0]: (content.runs, content.wickets, balls_of(content.overs), content.team)
            for event in harness.ledger.live(CricketKind.INNINGS)
            if isinstance(content := event.content, InningsSummary)
        }
        sides = harness.truth.people.sides
        for innings, score in harness.truth.figures().items():
            shown = (score.runs, score.wickets, balls_of(score.overs), sides[(innings - 1) % 2])
            assert closed.get(innings) == shown or innings in harness.ledger.mismatched
        assert closed.keys() <= harness.truth.figures().keys()
        assert harness.ledger.live(CricketKind.RESULT) == []

    # --- what the rules need ---

    @property
    def truth(self) -> Truth:
        return self.harness.truth

    @property
    def _has_begun(self) -> bool:
        return self.truth.balls[-1].innings == self.truth.innings

    def _ball_at(self, place: float) -> Ball:
        return self.truth.balls[int(place * len(self.truth.balls))]

    def _keep_copy(self) -> None:
        if self.truth.balls:
            self.copies = [*self.copies[1 - COPIES :], self.truth.copy()]

    def _remove(self, ball: Ball) -> None:
        if self.truth.may_remove(ball) and self._gone(self.truth) < MOST_GONE:
            self._keep_copy()
            self.truth.remove(ball)
            self.harness.ledger.removed.add(str(ball.id))

    def _gone(self, shown: Truth) -> int:
        """Return how many balls would be missed, once this was shown and stored, by the next good poll."""
        held = {event.source_event_id for event in self.harness.ledger.live(CricketKind.DELIVERY)}
        return len((held | {str(ball.id) for ball in shown.balls}) - {str(ball.id) for ball in self.truth.balls})

    @staticmethod
    def _at(nth: int, act: Callable[[], None]) -> Callable[[str], None]:
        """Return something to call before each answer that acts before the nth, once."""
        asked: list[str] = []

        def before_answer(resource: str) -> None:
            asked.append(resource)
            if len(asked) == nth:
                act()

        return before_answer


def _poll_until_settled(harness: ModelHarness) -> None:
    for _ in range(SETTLING_POLLS):
        assert harness.poll(), harness.owner.record.last_error


def _essence(harness: ModelHarness) -> object:
    """Return what is held, without keys and revisions: they depend on the history, not on the result."""
    live = [event for kind in CricketKind for event in harness.ledger.live(kind)]
    return [(event.source_event_id, event.content, event.position) for event in live], set(harness.ledger.findings)
