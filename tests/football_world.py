"""One match of a simulated football world, and a pipeline that polls it."""

from typing import cast
from urllib.parse import urlsplit

from longstop.api.match_documents import event_entry
from longstop.errors import PageNotFound
from longstop.fetching.base import FetchRequest
from longstop.matches.pipeline import Pipeline, PollResult
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.model.match import MatchRef
from longstop.sources.sofascore.source import SofascoreSource
from longstop.sports.football.model import FootballState
from longstop.sports.football.sport import Football
from longstop.telemetry.bus import Bus
from longstop.testing import ScriptedFetcher
from longstop_lab.simulator.football.model import FootballMatch
from longstop_lab.simulator.football.script import script_football
from longstop_lab.simulator.football.world import FootballWorld, PlannedFootball
from longstop_lab.simulator.http import Request
from longstop_lab.simulator.sites.sofascore.site import SofascoreSite
from longstop_lab.simulator.truth import TruthLine
from tests.builders import NOW
from tests.football_site import SOFASCORE_CONFIG
from tests.live import poll, take
from tests.memory import MemorySink, MemoryStore
from tests.readers import ManualClock

#: World seconds that pass with every request.
REQUEST_SECONDS = 0.3
#: World seconds before the kick-off at which the world begins.
BEFORE = 8000.0


class WatchingFootball:
    """A match, its site, its store, and the state after the last poll."""

    def __init__(self, match: FootballMatch, seed: int) -> None:
        self.match = match
        self.script = script_football(match, seed)
        self.lines: list[TruthLine] = []
        plan = PlannedFootball(match=match, script=self.script, starts_at=BEFORE)
        self.world = FootballWorld([plan], started_at=NOW, speed=1.0, record=self.lines.extend)
        self.store = MemoryStore()
        self.sink = MemorySink()
        self._site = SofascoreSite(self.world)
        self._clock = ManualClock(NOW)
        client = SourceClient(SofascoreSource(SOFASCORE_CONFIG), ScriptedFetcher(self._answer))
        self._road = Pipeline(
            Football(), client=client, store=self.store, bus=Bus([self.sink]), clock=self._clock, scraper_id="node-a"
        )
        self.state: FootballState

    def _answer(self, request: FetchRequest) -> bytes | PageNotFound:
        answered = self._site.answer(Request(method=request.method, path=urlsplit(request.url).path))
        self.world.advance_to(self.world.seconds + REQUEST_SECONDS)
        return PageNotFound("404") if answered.status == 404 else answered.body

    async def start(self) -> None:
        ref = MatchRef("sofascore", self.match.key)
        row = await self.store.register(ref, str(ref), None, NOW, sport="football")
        self.state = cast(FootballState, await take(self.store, row.match_id, "node-a"))

    async def restart(self) -> None:
        """Forget everything that is not stored."""
        self.state = cast(FootballState, await take(self.store, self.state.row.match_id, "node-b"))

    async def poll(self, at: float) -> PollResult:
        """Poll this many seconds after the kick-off that was planned first."""
        self.world.advance_to(BEFORE + at)
        self._clock.advance(1.0)
        outcome = await poll(self._road, self.state)
        self.state = cast(FootballState, outcome.state)
        return outcome

    def served(self) -> list[dict[str, object]]:
        return [event_entry(each, self.state.row) for each in self.store.history.get(1, [])]
