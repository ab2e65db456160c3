"""The model of a site that shows its newest balls only: what fell out of its window is declared, never silent."""

from hypothesis import strategies as st
from hypothesis.stateful import rule

from longstop.model.cricket import Delivery, InferredBalls
from longstop.model.event import EventKind
from longstop.storage.base import FindingKind
from tests.model.laboratory import Laboratory
from tests.model.machine import VALUES, Capture
from tests.model.sites import WINDOW, WindowSite
from tests.model.truth import Place


class WindowedFeed(Capture):
    """P3: where the source no longer shows what happened, a gap and a sum say so."""

    make_site = WindowSite

    @rule(values=st.lists(VALUES, min_size=WINDOW + 1, max_size=2 * WINDOW))
    def an_outage_longer_than_the_window(self, values: list[str]) -> None:
        self.burst(values)
        self.look()

    @rule(is_shown=st.booleans())
    def first_overs_come_and_go(self, is_shown: bool) -> None:
        self.site.is_first_over_shown = is_shown

    @property
    def site(self) -> WindowSite:
        site = self.lab.front.site
        assert isinstance(site, WindowSite)
        return site

    def check_after_look(self) -> None:
        super().check_after_look()
        if not self.lab.owner.state.suspects:
            self._check_shown(self.lab)
            self._check_gaps(self.lab)

    def check_understood(self, lab: Laboratory) -> None:
        self._check_shown(lab)
        self._check_gaps(lab)

    def check_whole(self, lab: Laboratory) -> None:
        super().check_whole(lab)
        self._check_shown(lab)
        self._check_gaps(lab)
        self._check_overs(lab)

    def _check_shown(self, lab: Laboratory) -> None:
        """What the page shows is stored as it shows it, in its order."""
        shown = {str(ball.id) for ball in self.site.shown(lab.truth)}
        held = [(event.source_event_id, event.content) for event in lab.ledger.live(EventKind.DELIVERY)]
        truth = [(str(id_), content) for id_, content in lab.truth.deliveries().items()]
        assert [each for each in held if each[0] in shown] == [each for each in truth if each[0] in shown]

    def _check_gaps(self, lab: Laboratory) -> None:
        """Every ball that is not stored lies in a declared gap, and every declared gap is one.

        What was corrected behind the window stays as it was last seen, and may by chance stand for what is missing.
        """
        contents = lab.truth.deliveries()
        held = {event.source_event_id: event for event in lab.ledger.live(EventKind.DELIVERY)}
        missing = {ball.place for ball in lab.truth.balls if str(ball.id) not in held}
        outdated = {
            (event.key.innings, event.key.over)
            for id_, event in held.items()
            if contents.get(int(id_)) != event.content
        }
        declared = {finding.place for finding in lab.ledger.findings if finding.kind is FindingKind.GAP}
        assert {f"{innings}:{over}" for innings, over in missing - outdated} <= declared, "no gap is silent"
        assert declared <= {f"{innings}:{over}" for innings, over in missing | outdated}, "no gap is made up"

    def _check_overs(self, lab: Laboratory) -> None:
        """An over that has ended is the sum of its balls and of what stands for the unseen ones."""
        summaries = lab.truth.summaries(counts_balls=True)
        assert {(event.key.innings, event.key.over): event.content for event in lab.ledger.live(EventKind.OVER)} == (
            summaries
        )
        for (innings, over), summary in summaries.items():
            if innings not in lab.ledger.mismatched:
                assert _runs_of(lab, (innings, over)) == summary.runs


def _runs_of(lab: Laboratory, place: Place) -> int:
    live = [event for event in lab.ledger.fold.values() if event.is_live]
    here = [event.content for event in live if (event.key.innings, event.key.over) == place]
    balls = sum(content.runs.total for content in here if isinstance(content, Delivery))
    return balls + sum(content.runs for content in here if isinstance(content, InferredBalls))
