"""Cricket by the drawn page: the score goes on, the events stay, and everybody is told."""

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
from longstop.matches.client import PollAttempt, SourceClient
from longstop.matches.pipeline import Pipeline
from longstop.model.match import MatchStatus, Phase, SyncState
from longstop.resilience.breaker import source_policy
from longstop.sources.crex.source import CrexSource
from longstop.sports.base import DOM_ONLY, is_name_of
from longstop.sports.cricket.model import CricketKind
from longstop.sports.cricket.sport import Cricket
from longstop.storage.error_pages import NoPages
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.matches import ResourceFailed
from longstop.telemetry.events.sources import SelectorFallbackUsed
from longstop.testing import ScriptedFetcher, ScriptedReply
from longstop.watching.admission import MAX_UNREADABLE, SourceAdmission
from longstop_lab.simulator.pages.hostile import redesigned
from tests.builders import CREX_CONFIG
from tests.drawn_pages import crex_page
from tests.unit.sports.cricket.polling import Looking

BROKEN = b'{"a": 1}'


class Browsing(Looking):
    """A match that a browser reads; `drawn` is what its page shows."""

    def __init__(self, *, is_browsed: bool = True) -> None:
        super().__init__()
        self.drawn: ScriptedReply = crex_page("14/0(2.1)")
        bus = Bus([self.sink])
        admission = SourceAdmission(
            "crex", policy=source_policy(), probe_seconds=300.0, pages=NoPages(), clock=self.clock, bus=bus
        )
        self.fetcher = ScriptedFetcher(self._answer)
        self.client = SourceClient(CrexSource(CREX_CONFIG), self.fetcher, admission, is_browsed=is_browsed)
        self.road = Pipeline(
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


async def begun(*values: str, is_browsed: bool = True) -> Browsing:
    looking = Browsing(is_browsed=is_browsed)
    looking.match.bowl(*values or ["1"] * 12)
    await looking.start()
    await looking.look()
    return looking


async def broken(*values: str) -> Browsing:
    """Return a match that was read well, and whose live state is another one now."""
    looking = await begun(*values)
    looking.site.faults["getSV3"] = BROKEN
    return looking


@pytest.mark.req("FR-019")
async def test_while_the_data_is_broken_the_drawn_score_is_served_and_the_events_stay() -> None:
    looking = await broken()
    balls = looking.stored_balls()

    await looking.look()

    assert looking.payload()["innings"][0] | {"team": "T1"} == {
        "number": 1,
        "team": "T1",
        "is_closed": False,
        "runs": 14,
        "wickets": 0,
        "overs": {"over": 2, "ball": 1},
    }
    assert looking.stored_balls() == balls
    assert looking.store.findings[1] == (DOM_ONLY,)
    assert (looking.state.row.status, looking.state.sync) == (MatchStatus.LIVE, SyncState.RECOVERING)
    assert "batters" not in looking.payload()


@pytest.mark.req("FR-019")
async def test_once_the_data_is_back_everything_is_read_and_the_finding_is_closed() -> None:
    looking = await broken()
    await looking.look()
    looking.match.bowl("4", "wd", "1")
    del looking.site.faults["getSV3"]

    await looking.look()

    assert looking.stored_balls() == looking.true_balls()
    assert looking.store.findings[1] == ()
    assert looking.state.sync is SyncState.IN_SYNC
    looking.check_invariants()


async def test_looks_at_an_unchanged_drawn_page_store_nothing_more() -> None:
    looking = await broken()
    await looking.look()
    updates = len(looking.store.updates)

    outcome = await looking.look(3)

    assert outcome.receipt is None
    assert len(looking.store.updates) == updates


async def test_an_innings_that_only_the_drawn_page_shows_is_served_ahead_of_its_events() -> None:
    looking = await broken()
    looking.drawn = crex_page("9/1(1.0)", "120/10(19.3)", "w", batting="Blues", bowling="Reds")

    await looking.look()

    payload = looking.payload()
    assert [(each["number"], each["runs"], each["is_closed"]) for each in payload["innings"]] == [
        (1, 120, True),
        (2, 9, False),
    ]
    assert (payload["current_innings"], payload["score"]["team_b"]["runs"]) == (2, 9)
    assert looking.state.newest_innings == 1


async def test_a_drawn_result_is_said_in_words_and_is_no_event() -> None:
    looking = await broken()
    looking.drawn = crex_page("14/0(2.1)", said="Reds won by 4 runs")

    await looking.look()

    assert looking.payload()["headline"] == "Reds won by 4 runs"
    assert (looking.payload()["status"], "result" in looking.payload()) == ("live", False)
    assert not looking.stored(CricketKind.RESULT)


async def test_a_match_that_is_gone_after_it_was_only_drawn_ends_without_an_event_of_what_was_drawn() -> None:
    looking = await broken()
    looking.drawn = crex_page("12/0(2.0)", said="Reds won by 4 runs")
    await looking.look()
    looking.site.faults["getSV3"] = PageNotFound("404")

    state = await looking.road.finish(looking.state, PollAttempt())

    assert state.row.phase is Phase.COMPLETED
    assert not looking.stored(CricketKind.RESULT)
    assert not looking.stored(CricketKind.INNINGS)
    assert "result" in {finding.place for finding in looking.store.findings[1]}


async def test_after_a_restart_the_drawn_page_is_compared_with_what_is_stored() -> None:
    looking = await broken()
    await looking.restart()
    looking.drawn = crex_page("11/0(2.0)")

    with pytest.raises(LayoutChanged):
        await looking.look()
    looking.drawn = crex_page("15/0(2.2)")
    await looking.look()

    assert looking.payload()["innings"][0]["runs"] == 15
    assert looking.payload()["title"] == "Reds vs Blues - T20"


# --- when it is called for ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", ["getSV3", "getBallFeeds"])
@pytest.mark.parametrize("body", [BROKEN, b"<html>", b"[{"])
async def test_any_page_of_a_look_that_cannot_be_read_leads_to_the_drawn_one(resource: str, body: bytes) -> None:
    looking = await begun()
    looking.site.faults[resource] = body

    await looking.look()

    assert looking.store.findings[1] == (DOM_ONLY,)


@pytest.mark.parametrize(
    "error",
    [
        SourceRefused("403"),
        SourceChallenged("prove it"),
        SourceFailed("500"),
        CircuitOpen("left alone"),
        BrowserLost("crashed"),
        FetchTimeout("once"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whoever_is_refused_or_not_answered_does_not_go_round_by_the_drawn_page(error: FetchError) -> None:
    looking = await begun()
    looking.site.faults["getSV3"] = error

    with pytest.raises(type(error)):
        await looking.look()

    assert looking.times_drawn == 0


async def test_a_second_time_out_in_a_row_leads_to_the_drawn_page() -> None:
    looking = await begun()
    looking.site.faults["getSV3"] = FetchTimeout("the page never asks")

    with pytest.raises(FetchTimeout):
        await looking.look()
    await looking.look()

    assert looking.payload()["innings"][0]["runs"] == 14


async def test_a_good_look_in_between_forgets_a_time_out() -> None:
    looking = await begun()

    for _ in range(3):
        looking.site.faults["getSV3"] = FetchTimeout("slow")
        with pytest.raises(FetchTimeout):
            await looking.look()
        del looking.site.faults["getSV3"]
        await looking.look()

    assert looking.times_drawn == 0


async def test_a_request_that_timed_out_twice_by_itself_is_enough() -> None:
    looking = await begun()
    error = FetchTimeout("the page never asks")
    error.retries = 1
    looking.site.faults["getSV3"] = error

    await looking.look()

    assert looking.times_drawn == 1


@pytest.mark.req("EC1")
async def test_it_goes_on_while_a_broken_kind_of_page_is_tried_rarely() -> None:
    looking = await broken()
    await looking.look(MAX_UNREADABLE + 1)
    asked = looking.site.count("getSV3")
    looking.drawn = crex_page("20/0(3.0)")

    await looking.look()

    assert looking.site.count("getSV3") == asked
    assert looking.payload()["innings"][0]["runs"] == 20


async def test_without_a_browser_there_is_no_drawn_page() -> None:
    looking = await begun(is_browsed=False)
    looking.site.faults["getSV3"] = BROKEN

    with pytest.raises(ParseError):
        await looking.look()

    assert looking.times_drawn == 0


async def test_a_match_that_was_never_read_is_not_begun_from_a_drawn_page() -> None:
    looking = Browsing()
    looking.site.faults["getSV3"] = BROKEN
    await looking.start()

    with pytest.raises(ParseError):
        await looking.look()

    assert not looking.store.updates


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
async def test_a_drawn_page_that_cannot_be_believed_changes_nothing_and_the_look_fails_as_it_had(
    page: ScriptedReply, why: type[SourceError]
) -> None:
    looking = await broken()
    before, looking.drawn = looking.payload(), page

    with pytest.raises(LayoutChanged) as caught:
        await looking.look()

    told = [event for event in looking.sink.events if isinstance(event, ResourceFailed)]
    assert isinstance(caught.value.__cause__, why)
    assert [(event.resource, event.error_type) for event in told] == [("drawn", why.__name__)]
    assert (looking.payload(), len(looking.store.updates)) == (before, 1)


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


async def test_a_side_whose_name_begins_like_the_other_ones_is_told_apart_from_it() -> None:
    looking = Browsing()
    looking.site.names |= {"T1": "Reds A", "T2": "Reds"}
    looking.match.bowl("1")
    await looking.start()
    await looking.look()
    looking.site.faults["getSV3"] = BROKEN
    looking.drawn = crex_page("14/0(2.1)", batting="Reds A", bowling="Reds")

    await looking.look()

    assert looking.state.board is not None
    assert (looking.state.board.batting, looking.state.board.bowling) == ("T1", "T2")


# --- telling --------------------------------------------------------------------------------------------------------


@pytest.mark.req("FR-019")
async def test_a_field_that_was_found_elsewhere_is_told_once_as_long_as_it_stays_there() -> None:
    looking = await broken()
    await looking.look()
    assert looking.fell_back() == []

    looking.drawn = redesigned(crex_page("14/0(2.1)"))
    await looking.look(3)

    assert looking.fell_back() == [("sides", 1), ("score", 2), ("team", 2), ("headline", 2)]


async def test_a_field_that_falls_back_again_later_is_told_again() -> None:
    looking = await broken()

    for page in (crex_page("14/0(2.1)"), redesigned(crex_page("14/0(2.1)"))) * 2:
        looking.drawn = page
        await looking.look()

    assert looking.fell_back().count(("score", 2)) == 2
