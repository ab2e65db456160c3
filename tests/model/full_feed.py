"""The model of a site that lists every ball: whatever happens, what is stored becomes what it lists."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from longstop.sports.cricket.model import CricketKind
from tests.model.harness import ModelHarness
from tests.model.machine import MOST_GONE, PLACE, Capture
from tests.model.sites import CrexSite
from tests.model.truth import ID_STEP


class FullFeed(Capture):
    """P2: whatever the event list still shows is stored exactly once, with its latest version."""

    make_site = CrexSite

    @rule(place=PLACE)
    def renumbering(self, place: float) -> None:
        ball = self._ball_at(place)
        if self._gone(self.truth) < MOST_GONE:
            self._keep_copy()
            self.harness.ledger.removed.add(str(ball.id))
            self.truth.renumber(ball)

    @precondition(lambda self: self.truth.extra_runs == 0)  # a board that is wrong may be wrong by just the late balls
    @rule(items=st.integers(min_value=1, max_value=6))
    def a_feed_that_lags_behind_its_board(self, items: int) -> None:
        """The ledger sees a void where a ball was only late."""
        self.poll()
        self.poll()
        assert isinstance(self.harness.front.site, CrexSite)
        self.harness.front.site.lag = items
        for _ in range(3):
            self.harness.poll()
        self.harness.front.site.lag = 0
        self.poll()

    @rule()
    def the_site_behaves_for_a_while(self) -> None:
        self.truth.extra_runs = 0
        for _ in range(3):
            self.poll()
        self.check_understood(self.harness)

    def check_after_poll(self) -> None:
        super().check_after_poll()
        if self.harness.owner.state.suspects:
            return
        held = {event.source_event_id for event in self.harness.ledger.live(CricketKind.DELIVERY)}
        bowled = {str(ball.id) for ball in self.truth.balls if ball.id % ID_STEP == 0}
        assert bowled <= held, "every ball that was bowled before a poll is stored after it"

    def check_understood(self, harness: ModelHarness) -> None:
        assert harness.ledger.findings == (), "a site that is consistent leaves no question open"

    def check_whole(self, harness: ModelHarness) -> None:
        super().check_whole(harness)
        held = harness.ledger.live(CricketKind.DELIVERY)
        assert [(event.source_event_id, event.content) for event in held] == [
            (str(id_), content) for id_, content in harness.truth.deliveries().items()
        ]
        assert {
            (event.key.numbers[0], event.key.numbers[1]): event.content
            for event in harness.ledger.live(CricketKind.OVER)
        } == (harness.truth.summaries(counts_balls=False))
        assert harness.ledger.findings == ()
