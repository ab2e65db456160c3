"""Football by the drawn page: the score goes on, the events stay, and a goal taken back counts at the second look."""

import pytest

from longstop.errors import LayoutChanged, PageNotFound, SourceRefused
from longstop.fetching.base import FetchRequest
from longstop.matches.client import PollAttempt, SourceClient
from longstop.matches.pipeline import Pipeline
from longstop.model.match import MatchStatus, Phase, SyncState
from longstop.sources.sofascore.source import SofascoreSource
from longstop.sports.base import DOM_ONLY
from longstop.sports.football.model import FootballKind
from longstop.sports.football.sport import Football
from longstop.telemetry.bus import Bus
from longstop.testing import ScriptedFetcher, ScriptedReply
from tests.drawn_pages import sofascore_page
from tests.football_site import SOFASCORE_CONFIG, LookingAtFootball, event, goal, lineups

BROKEN = {"status": "another shape"}


class Browsing(LookingAtFootball):
    """A match that a browser reads; `drawn` is what its page shows."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: ScriptedReply = sofascore_page("2 : 1", "2nd half")
        self.fetcher = ScriptedFetcher(self._answer)
        self.client = SourceClient(SofascoreSource(SOFASCORE_CONFIG), self.fetcher, is_browsed=True)
        self.road = Pipeline(
            Football(),
            client=self.client,
            store=self.store,
            bus=Bus([self.sink]),
            clock=self.clock,
            scraper_id="node-a",
        )

    def _answer(self, request: FetchRequest) -> ScriptedReply:
        return self.drawn if request.is_rendered else self.pages(request)

    def score(self) -> tuple[int, int]:
        score = self.payload()["score"]
        return score["home"], score["away"]


@pytest.fixture
async def looking() -> Browsing:
    """Return a match that was read well at 1-0, and whose event is another one now."""
    looking = Browsing()
    await looking.start()
    looking.pages.event = event("1st half", 1, 0)
    looking.pages.incidents = [goal(100, 1, 0)]
    looking.pages.lineups = lineups()
    await looking.look()
    looking.pages.event = BROKEN
    return looking


@pytest.mark.req("FR-019")
async def test_while_the_data_is_broken_the_drawn_score_is_served_and_the_events_stay(looking: Browsing) -> None:
    before = looking.payload()

    await looking.look()

    after = looking.payload()
    assert (looking.score(), after["headline"], after["status"]) == ((2, 1), "2nd half", "live")
    assert {name: after[name] for name in ("teams", "metadata", "incidents", "lineups", "title", "players")} == {
        name: before[name] for name in ("teams", "metadata", "incidents", "lineups", "title", "players")
    }
    assert looking.versions() == ["goal:home:1 1 insert"]
    assert looking.store.findings[1] == (DOM_ONLY,)
    assert looking.state.sync is SyncState.RECOVERING


@pytest.mark.req("FR-019")
async def test_once_the_data_is_back_the_events_catch_up_and_the_finding_is_closed(looking: Browsing) -> None:
    await looking.look()
    looking.pages.event = event("2nd half", 2, 1)
    looking.pages.incidents = [
        goal(100, 1, 0),
        goal(101, 2, 0, time=50),
        goal(102, 2, 1, is_home=False, time=60, scorer=41),
    ]

    await looking.look()

    assert looking.versions()[1:] == ["goal:home:2 1 insert", "goal:away:1 1 insert"]
    assert (looking.store.findings[1], looking.state.sync) == ((), SyncState.IN_SYNC)


async def test_a_drawn_score_that_goes_back_counts_when_it_is_seen_twice(looking: Browsing) -> None:
    looking.drawn = sofascore_page("0 : 0", "1st half")

    await looking.look()
    assert looking.score() == (1, 0)
    await looking.look()

    assert looking.score() == (0, 0)
    assert looking.versions() == ["goal:home:1 1 insert"]


async def test_a_drawn_score_that_goes_back_and_comes_again_was_a_cached_copy(looking: Browsing) -> None:
    for page in (sofascore_page("0 : 0"), sofascore_page("1 : 0"), sofascore_page("0 : 0")):
        looking.drawn = page
        await looking.look()

        assert looking.score() == (1, 0)


async def test_after_a_restart_the_drawn_page_is_compared_with_what_is_stored(looking: Browsing) -> None:
    await looking.restart()
    looking.drawn = sofascore_page("0 : 0", "1st half")

    await looking.look()

    assert looking.score() == (1, 0)


@pytest.mark.req("FLD-3")
async def test_what_a_page_does_not_draw_stays_while_the_score_is_the_same_and_goes_with_it() -> None:
    looking = Browsing()
    await looking.start()
    kicks = {"current": 5, "display": 1, "period1": 0, "period2": 1, "penalties": 4}
    shoot_out = {"code": 50, "description": "Penalties", "type": "inprogress"}
    looking.pages.event = event("2nd half", kicks, {**kicks, "current": 4, "penalties": 3}, status=shoot_out)
    await looking.look()
    looking.pages.event = BROKEN

    looking.drawn = sofascore_page("1 : 1", "Penalties")
    await looking.look()
    assert looking.payload()["score"]["penalties"] == {"home": 4, "away": 3}
    looking.drawn = sofascore_page("1 : 1", "AP")
    await looking.look()

    assert looking.payload()["score"] == {"home": 1, "away": 1, "periods": []}


async def test_a_match_that_ends_while_it_is_only_drawn_keeps_its_events_and_gets_no_result(looking: Browsing) -> None:
    looking.drawn = sofascore_page("0 : 0", "Ended")
    await looking.look(2)
    assert looking.state.row.status is MatchStatus.LIVE
    looking.pages.event = PageNotFound("404")
    looking.pages.incidents = []

    state = await looking.road.finish(looking.state, PollAttempt())

    assert state.row.phase is Phase.COMPLETED
    assert FootballKind.RESULT not in {key.kind for key in state.events}
    assert looking.versions() == ["goal:home:1 1 insert"]
    assert "result" in {finding.place for finding in looking.store.findings[1]}


@pytest.mark.parametrize(
    "page",
    [
        sofascore_page("- : -", ""),
        sofascore_page("2 : 1", home="Another Town"),
        sofascore_page("2 : 1", home="Port Élan United", away="Fennick FC"),
        sofascore_page("61 : 1"),
    ],
    ids=["undrawn", "another match", "sides exchanged", "impossible"],
)
async def test_a_drawn_page_that_cannot_be_believed_changes_nothing(looking: Browsing, page: bytes) -> None:
    looking.drawn = page

    with pytest.raises(LayoutChanged):
        await looking.look()

    assert (looking.score(), len(looking.store.updates)) == ((1, 0), 1)


async def test_a_list_that_was_doubted_before_a_look_at_the_drawn_page_is_doubted_afresh(looking: Browsing) -> None:
    looking.pages.event = event("1st half", 1, 0)
    looking.pages.incidents = [goal(900, 1, 0, scorer=11, time=5), goal(901, 2, 0, scorer=12, time=50)]
    await looking.look()
    assert looking.state.doubt is not None
    looking.pages.event = BROKEN
    await looking.look()
    looking.pages.event = event("1st half", 1, 0)

    await looking.look()

    assert looking.versions() == ["goal:home:1 1 insert"]


async def test_whoever_is_refused_does_not_go_round_by_the_drawn_page(looking: Browsing) -> None:
    looking.pages.event = SourceRefused("403")

    with pytest.raises(SourceRefused):
        await looking.look()

    assert not any(request.is_rendered for request in looking.fetcher.requests)
