"""The rules that both models share: what a scorer does, what a site does, and what breaks while somebody polls."""

import sys
from collections.abc import Callable
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from longstop.errors import BodyTruncated, FetchError, FetchTimeout, SourceFailed, SourceRefused
from longstop.sports.cricket.model import CricketKind, InningsSummary
from longstop.sports.cricket.totals import pair_of
from tests.model.laboratory import Crash, Laboratory, Mishap
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
ENOUGH_LOOKS = 4


class Capture(RuleBasedStateMachine):
    """A match that is scored, corrected, watched and disturbed in any order."""

    make_site: ClassVar[Callable[[], Site]]

    def __init__(self) -> None:
        super().__init__()
        site = type(self).make_site()
        self.lab = Laboratory(site, Truth(site.people))
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
        assert self.lab.poll(), self.lab.owner.record.last_error
        self.check_after_poll()

    @rule()
    def play_and_looks(self) -> None:
        """Ball, look, ball, look: the rule without which a base that is always late goes unnoticed."""
        for value in ("1", "wd", "4"):
            self.truth.bowl(value)
            self.poll()

    @rule(values=BURST, nth=st.integers(min_value=1, max_value=4))
    def play_during_a_poll(self, values: list[str], nth: int) -> None:
        self.lab.front.before_answer = self._at(nth, lambda: self.burst(values))
        assert self.lab.poll(), self.lab.owner.record.last_error

    @rule(nth=st.integers(min_value=1, max_value=5))
    def death_after_a_fetch(self, nth: int) -> None:
        def die() -> None:
            raise Crash

        self.lab.front.before_answer = self._at(nth, die)
        self.lab.poll()

    @rule(mishap=st.sampled_from(Mishap), values=BURST)
    def mishap_at_a_commit(self, mishap: Mishap, values: list[str]) -> None:
        self.burst(values)
        self.lab.poll(mishap=mishap)

    @rule(error=ERRORS, nth=st.integers(min_value=1, max_value=4))
    def failed_poll(self, error: FetchError, nth: int) -> None:
        stored = self.lab.ledger.state
        asked: list[str] = []

        def fail(resource: str) -> FetchError | None:
            asked.append(resource)
            return error if len(asked) >= nth else None

        self.lab.front.before_answer = fail
        if not self.lab.poll():
            assert self.lab.ledger.state == stored, "a poll that failed stores nothing"

    @rule()
    def death(self) -> None:
        self.lab.die()

    @rule()
    def orderly_restart(self) -> None:
        self.lab.stop_and_start()

    @rule()
    def take_over(self) -> None:
        self.lab.take_over()

    @precondition(lambda self: self.lab.stale)
    @rule(value=VALUES)
    def a_stale_owner_looks_on(self, value: str) -> None:
        self.truth.bowl(value)
        stored = self.lab.ledger.state
        for stale in self.lab.stale:
            self.lab.poll(stale)
            assert self.lab.ledger.state == stored, "who has lost the match writes nothing"

    # --- a site that is not itself ---

    @precondition(lambda self: self.copies)
    @rule(place=PLACE, parts=st.sets(st.sampled_from(["getSV3", "getBallFeeds", "full-scorecard"]), min_size=1))
    def an_older_copy_once(self, place: float, parts: set[str]) -> None:
        """A cache shows an old page for one poll, and then the present one again."""
        older = self.copies[int(place * len(self.copies))]
        if self._gone(older) <= MOST_GONE:
            self.lab.front.choose = lambda resource: older if resource in parts else None
            self.lab.poll()
            self.poll()

    @precondition(lambda self: not self.truth.headline)
    @rule()
    def a_result_that_flashes_up(self) -> None:
        self.poll()
        self.poll()
        before = self.lab.ledger.count(CricketKind.RESULT)
        hasty = self.truth.copy()
        hasty.headline = RESULT
        self.lab.front.choose = lambda _resource: hasty
        self.lab.poll()
        self.poll()
        assert self.lab.ledger.count(CricketKind.RESULT) == before, "a result is looked at twice"

    @rule(place=PLACE)
    def a_ball_that_is_missing_once(self, place: float) -> None:
        """The page of one poll lacks a ball, and scoreboard and sums with it: the ledger sees a void too many."""
        self.poll()
        without = self.truth.copy()
        ball = self._ball_at(place)
        if without.may_remove(ball):
            without.remove(ball)
            self.lab.front.choose = lambda _resource: without
            self.lab.poll()
            self.poll()

    # --- the end ---

    def teardown(self) -> None:
        try:
            # A run that failed has its verdict already.
            if sys.exc_info()[0] is None:
                self._end_twice()
        finally:
            self.lab.close()

    def _end_twice(self) -> None:
        """End by a take-over, and by the owner going on: both must arrive at the truth."""
        other = self.lab.twin()
        try:
            self._end(other)
        finally:
            other.close()
        self._end(self.lab)
        assert _essence(self.lab) == _essence(other), "a run with deaths ends like one without"

    def _end(self, lab: Laboratory) -> None:
        _look_on(lab)
        self.check_sums(lab)
        lab.truth.extra_runs, lab.truth.headline = 0, ""
        _look_on(lab)
        self.check_sums(lab)
        self.check_understood(lab)
        lab.truth.headline = BREAK
        _look_on(lab)
        self.check_whole(lab)
        stored = lab.ledger.state
        _look_on(lab)
        assert lab.ledger.state == stored, "what is equal is not stored again"
        lab.recount()

    # --- what must be true ---

    def check_after_poll(self) -> None:
        """Check what holds after every poll that was accepted."""
        state = self.lab.owner.state
        assert dict(state.events) == self.lab.ledger.fold, "the base is the fold of what is stored"
        if not state.suspects:
            self.check_sums(self.lab)

    def check_sums(self, lab: Laboratory) -> None:
        """Every total on the scoreboard is that of the events, or a mismatch is on record."""
        board = lab.truth.board()
        for innings in pair_of(max(board)):
            score = board.get(innings)
            # Zeros may stand for an innings that has not begun: they contradict nothing.
            if score and not score.is_blank and innings not in lab.ledger.mismatched:
                assert lab.ledger.sum_of(innings) == (score.runs, score.wickets), f"innings {innings} adds up"

    def check_understood(self, lab: Laboratory) -> None:
        """Check what holds once a site that behaves was looked at for a while in play."""
        raise NotImplementedError

    def check_whole(self, lab: Laboratory) -> None:
        """Check what holds at the end of an innings, when everything was read again."""
        closed = {
            event.key.numbers[0]: (content.runs, content.wickets, balls_of(content.overs), content.team)
            for event in lab.ledger.live(CricketKind.INNINGS)
            if isinstance(content := event.content, InningsSummary)
        }
        sides = lab.truth.people.sides
        for innings, score in lab.truth.figures().items():
            shown = (score.runs, score.wickets, balls_of(score.overs), sides[(innings - 1) % 2])
            assert closed.get(innings) == shown or innings in lab.ledger.mismatched
        assert closed.keys() <= lab.truth.figures().keys()
        assert lab.ledger.live(CricketKind.RESULT) == []

    # --- what the rules need ---

    @property
    def truth(self) -> Truth:
        return self.lab.truth

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
            self.lab.ledger.removed.add(str(ball.id))

    def _gone(self, shown: Truth) -> int:
        """Return how many balls would be missed, once this was shown and stored, by the next good poll."""
        held = {event.source_event_id for event in self.lab.ledger.live(CricketKind.DELIVERY)}
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


def _look_on(lab: Laboratory) -> None:
    for _ in range(ENOUGH_LOOKS):
        assert lab.poll(), lab.owner.record.last_error


def _essence(lab: Laboratory) -> object:
    """Return what is held, without keys and revisions: they tell how it came, not what it is."""
    live = [event for kind in CricketKind for event in lab.ledger.live(kind)]
    return [(event.source_event_id, event.content, event.position) for event in live], set(lab.ledger.findings)
