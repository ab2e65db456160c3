"""What is asked for a look carries how urgent the look is."""

from datetime import timedelta

import pytest

from longstop.fetching.base import FetchRequest
from longstop.model.match import MatchStatus, Priority
from longstop.pipeline.ask import Asker
from longstop.pipeline.effort import Effort
from longstop.pipeline.state import MatchState
from longstop.sources.crex.source import CrexSource
from longstop.storage.base import MatchBase
from longstop.testing import START, ScriptedFetcher, run_virtual
from tests.builders import CREX_CONFIG, match_row
from tests.crex_site import Site, SiteMatch


def asked_by(priority: Priority | None) -> list[FetchRequest]:
    match = SiteMatch(key="M1")
    match.bowl("1")
    fetcher = ScriptedFetcher(Site(match))
    asker = Asker(CrexSource(CREX_CONFIG), fetcher)
    run_virtual((asker if priority is None else asker.keeping(Effort(), priority)).board("M1"))
    return fetcher.requests


@pytest.mark.req("CAP-4")
@pytest.mark.parametrize("priority", list(Priority))
def test_the_requests_of_a_look_are_as_urgent_as_its_match(priority: Priority) -> None:
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
    held = MatchState.from_base(MatchBase(match=row, events=(), snapshot=None, open_findings=(), players={}, teams={}))

    assert held.priority(START) is priority
