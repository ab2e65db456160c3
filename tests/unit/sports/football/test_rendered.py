"""Football from the rendered page: the score continues, events stay, and a disallowed goal needs two polls."""

import pytest

from longstop.errors import LayoutChanged, PageNotFound, SourceRefused
from longstop.fetching.base import FetchRequest
from longstop.matches.pipeline import Pipeline
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.model.match import MatchStatus, Phase
from longstop.model.polling_status import SyncState
from longstop.sources.sofascore.source import SofascoreSource
from longstop.sports.base import DOM_ONLY
from longstop.sports.football.model import FootballKind
from longstop.sports.football.sport import Football
from longstop.telemetry.bus import Bus
from longstop.testing import ScriptedFetcher, ScriptedReply
from tests.football_site import SOFASCORE_CONFIG, LookingAtFootball, event, goal, lineups
from tests.live import finished
from tests.rendered_pages import sofascore_page

BROKEN = {"status": "another shape"}


class Browsing(LookingAtFootball):
    """A match that a browser reads; `drawn` is what its page shows."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: ScriptedReply = sofascore_page("2 : 1", "2nd half")
        self.fetcher = ScriptedFetcher(self._answer)
        self.client = SourceClient(SofascoreSource(SOFASCORE_CONFIG), self.fetcher, is_browser_based=True)
        self.pipeline = Pipeline(
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
async def polling() -> Browsing:
    """Return a match that was read well at 1-0, and whose event is another one now."""
    polling = Browsing()
    await polling.start()
    polling.pages.event = event("1st half", 1, 0)
    polling.pages.incidents = [goal(100, 1, 0)]
    polling.pages.lineups = lineups()
    await polling.poll()
    polling.pages.event = BROKEN
    return polling


@pytest.mark.req("FR-019")
async def test_while_the_data_is_broken_the_rendered_score_is_served_and_the_events_stay(polling: Browsing) -> None:
    before = polling.payload()

    await polling.poll()

    after = polling.payload()
    assert (polling.score(), after["headline"], after["status"]) == ((2, 1), "2nd half", "live")
    assert {name: after[name] for name in ("teams", "metadata", "incidents", "lineups", "title", "players")} == {
        name: before[name] for name in ("teams", "metadata", "incidents", "lineups", "title", "players")
    }
    assert polling.versions() == ["goal:home:1 1 insert"]
    assert polling.store.findings[1] == (DOM_ONLY,)
    assert polling.state.sync is SyncState.RECOVERING


@pytest.mark.req("FR-019")
async def test_once_the_data_is_back_the_events_catch_up_and_the_finding_is_closed(polling: Browsing) -> None:
    await polling.poll()
    polling.pages.event = event("2nd half", 2, 1)
    polling.pages.incidents = [
        goal(100, 1, 0),
        goal(101, 2, 0, time=50),
        goal(102, 2, 1, is_home=False, time=60, scorer=41),
    ]

    await polling.poll()

    assert polling.versions()[1:] == ["goal:home:2 1 insert", "goal:away:1 1 insert"]
    assert (polling.store.findings[1], polling.state.sync) == ((), SyncState.IN_SYNC)


async def test_a_rendered_score_that_goes_back_counts_when_it_is_seen_twice(polling: Browsing) -> None:
    polling.drawn = sofascore_page("0 : 0", "1st half")

    await polling.poll()
    assert polling.score() == (1, 0)
    await polling.poll()

    assert polling.score() == (0, 0)
    assert polling.versions() == ["goal:home:1 1 insert"]


async def test_a_rendered_score_that_goes_back_and_comes_again_was_a_cached_copy(polling: Browsing) -> None:
    for page in (sofascore_page("0 : 0"), sofascore_page("1 : 0"), sofascore_page("0 : 0")):
        polling.drawn = page
        await polling.poll()

        assert polling.score() == (1, 0)


async def test_after_a_restart_the_rendered_page_is_compared_with_what_is_stored(polling: Browsing) -> None:
    await polling.restart()
    polling.drawn = sofascore_page("0 : 0", "1st half")

    await polling.poll()

    assert polling.score() == (1, 0)


@pytest.mark.req("FLD-3")
async def test_what_a_page_does_not_draw_stays_while_the_score_is_the_same_and_goes_with_it() -> None:
    polling = Browsing()
    await polling.start()
    kicks = {"current": 5, "display": 1, "period1": 0, "period2": 1, "penalties": 4}
    shoot_out = {"code": 50, "description": "Penalties", "type": "inprogress"}
    polling.pages.event = event("2nd half", kicks, {**kicks, "current": 4, "penalties": 3}, status=shoot_out)
    await polling.poll()
    polling.pages.event = BROKEN

    polling.drawn = sofascore_page("1 : 1", "Penalties")
    await polling.poll()
    assert polling.payload()["score"]["penalties"] == {"home": 4, "away": 3}
    polling.drawn = sofascore_page("1 : 1", "AP")
    await polling.poll()

    assert polling.payload()["score"] == {"home": 1, "away": 1, "periods": []}


async def test_a_match_that_ends_while_it_is_only_rendered_keeps_its_events_and_gets_no_result(
    polling: Browsing,
) -> None:
    polling.drawn = sofascore_page("0 : 0", "Ended")
    await polling.poll(2)
    assert polling.state.row.status is MatchStatus.LIVE
    polling.pages.event = PageNotFound("404")
    polling.pages.incidents = []

    state = await finished(polling.pipeline, polling.state)

    assert state.row.phase is Phase.COMPLETED
    assert FootballKind.RESULT not in {key.kind for key in state.events}
    assert polling.versions() == ["goal:home:1 1 insert"]
    assert "result" in {finding.place for finding in polling.store.findings[1]}


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
async def test_a_rendered_page_that_cannot_be_believed_changes_nothing(polling: Browsing, page: bytes) -> None:
    polling.drawn = page

    with pytest.raises(LayoutChanged):
        await polling.poll()

    assert (polling.score(), len(polling.store.updates)) == ((1, 0), 1)


async def test_a_list_that_was_doubted_before_a_poll_at_the_rendered_page_is_doubted_again(polling: Browsing) -> None:
    polling.pages.event = event("1st half", 1, 0)
    polling.pages.incidents = [goal(900, 1, 0, scorer=11, time=5), goal(901, 2, 0, scorer=12, time=50)]
    await polling.poll()
    assert polling.state.doubt is not None
    polling.pages.event = BROKEN
    await polling.poll()
    polling.pages.event = event("1st half", 1, 0)

    await polling.poll()

    assert polling.versions() == ["goal:home:1 1 insert"]


async def test_a_refusal_does_not_lead_to_the_rendered_page(polling: Browsing) -> None:
    polling.pages.event = SourceRefused("403")

    with pytest.raises(SourceRefused):
        await polling.poll()

    assert not any(request.is_rendered for request in polling.fetcher.requests)


async def test_what_does_not_change_during_play_is_kept_while_the_page_is_read(polling: Browsing) -> None:
    polling.pages.event = event("1st half", 1, 0, referee={"name": "A. Whistle"}, roundInfo={"name": "Final"})
    await polling.poll()
    known = polling.payload()["metadata"]
    polling.pages.event = BROKEN

    await polling.poll(4)

    assert polling.score() == (2, 1)
    assert polling.payload()["metadata"] == known
    assert (known["referee"], known["round_name"]) == ("A. Whistle", "Final")
