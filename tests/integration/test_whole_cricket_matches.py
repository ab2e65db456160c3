"""Whole matches of every kind, polled from the first ball to the result without a restart."""

from bisect import bisect_right
from random import Random
from typing import cast
from urllib.parse import parse_qsl, urlsplit

import pytest

from longstop.api.match_documents import event_entry
from longstop.fetching.base import FetchRequest
from longstop.matches.pipeline import Pipeline
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.model.match import MatchRef, MatchStatus, Phase
from longstop.sources.crex.source import CrexSource
from longstop.sports.cricket.model import CricketState
from longstop.sports.cricket.sport import Cricket
from longstop.telemetry.bus import Bus
from longstop.testing import ScriptedFetcher
from longstop_lab.simulator.cricket.game import Game
from longstop_lab.simulator.cricket.world import PlannedMatch, World, play, script_for
from longstop_lab.simulator.http import Request
from longstop_lab.simulator.judge import TruthComparison, judge
from longstop_lab.simulator.sites.crex.site import CrexSite
from longstop_lab.simulator.truth import TruthLine
from tests.builders import CREX_CONFIG, NOW
from tests.live import poll, take
from tests.memory import MemorySink, MemoryStore
from tests.readers import ManualClock

SEED = 7
#: One poll during a night is enough.
LONG_BREAK = 2000.0
#: World seconds that pass with every request.
REQUEST_SECONDS = 0.3


class Watching:
    """One match of a simulated world, and a pipeline that polls it."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.script = script_for(game, SEED)
        self.lines: list[TruthLine] = []
        plan = PlannedMatch(game=game, script=self.script, starts_at=0.0)
        self.world = World([plan], started_at=NOW, speed=1.0, record=self.lines.extend)
        self._site = CrexSite(self.world)
        self._store = MemoryStore()
        self._clock = ManualClock(NOW)
        client = SourceClient(CrexSource(CREX_CONFIG), ScriptedFetcher(self._answer))
        self._road = Pipeline(
            Cricket(), client=client, store=self._store, bus=Bus([MemorySink()]), clock=self._clock, scraper_id="node-a"
        )
        self.state: CricketState

    def _answer(self, request: FetchRequest) -> bytes:
        address = urlsplit(request.url)
        query = dict(parse_qsl(address.query))
        asked = Request(method=request.method, path=address.path, query=query, body=request.body or b"")
        answered = self._site.answer(asked)
        self.world.advance_to(self.world.seconds + REQUEST_SECONDS)
        return answered.body

    async def start(self) -> None:
        row = await self._store.register(MatchRef("crex", self.game.key), self.game.title, None, NOW, sport="cricket")
        self.state = cast(CricketState, await take(self._store, row.match_id, "node-a"))

    async def poll(self, seconds: float) -> None:
        self.world.advance_to(seconds)
        self._clock.advance(1.0)
        self.state = cast(CricketState, (await poll(self._road, self.state)).state)

    def verdict(self) -> TruthComparison:
        stored = [event_entry(each, self.state.row) for each in self._store.history[1]]
        return judge(self.lines, {self.game.key: stored})


def moments(watching: Watching, every: float) -> list[float]:
    """Return when to look: at random, about so often, and three times after the end."""
    steps = [step.at for step in watching.script]
    dice, now, chosen = Random(SEED), 0.0, []
    while now < steps[-1]:
        chosen.append(now)
        now += dice.expovariate(1 / every)
        following = bisect_right(steps, now)
        if following < len(steps) and steps[following] - now > LONG_BREAK:
            now = steps[following] - LONG_BREAK / 2
    return [*chosen, *(steps[-1] + nth for nth in (1, 10, 20))]


@pytest.mark.req("FLD-1")
@pytest.mark.parametrize(
    ("kind", "every", "matches"), [("t20", 90, 2), ("t20-rain", 90, 6), ("odi", 300, 3), ("test", 1200, 1)]
)
async def test_a_whole_match_is_stored_as_it_was_and_no_break_is_its_end(kind: str, every: float, matches: int) -> None:
    breaks = 0
    for index in range(matches):
        watching = Watching(play(kind, SEED, index))
        await watching.start()
        *on_the_way, last, again, once_more = moments(watching, every)

        for seconds in on_the_way:
            await watching.poll(seconds)
            breaks += watching.state.row.status is MatchStatus.BREAK
            assert watching.state.row.phase is not Phase.COMPLETED
        for seconds in (last, again, once_more):
            await watching.poll(seconds)

        found = watching.verdict()
        assert (found.lost, found.duplicated, found.ghost) == (0, 0, 0), found.details
        assert watching.state.row.phase is Phase.COMPLETED
        assert not watching.state.findings
    assert breaks
