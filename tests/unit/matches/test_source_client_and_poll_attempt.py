"""Asking a source: what a poll costs, and how urgent its requests are."""

from datetime import timedelta

import msgspec
import pytest

from longstop.errors import (
    CircuitOpen,
    EmptyBody,
    FetchTimeout,
    ImpossibleObservation,
    LayoutChanged,
    SourceError,
)
from longstop.fetching.base import FetchRequest, Page
from longstop.matches.source_client_and_poll_attempt import PollAttempt, PollClient, SourceClient
from longstop.model.match import MatchStatus, Priority
from longstop.model.source_queries_and_answers import LIVE, Query
from longstop.sources.crex.source import CrexSource
from longstop.sports.cricket.model import Board, CricketState
from longstop.storage.base import MatchBase
from longstop.testing import START, ScriptedFetcher, page, run_virtual
from tests.builders import CREX_CONFIG, match_row
from tests.crex_site import Site, SiteMatch

REQUEST = FetchRequest(source="crex", url="https://api.test/live")


def _page(retries: int = 0) -> Page:
    return msgspec.structs.replace(page(b"{}", request=REQUEST), retries=retries)


def _failed(error: SourceError, retries: int = 0, *, is_canary: bool = False) -> SourceError:
    error.retries, error.is_canary = retries, is_canary
    return error


def test_answers_that_came_at_once_are_no_errors() -> None:
    attempt = PollAttempt()

    attempt.answered(_page())
    attempt.answered(_page())

    assert (attempt.answers, attempt.errors, attempt.error_count) == (2, {}, 0)


def test_what_a_second_try_made_good_counts_all_the_same() -> None:
    attempt = PollAttempt()

    attempt.answered(_page(retries=2))
    attempt.answered(_page(retries=1))

    assert (attempt.answers, attempt.errors) == (2, {"Retried": 3})


def test_an_error_counts_with_every_try_before_it_and_under_its_own_name() -> None:
    attempt = PollAttempt()

    attempt.answered(_page(retries=1))
    attempt.failed(_failed(FetchTimeout("30 s"), retries=2))
    attempt.failed(_failed(EmptyBody("nothing")))
    attempt.failed(_failed(LayoutChanged("no score")))

    assert attempt.errors == {"Retried": 1, "FetchTimeout": 3, "EmptyBody": 1, "LayoutChanged": 1}
    assert attempt.error_count == 6


@pytest.mark.parametrize(
    "error", [_failed(CircuitOpen("held"), retries=2), _failed(FetchTimeout("30 s"), is_canary=True)]
)
def test_who_was_not_asked_and_a_canary_have_not_failed(error: SourceError) -> None:
    attempt = PollAttempt()

    attempt.failed(error)

    assert attempt.error_count == 0


def test_an_error_that_comes_by_twice_is_counted_once() -> None:
    attempt, error = PollAttempt(), ImpossibleObservation("11 wickets")

    attempt.failed(error)
    attempt.failed(error)

    assert attempt.errors == {"ImpossibleObservation": 1}


# --- priority --------------------------------------------------------------------------------------------------------


def asked_by(priority: Priority | None) -> list[FetchRequest]:
    match = SiteMatch(key="M1")
    match.bowl("1")
    fetcher = ScriptedFetcher(Site(match))
    client = SourceClient(CrexSource(CREX_CONFIG), fetcher)
    query = Query(resource=LIVE, source_id="M1")
    run_virtual(client.listing() if priority is None else PollClient(client, priority=priority).ask(query, Board))
    return fetcher.requests


@pytest.mark.req("CAP-4")
@pytest.mark.parametrize("priority", list(Priority))
def test_the_requests_of_a_poll_are_as_urgent_as_its_match(priority: Priority) -> None:
    assert {request.priority for request in asked_by(priority)} == {priority}


def test_a_listing_speaks_of_live_matches_and_is_as_urgent() -> None:
    assert {request.priority for request in asked_by(None)} == {Priority.LIVE}


@pytest.mark.parametrize(
    ("status", "hours", "priority"),
    [
        (MatchStatus.LIVE, -1, Priority.LIVE),
        (MatchStatus.BREAK, -1, Priority.LIVE),
        (MatchStatus.UPCOMING, 0.5, Priority.IMMINENT),
        (MatchStatus.UPCOMING, 5, Priority.COMPLETED),
        (MatchStatus.COMPLETED, -5, Priority.COMPLETED),
    ],
)
def test_what_is_far_off_is_as_little_urgent_as_what_is_over(
    status: MatchStatus, hours: float, priority: Priority
) -> None:
    row = match_row(status=status, start_at=START + timedelta(hours=hours))
    held = CricketState.from_base(
        MatchBase(match=row, events=(), snapshot=None, open_findings=(), players={}, teams={})
    )

    assert held.priority(START) is priority
