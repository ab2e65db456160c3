"""Cricket by the rendered page: the score is updated, the events stay, and the API shows it."""

from typing import Any

import msgspec
import pytest

from longstop.errors import (
    BrowserLost,
    CircuitOpen,
    FetchError,
    FetchTimeout,
    ImpossibleObservation,
    LayoutChanged,
    PageNotFound,
    ParseError,
    SourceChallenged,
    SourceError,
    SourceFailed,
    SourceRefused,
    WrongMatch,
)
from longstop.fetching.base import FetchRequest
from longstop.matches.pipeline import Pipeline
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.model.match import MatchStatus, Phase
from longstop.model.polling_status import SyncState
from longstop.resilience.breaker import source_policy
from longstop.sources.crex.source import CrexSource
from longstop.sports.base import DOM_ONLY, is_name_of
from longstop.sports.cricket.model import CricketKind
from longstop.sports.cricket.sport import Cricket
from longstop.storage.error_pages_and_screenshots import NoPages
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import ResourceFailed
from longstop.telemetry.events.sources import SelectorFallbackUsed
from longstop.testing import ScriptedFetcher, ScriptedReply
from longstop.watching.source_and_layout_breakers import MAX_UNREADABLE, SourceAdmission
from longstop_lab.simulator.pages.hostile import redesigned
from tests.builders import CREX_CONFIG
from tests.live import finished
from tests.rendered_pages import crex_page
from tests.unit.sports.cricket.polling import Polling

BROKEN = b'{"a": 1}'


class Browsing(Polling):
    """A match that a browser reads; `drawn` is what its page shows."""

    def __init__(self, *, is_browser_based: bool = True) -> None:
        super().__init__()
        self.drawn: ScriptedReply = crex_page("14/0(2.1)")
        bus = Bus([self.sink])
        admission = SourceAdmission(
            "crex", policy=source_policy(), probe_seconds=300.0, pages=NoPages(), clock=self.clock, bus=bus
        )
        self.fetcher = ScriptedFetcher(self._answer)
        self.client = SourceClient(CrexSource(CREX_CONFIG), self.fetcher, admission, is_browser_based=is_browser_based)
        self.pipeline = Pipeline(
            Cricket(), client=self.client, store=self.store, bus=bus, clock=self.clock, scraper_id="node-a"
        )

    def _answer(self, request: FetchRequest) -> ScriptedReply:
        return self.drawn if request.is_rendered else self.site(request)

    @property
    def times_drawn(self) -> int:
        return sum(request.is_rendered for request in self.fetcher.requests)

    def payload(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.store.snapshots[1].payload)
        return found

    def fell_back(self) -> list[tuple[str, int]]:
        return [(event.field, event.selector) for event in self.sink.events if isinstance(event, SelectorFallbackUsed)]


async def begun(*values: str, is_browser_based: bool = True) -> Browsing:
    polling = Browsing(is_browser_based=is_browser_based)
    polling.match.bowl(*values or ["1"] * 12)
    await polling.start()
    await polling.poll()
    return polling


async def broken(*values: str) -> Browsing:
    """Return a match that was read well, and whose live state is another one now."""
    polling = await begun(*values)
    polling.site.faults["getSV3"] = BROKEN
    return polling


@pytest.mark.req("FR-019")
async def test_while_the_data_is_broken_the_rendered_score_is_served_and_the_events_stay() -> None:
    polling = await broken()
    balls = polling.stored_balls()

    await polling.poll()

    assert polling.payload()["innings"][0] | {"team": "T1"} == {
        "number": 1,
        "team": "T1",
        "is_closed": False,
        "runs": 14,
        "wickets": 0,
        "overs": {"over": 2, "ball": 1},
    }
    assert polling.stored_balls() == balls
    assert polling.store.findings[1] == (DOM_ONLY,)
    assert (polling.state.row.status, polling.state.sync) == (MatchStatus.LIVE, SyncState.RECOVERING)
    assert "batters" not in polling.payload()


@pytest.mark.req("FR-019")
async def test_once_the_data_is_back_everything_is_read_and_the_finding_is_closed() -> None:
    polling = await broken()
    await polling.poll()
    polling.match.bowl("4", "wd", "1")
    del polling.site.faults["getSV3"]

    await polling.poll()

    assert polling.stored_balls() == polling.true_balls()
    assert polling.store.findings[1] == ()
    assert polling.state.sync is SyncState.IN_SYNC
    polling.check_invariants()


async def test_polls_at_an_unchanged_rendered_page_store_nothing_more() -> None:
    polling = await broken()
    await polling.poll()
    updates = len(polling.store.updates)

    outcome = await polling.poll(3)

    assert outcome.receipt is None
    assert len(polling.store.updates) == updates


async def test_an_innings_that_only_the_rendered_page_shows_is_served_ahead_of_its_events() -> None:
    polling = await broken()
    polling.drawn = crex_page("9/1(1.0)", "120/10(19.3)", "w", batting="Blues", bowling="Reds")

    await polling.poll()

    payload = polling.payload()
    assert [(each["number"], each["runs"], each["is_closed"]) for each in payload["innings"]] == [
        (1, 120, True),
        (2, 9, False),
    ]
    assert (payload["current_innings"], payload["score"]["team_b"]["runs"]) == (2, 9)
    assert polling.state.newest_innings == 1


async def test_a_rendered_result_is_said_in_words_and_is_no_event() -> None:
    polling = await broken()
    polling.drawn = crex_page("14/0(2.1)", said="Reds won by 4 runs")

    await polling.poll()

    assert polling.payload()["headline"] == "Reds won by 4 runs"
    assert (polling.payload()["status"], "result" in polling.payload()) == ("live", False)
    assert not polling.stored(CricketKind.RESULT)


async def test_a_match_that_is_gone_after_it_was_only_rendered_ends_without_an_event_of_what_was_rendered() -> None:
    polling = await broken()
    polling.drawn = crex_page("12/0(2.0)", said="Reds won by 4 runs")
    await polling.poll()
    polling.site.faults["getSV3"] = PageNotFound("404")

    state = await finished(polling.pipeline, polling.state)

    assert state.row.phase is Phase.COMPLETED
    assert not polling.stored(CricketKind.RESULT)
    assert not polling.stored(CricketKind.INNINGS)
    assert "result" in {finding.place for finding in polling.store.findings[1]}


async def test_after_a_restart_the_rendered_page_is_compared_with_what_is_stored() -> None:
    polling = await broken()
    await polling.restart()
    polling.drawn = crex_page("11/0(2.0)")

    with pytest.raises(LayoutChanged):
        await polling.poll()
    polling.drawn = crex_page("15/0(2.2)")
    await polling.poll()

    assert polling.payload()["innings"][0]["runs"] == 15
    assert polling.payload()["title"] == "Reds vs Blues - T20"


# --- when it is called for ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", ["getSV3", "getBallFeeds"])
@pytest.mark.parametrize("body", [BROKEN, b"<html>", b"[{"])
async def test_any_page_of_a_poll_that_cannot_be_read_leads_to_the_rendered_one(resource: str, body: bytes) -> None:
    polling = await begun()
    polling.site.faults[resource] = body

    await polling.poll()

    assert polling.store.findings[1] == (DOM_ONLY,)


@pytest.mark.parametrize(
    "error",
    [
        SourceRefused("403"),
        SourceChallenged("prove it"),
        SourceFailed("500"),
        CircuitOpen("the circuit is open"),
        BrowserLost("crashed"),
        FetchTimeout("once"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_refusal_or_time_out_does_not_lead_to_the_rendered_page(error: FetchError) -> None:
    polling = await begun()
    polling.site.faults["getSV3"] = error

    with pytest.raises(type(error)):
        await polling.poll()

    assert polling.times_drawn == 0


async def test_a_second_time_out_in_a_row_leads_to_the_rendered_page() -> None:
    polling = await begun()
    polling.site.faults["getSV3"] = FetchTimeout("the page never asks")

    with pytest.raises(FetchTimeout):
        await polling.poll()
    await polling.poll()

    assert polling.payload()["innings"][0]["runs"] == 14


async def test_a_good_poll_in_between_forgets_a_time_out() -> None:
    polling = await begun()

    for _ in range(3):
        polling.site.faults["getSV3"] = FetchTimeout("slow")
        with pytest.raises(FetchTimeout):
            await polling.poll()
        del polling.site.faults["getSV3"]
        await polling.poll()

    assert polling.times_drawn == 0


async def test_a_request_that_timed_out_twice_by_itself_is_enough() -> None:
    polling = await begun()
    error = FetchTimeout("the page never asks")
    error.retries = 1
    polling.site.faults["getSV3"] = error

    await polling.poll()

    assert polling.times_drawn == 1


@pytest.mark.req("EC1")
async def test_it_goes_on_while_a_broken_kind_of_page_is_tried_rarely() -> None:
    polling = await broken()
    await polling.poll(MAX_UNREADABLE + 1)
    asked = polling.site.count("getSV3")
    polling.drawn = crex_page("20/0(3.0)")

    await polling.poll()

    assert polling.site.count("getSV3") == asked
    assert polling.payload()["innings"][0]["runs"] == 20


async def test_without_a_browser_there_is_no_rendered_page() -> None:
    polling = await begun(is_browser_based=False)
    polling.site.faults["getSV3"] = BROKEN

    with pytest.raises(ParseError):
        await polling.poll()

    assert polling.times_drawn == 0


async def test_a_match_that_was_never_read_is_not_begun_from_a_rendered_page() -> None:
    polling = Browsing()
    polling.site.faults["getSV3"] = BROKEN
    await polling.start()

    with pytest.raises(ParseError):
        await polling.poll()

    assert not polling.store.updates


# --- what is not believed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (crex_page("", "", ""), LayoutChanged),
        (crex_page("40/0(4.0)", batting="Reds", bowling="Greens"), WrongMatch),
        (crex_page("40/0(4.0)", batting="Reds", bowling="Reds"), WrongMatch),
        (crex_page("40/0(4.0)", batting="", bowling=""), WrongMatch),
        (crex_page("40/11(4.0)"), ImpossibleObservation),
        (crex_page("40/0(21.0)"), ImpossibleObservation),
        (crex_page("3/0(2.1)"), ImpossibleObservation),
        (crex_page("14/0(1.5)"), ImpossibleObservation),
        (crex_page("0/0(0.0)", said=""), ImpossibleObservation),
        (SourceChallenged("prove it"), SourceChallenged),
    ],
)
async def test_a_rendered_page_that_cannot_be_believed_changes_nothing_and_the_poll_fails_as_it_had(
    page: ScriptedReply, why: type[SourceError]
) -> None:
    polling = await broken()
    before, polling.drawn = polling.payload(), page

    with pytest.raises(LayoutChanged) as caught:
        await polling.poll()

    reported = [event for event in polling.sink.events if isinstance(event, ResourceFailed)]
    assert isinstance(caught.value.__cause__, why)
    assert [(event.resource, event.error_type) for event in reported] == [("drawn", why.__name__)]
    assert (polling.payload(), len(polling.store.updates)) == (before, 1)


@pytest.mark.parametrize(
    ("name", "shown", "is_it"),
    [
        ("Nepal", "Nepal", True),
        ("Nepal", "NEP", True),
        ("New Zealand", "NZ", True),
        ("Nepal", "Netherlands", False),
        ("Nepal", "N", False),
        ("Nepal", "", False),
        ("Nepal", "Nepal Women", False),
    ],
)
def test_a_side_may_be_called_by_its_name_its_beginning_or_its_initials(name: str, shown: str, is_it: bool) -> None:
    assert is_name_of(name, shown) is is_it


async def test_a_side_whose_name_begins_like_the_other_ones_is_reported_apart_from_it() -> None:
    polling = Browsing()
    polling.site.names |= {"T1": "Reds A", "T2": "Reds"}
    polling.match.bowl("1")
    await polling.start()
    await polling.poll()
    polling.site.faults["getSV3"] = BROKEN
    polling.drawn = crex_page("14/0(2.1)", batting="Reds A", bowling="Reds")

    await polling.poll()

    assert polling.state.board is not None
    assert (polling.state.board.batting, polling.state.board.bowling) == ("T1", "T2")


# --- emitting --------------------------------------------------------------------------------------------------------


@pytest.mark.req("FR-019")
async def test_a_field_that_was_found_elsewhere_is_reported_once_as_long_as_it_stays_there() -> None:
    polling = await broken()
    await polling.poll()
    assert polling.fell_back() == []

    polling.drawn = redesigned(crex_page("14/0(2.1)"))
    await polling.poll(3)

    assert polling.fell_back() == [("sides", 1), ("score", 2), ("team", 2), ("headline", 2)]


async def test_a_field_that_falls_back_again_later_is_reported_again() -> None:
    polling = await broken()

    for page in (crex_page("14/0(2.1)"), redesigned(crex_page("14/0(2.1)"))) * 2:
        polling.drawn = page
        await polling.poll()

    assert polling.fell_back().count(("score", 2)) == 2
