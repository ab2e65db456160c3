"""One match on a small site, polled through the whole pipeline; shared by several test modules."""

from itertools import groupby
from typing import cast

from longstop.matches.pipeline import Pipeline, PollResult
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.model.event import Event, Op
from longstop.model.match import MatchRef
from longstop.sources.crex.event_list_and_names import read_ball_value
from longstop.sources.crex.source import CrexSource
from longstop.sports.cricket.align import order_of_play
from longstop.sports.cricket.model import CricketKind, CricketState, Delivery, Dismissal, OverSummary
from longstop.sports.cricket.sport import Cricket
from longstop.telemetry.bus import Bus
from longstop.testing import ScriptedFetcher
from tests.builders import CREX_CONFIG, NOW
from tests.crex_site import Site, SiteMatch
from tests.live import poll, take
from tests.memory import MemorySink, MemoryStore
from tests.readers import ManualClock

#: What a delivery amounts to: innings, over, value by kind, who is out.
Ball = tuple[int, int, object, tuple[tuple[Dismissal, str], ...]]


class Polling:
    """A match, its site, its store, and the state after the last poll."""

    def __init__(self, match: SiteMatch | None = None) -> None:
        self.match = match or SiteMatch()
        self.site = Site(self.match)
        self.store = MemoryStore()
        self.sink = MemorySink()
        self.clock = ManualClock(NOW)
        self.client = SourceClient(CrexSource(CREX_CONFIG), ScriptedFetcher(self.site))
        self.pipeline = Pipeline(
            Cricket(), client=self.client, store=self.store, bus=Bus([self.sink]), clock=self.clock, scraper_id="node-a"
        )
        self.state: CricketState

    async def start(self) -> CricketState:
        row = await self.store.register(MatchRef("crex", self.match.key), "a match", None, NOW, sport="cricket")
        self.state = cast(CricketState, await take(self.store, row.match_id, "node-a"))
        return self.state

    async def poll(self, times: int = 1) -> PollResult:
        """Look and go on from the result."""
        for _ in range(times):
            outcome = await poll(self.pipeline, self.state)
            self.state = cast(CricketState, outcome.state)
        return outcome

    async def restart(self) -> None:
        """Forget everything that is not stored."""
        self.state = cast(CricketState, await take(self.store, self.state.row.match_id, "node-b"))

    def stored(self, kind: CricketKind) -> list[Event]:
        """Return the live events of a kind as the store has them, in the order of play."""
        current = [each.event for each in self.store.current(1).values() if each.event.key.kind == kind]
        return sorted((event for event in current if event.is_live), key=order_of_play)

    def stored_balls(self) -> list[Ball]:
        return [
            (event.key.numbers[0], event.key.numbers[1], content.runs, _outs(content))
            for event in self.stored(CricketKind.DELIVERY)
            if isinstance(content := event.content, Delivery)
        ]

    def true_balls(self) -> list[Ball]:
        kinds = {1: Dismissal.BOWLED, 2: Dismissal.CAUGHT, 7: Dismissal.RETIRED}
        return [
            (
                ball.innings,
                ball.over,
                read_ball_value(ball.value),
                tuple((kinds[how], name) for how, name, _ in ball.outs),
            )
            for ball in self.match.balls
        ]

    def stored_overs(self) -> dict[tuple[int, int], int]:
        return {
            (event.key.numbers[0], event.key.numbers[1]): event.content.runs
            for event in self.stored(CricketKind.OVER)
            if isinstance(event.content, OverSummary)
        }

    def true_overs(self) -> dict[tuple[int, int], int]:
        return {
            place: sum(
                read_ball_value(ball.value).total for ball in self.match.balls if (ball.innings, ball.over) == place
            )
            for place in self.match.ends
        }

    def check_invariants(self) -> None:
        """Assert what must hold after every poll: revisions follow, places are 1 … n, no ball is there twice."""
        revs: dict[object, int] = {}
        for stored in self.store.history.get(1, []):
            event = stored.event
            assert event.rev == revs.get(event.key, 0) + 1
            assert (event.rev == 1) == (event.op is Op.INSERT)
            revs[event.key] = event.rev
        live = self.stored(CricketKind.DELIVERY)
        for _, events in groupby(live, key=lambda event: event.key.numbers[0]):
            positions = [event.position for event in events]
            assert positions == list(range(1, len(positions) + 1))
        ids = [event.source_event_id for event in live]
        assert len(ids) == len(set(ids))
        assert {each.event.key: each.event for each in self.store.current(1).values()} == dict(self.state.events)


def _outs(delivery: Delivery) -> tuple[tuple[Dismissal, str], ...]:
    return tuple((wicket.kind, wicket.player_out) for wicket in delivery.wickets)
