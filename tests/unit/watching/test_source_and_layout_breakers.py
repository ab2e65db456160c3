"""Admission control of one source: which queries it admits, and how it closes and opens."""

import asyncio
from collections.abc import Callable
from datetime import datetime

import pytest

from longstop.errors import (
    CircuitOpen,
    FetchTimeout,
    LayoutChanged,
    LayoutPaused,
    PageNotFound,
    SourceChallenged,
    SourceFailed,
    SourceRefused,
    SourceUnreachable,
    StorageError,
)
from longstop.model.request_pause import PauseKind
from longstop.model.source_queries_and_answers import LIST, LIVE
from longstop.resilience.breaker import source_policy
from longstop.sports.cricket.model import BALLS, NAMES, SCORECARD
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.sources import (
    ChallengeCleared,
    ChallengeServed,
    CircuitOpened,
    LayoutBroken,
    LayoutRecovered,
)
from longstop.watching.source_and_layout_breakers import MAX_UNREADABLE, SourceAdmission
from longstop.watching.stored_pauses import StoredPauses
from tests.memory import MemoryPauses, MemorySink
from tests.readers import ManualClock

PROBE = 300.0
RESOURCES = (LIST, LIVE, BALLS, SCORECARD, NAMES)
REFUSED = SourceRefused("403")


class Pages:
    """Stores pages in memory."""

    def __init__(self, path: str | None = "storage/error_pages/1.html") -> None:
        self.path = path
        self.kept: list[tuple[str, bytes]] = []

    def keep(self, name_hint: str, body: bytes, now: datetime) -> str | None:
        self.kept.append((name_hint, body))
        return self.path


class Standing:
    """A client of the admission control."""

    def __init__(
        self,
        pages: Pages | None = None,
        request_screenshot: Callable[[str, str], None] | None = None,
        clock: ManualClock | None = None,
        pauses: StoredPauses | None = None,
    ) -> None:
        self.clock = clock or ManualClock()
        self.pauses = pauses or StoredPauses(MemoryPauses(), clock=self.clock, boot=lambda: "boot")
        self.sink = MemorySink()
        self.pages = pages or Pages()
        self.admission = SourceAdmission(
            "crex",
            policy=source_policy(),
            probe_seconds=PROBE,
            pages=self.pages,
            clock=self.clock,
            bus=Bus([self.sink]),
            pauses=self.pauses.of("crex"),
            request_screenshot=request_screenshot,
        )

    def restarted(self) -> "Standing":
        """Return the admission control of a scraper that follows this one."""
        return Standing(clock=self.clock, pauses=self.pauses)

    def ask(self, error: BaseException | None = None, resource: str = LIVE, body: bytes | None = b"<p>") -> None:
        """Go through and come back with this."""
        self.admission.admit(resource)(error, body, "")

    def is_let_in(self, resource: str = LIVE) -> bool:
        """Return whether one may pass; who passes gives it back at once."""
        try:
            record = self.admission.admit(resource)
        except CircuitOpen:
            return False
        record(asyncio.CancelledError(), None, "")
        return True

    def break_layout(self, resource: str = LIVE) -> None:
        for _ in range(MAX_UNREADABLE + 1):
            self.ask(LayoutChanged("no score"), resource)

    def names(self) -> list[str]:
        return [event.name for event in self.sink.events]


# --- a page that has changed ----------------------------------------------------------------------------------------


@pytest.mark.req("EC1")
def test_the_eleventh_unreadable_page_in_a_row_is_reported_once_and_kept() -> None:
    pages = Pages()
    standing = Standing(pages)

    for number in range(10):
        standing.ask(LayoutChanged("no score"), body=b"%d" % number)
    before = standing.names()
    standing.ask(LayoutChanged("no score"), body=b"the page")

    assert before == []
    assert standing.sink.events == [
        LayoutBroken(
            source="crex",
            resource="live",
            failures=11,
            error_message="no score",
            page="storage/error_pages/1.html",
            retry_in_seconds=PROBE,
        )
    ]
    assert pages.kept == [("crex-live", b"0"), ("crex-live", b"the page")]  # the first, and the one that broke it


@pytest.mark.req("EC1")
def test_that_kind_of_page_is_then_tried_every_five_minutes_and_no_more() -> None:
    standing = Standing()
    standing.break_layout()

    tries = []
    for second in range(1, 1501):
        standing.clock.advance(1)
        try:
            standing.ask(LayoutChanged("no score"))
        except CircuitOpen:
            continue
        tries.append(second)

    assert tries == [300, 600, 900, 1200, 1500]
    assert standing.names() == ["layout.broken"]


def test_a_rejected_query_learns_for_how_long() -> None:
    standing = Standing()
    standing.break_layout()
    standing.clock.advance(100)

    with pytest.raises(CircuitOpen, match=r"cannot parse live pages of crex; next attempt in 200 s") as caught:
        standing.ask()

    assert caught.value.retry_after_seconds == 200


@pytest.mark.req("EC1")
def test_the_first_readable_page_ends_the_break() -> None:
    standing = Standing()
    standing.break_layout()
    standing.clock.advance(PROBE)

    standing.ask()

    assert standing.sink.events[-1] == LayoutRecovered(source="crex", resource="live", failures=11)
    assert standing.is_let_in()


def test_after_a_recovery_it_takes_eleven_again() -> None:
    standing = Standing()
    standing.break_layout()
    standing.clock.advance(PROBE)
    standing.ask()

    for _ in range(10):
        standing.ask(LayoutChanged("no score"))

    assert standing.names() == ["layout.broken", "layout.recovered"]


def test_other_kinds_of_page_go_on() -> None:
    standing = Standing()

    standing.break_layout(SCORECARD)

    assert not standing.is_let_in(SCORECARD)
    assert all(standing.is_let_in(each) for each in RESOURCES if each != SCORECARD)


def test_a_readable_page_in_between_resets_the_count() -> None:
    standing = Standing()

    for _ in range(5):
        for _ in range(25):
            standing.ask()
        for _ in range(10):
            standing.ask(LayoutChanged("no score"))

    assert standing.names() == []


def test_pages_of_another_kind_do_not_count_for_this_one() -> None:
    standing = Standing()

    for _ in range(10):
        standing.ask(LayoutChanged("no score"), LIVE)
        standing.ask(None, BALLS)
    standing.ask(LayoutChanged("no score"), LIVE)

    assert standing.names() == ["layout.broken"]


def test_one_try_at_a_time_while_it_is_not_known_how_it_ends() -> None:
    standing = Standing()
    standing.break_layout()
    standing.clock.advance(PROBE)

    standing.admission.admit(LIVE)

    with pytest.raises(CircuitOpen):
        standing.admission.admit(LIVE)


@pytest.mark.parametrize(
    "error", [asyncio.CancelledError(), CircuitOpen("the host needs rest"), SourceUnreachable("reset"), StorageError()]
)
def test_a_try_that_says_nothing_about_the_page_is_given_back(error: BaseException) -> None:
    standing = Standing()
    standing.break_layout()
    standing.clock.advance(PROBE)

    standing.ask(error)
    standing.ask(None)

    assert standing.names() == ["layout.broken", "layout.recovered"]


def test_a_try_that_the_source_breaker_turns_away_is_not_used_up() -> None:
    standing = Standing()
    standing.break_layout()
    for _ in range(25):
        if standing.is_let_in(BALLS):
            standing.ask(REFUSED, BALLS)
    assert standing.names() == ["layout.broken", "circuit_opened"]
    standing.clock.advance(PROBE)
    assert not standing.is_let_in()

    standing.clock.advance(899 - PROBE)
    assert not standing.is_let_in()
    standing.clock.advance(1)
    standing.ask()

    assert standing.names()[2:] == ["circuit_half_open", "layout.recovered"]


def test_late_responses_of_earlier_polls_postpone_the_next_probe_and_emit_nothing() -> None:
    standing = Standing()
    late = standing.admission.admit(LIVE)
    standing.break_layout()
    standing.clock.advance(10)

    late(LayoutChanged("no score"), b"", "")

    standing.clock.advance(PROBE - 1)
    assert not standing.is_let_in()
    assert standing.names() == ["layout.broken"]


def test_every_error_of_a_streak_says_where_the_page_is_kept() -> None:
    standing = Standing()
    first, second = LayoutChanged("no score"), LayoutChanged("no score")

    standing.ask(first)
    standing.ask(second)

    assert first.page == second.page == "storage/error_pages/1.html"


def test_a_page_that_cannot_be_kept_changes_nothing_else() -> None:
    standing = Standing(Pages(path=None))

    standing.break_layout()

    (reported,) = standing.sink.events
    assert isinstance(reported, LayoutBroken)
    assert reported.page is None


# --- a site that refuses --------------------------------------------------------------------------------------------


@pytest.mark.req("CAP-9")
@pytest.mark.parametrize("error", [REFUSED, SourceRefused("429"), SourceChallenged("a puzzle")])
def test_a_source_that_refuses_a_third_of_thirty_questions_is_excluded_for_a_quarter_of_an_hour(
    error: SourceRefused,
) -> None:
    standing = Standing()
    for _ in range(19):
        standing.ask()
    for _ in range(10):
        standing.ask(error)
    before = standing.is_let_in()

    standing.ask(error)

    assert before
    assert [standing.is_let_in(each) for each in RESOURCES] == [False] * len(RESOURCES)
    assert standing.admission.rejected == len(RESOURCES)
    standing.clock.advance(899.9)
    assert not standing.is_let_in()
    standing.clock.advance(0.1)
    assert standing.is_let_in()


@pytest.mark.req("CAP-9")
def test_a_rejected_query_from_a_source_learns_for_how_long() -> None:
    standing = Standing()
    for _ in range(30):
        standing.ask(REFUSED)
    standing.clock.advance(100)

    with pytest.raises(CircuitOpen, match=r"circuit open for crex \(800 s\)") as caught:
        standing.ask()

    assert caught.value.retry_after_seconds == 800
    (opened,) = standing.sink.named("circuit_opened")
    assert (opened.scope, opened.subject, opened.seconds) == ("source", "crex", 900)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "error",
    [SourceUnreachable("reset"), FetchTimeout("30 s"), SourceFailed("503"), CircuitOpen("held"), StorageError("full")],
)
def test_what_says_nothing_about_the_site_never_closes_the_gate(error: Exception) -> None:
    standing = Standing()

    for _ in range(200):
        standing.ask(error)

    assert standing.is_let_in()
    assert standing.names() == []


def test_a_page_that_is_not_found_is_an_answer_like_any_other() -> None:
    standing = Standing()
    for _ in range(60):
        standing.ask(PageNotFound("404"))
        standing.clock.advance(1)

    for _ in range(30):  # a third of ninety
        standing.ask(REFUSED)

    assert standing.is_let_in()


@pytest.mark.req("CAP-9")
def test_three_good_probes_open_the_gate_again_and_it_is_reported() -> None:
    standing = Standing()
    for _ in range(30):
        standing.ask(REFUSED)
    standing.clock.advance(900)

    for _ in range(3):
        standing.ask()

    assert standing.names() == ["circuit_opened", "circuit_half_open", "circuit_closed"]


def test_one_bad_probe_closes_the_gate_for_as_long_again() -> None:
    standing = Standing()
    for _ in range(30):
        standing.ask(REFUSED)
    standing.clock.advance(900)

    standing.ask(REFUSED)

    standing.clock.advance(899)
    assert not standing.is_let_in()


@pytest.mark.parametrize("error", [asyncio.CancelledError(), CircuitOpen("held"), SourceUnreachable("reset")])
def test_probes_that_say_nothing_are_given_back(error: BaseException) -> None:
    standing = Standing()
    for _ in range(30):
        standing.ask(REFUSED)
    standing.clock.advance(900)

    for _ in range(10):
        standing.ask(error)
    for _ in range(3):
        standing.ask()

    assert standing.names()[-1] == "circuit_closed"


def test_only_three_probe_at_one_time() -> None:
    standing = Standing()
    for _ in range(30):
        standing.ask(REFUSED)
    standing.clock.advance(900)

    for _ in range(3):
        standing.admission.admit(LIVE)

    assert not standing.is_let_in()


def test_the_first_challenge_is_reported_at_once_with_its_page_and_so_is_its_end() -> None:
    standing = Standing()

    for _ in range(3):
        standing.ask(SourceChallenged("captcha"), LIST, b"<html>captcha</html>")
    standing.ask(None, LIST)

    page = "storage/error_pages/1.html"
    assert standing.sink.events == [
        ChallengeServed(source="crex", resource="list", page=page),
        ChallengeCleared(source="crex", challenges=3),
    ]
    assert standing.pages.kept == [("crex-challenge", b"<html>captcha</html>")]


def test_pages_that_are_unreadable_now_and_then_do_not_fill_the_folder() -> None:
    standing = Standing()

    for _ in range(10):
        standing.ask(LayoutChanged("a field is missing"))
        standing.ask(None)

    assert len(standing.pages.kept) == 1


# --- a restart ------------------------------------------------------------------------------------------------------


@pytest.mark.req("CAP-9")
def test_a_restart_keeps_an_open_circuit_until_its_time_is_over_and_then_sends_probes() -> None:
    first = Standing()
    for _ in range(30):
        first.ask(REFUSED)
    first.clock.advance(600)

    restarted = first.restarted()
    [opened] = restarted.sink.events
    restarted.clock.advance(299)
    is_early = restarted.is_let_in()
    restarted.clock.advance(1)
    probes = [restarted.admission.admit(LIVE) for _ in range(3)]
    is_fourth = restarted.is_let_in()
    for record in probes:
        record(None, b"", "")

    assert isinstance(opened, CircuitOpened)
    assert (opened.scope, opened.subject, opened.seconds) == ("source", "crex", 300)
    assert opened.reason == "30 of 30 attempts failed within 600 s, the last: 403; kept over a restart"
    assert (is_early, is_fourth) == (False, False)
    assert restarted.names() == ["circuit_opened", "circuit_half_open", "circuit_closed"]
    assert restarted.restarted().names() == []


@pytest.mark.req("CAP-9")
def test_a_circuit_whose_time_went_by_during_a_restart_is_closed_by_probes_only() -> None:
    first = Standing()
    for _ in range(30):
        first.ask(REFUSED)
    first.clock.advance(1000)

    restarted = first.restarted()
    restarted.ask(REFUSED)

    assert restarted.names() == ["circuit_opened", "circuit_half_open", "circuit_opened"]
    assert not restarted.is_let_in()


@pytest.mark.req("EC1")
def test_a_restart_keeps_a_broken_layout_and_its_next_probe() -> None:
    first = Standing()
    first.break_layout(LIST)
    first.clock.advance(100)

    restarted = first.restarted()
    [broken] = restarted.sink.events
    is_early, is_other = restarted.is_let_in(LIST), restarted.is_let_in(LIVE)
    restarted.clock.advance(200)
    restarted.ask(LayoutChanged("no score"), LIST)
    again = restarted.restarted()
    is_after_probe = again.is_let_in(LIST)
    again.clock.advance(PROBE)
    again.ask(None, LIST)

    assert isinstance(broken, LayoutBroken)
    assert (broken.resource, broken.failures, broken.retry_in_seconds) == (LIST, MAX_UNREADABLE + 1, 200)
    assert broken.error_message == "no score; kept over a restart"
    assert (is_early, is_other, is_after_probe) == (False, True, False)
    assert restarted.names() == ["layout.broken"]
    assert again.names() == ["layout.broken", "layout.recovered"]
    assert again.restarted().names() == []


def test_what_an_operator_retries_is_not_paused_again_by_a_restart() -> None:
    first = Standing()
    first.break_layout(LIST)
    while first.is_let_in():
        first.ask(REFUSED)
    assert first.admission.retry_now()

    restarted = first.restarted()

    assert restarted.is_let_in(LIST)
    assert restarted.is_let_in(LIVE)
    assert "circuit_half_open" in restarted.names()


def test_a_kept_layout_is_never_paused_for_longer_than_its_interval() -> None:
    first = Standing()
    first.pauses.of("crex").begin(PauseKind.LAYOUT, LIST, 1e9, "a clock that was set back")

    restarted = first.restarted()
    restarted.clock.advance(PROBE)

    assert restarted.is_let_in(LIST)


# --- screenshots ----------------------------------------------------------------------------------------------------


@pytest.mark.req("FR-019")
def test_a_screenshot_is_requested_of_every_unparsable_page_that_is_saved() -> None:
    requested: list[tuple[str, str]] = []
    standing = Standing(request_screenshot=lambda name, address: requested.append((name, address)))

    for _ in range(MAX_UNREADABLE + 1):
        standing.admission.admit(LIVE)(LayoutChanged("no score"), b"{}", "https://site.test/match")

    assert len(standing.pages.kept) == 2
    assert requested == [("crex-live", "https://site.test/match")] * 2


def test_no_screenshot_is_requested_of_a_refusal_or_without_a_page() -> None:
    requested: list[tuple[str, str]] = []
    standing = Standing(request_screenshot=lambda name, address: requested.append((name, address)))

    standing.ask(LayoutChanged("no score"))
    standing.admission.admit(BALLS)(REFUSED, b"", "https://site.test/match")

    assert requested == []


def test_a_kind_of_page_that_is_tried_rarely_has_an_error_of_its_own() -> None:
    standing = Standing()
    standing.break_layout()

    with pytest.raises(LayoutPaused):
        standing.admission.admit(LIVE)
