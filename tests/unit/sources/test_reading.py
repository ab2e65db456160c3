"""Bodies in the hands of a third party's source: whatever its code raises, the error says where to look."""

from typing import Any

import pytest

from longstop.errors import LayoutChanged, MalformedBody, SettingsError, SourceError, UsageError
from longstop.fetching.base import FetchRequest
from longstop.matches.client import PollClient, SourceClient
from longstop.model.match import MatchStatus
from longstop.model.observation import LIST, LIVE, Listing, ListingEntry, Query
from longstop.sources.base import SourceConfig, not_offered
from longstop.sources.registry import make_source
from longstop.sources.wire import decode, digest_of, read_body
from longstop.testing import ScriptedFetcher, run_virtual

THIS = "tests.unit.sources.test_reading"


class CarelessSource:
    """Trusts its site."""

    name = "careless"
    sport = "cricket"
    calls: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()

    def __init__(self, config: SourceConfig | None = None) -> None:
        self.digested = 0

    def request(self, query: Query) -> FetchRequest:
        return FetchRequest(source=self.name, url=f"http://127.0.0.1/{query.resource}")

    def parse(self, query: Query, body: bytes) -> Any:
        if query.resource == LIST:
            return Listing(boards=tuple(_line(each) for each in decode(body, list[str])))
        if query.resource != LIVE:
            raise not_offered(self.name, query.resource)
        said = decode(body, dict[str, str])
        return _line(said["id"], said["score"])

    def digest(self, query: Query, body: bytes) -> bytes:
        self.digested += 1
        raise KeyError("score")

    def match_of(self, url: str) -> str | None:
        return None


class UnknownSportSource(CarelessSource):
    sport = "curling"


def _line(source_id: str, score: str = "") -> ListingEntry:
    return ListingEntry(source_id=source_id, status=MatchStatus.LIVE, headline=score)


QUERY = Query(resource=LIVE, source_id="7")


def test_a_bug_in_a_source_reads_as_a_page_that_has_changed_and_says_where() -> None:
    with pytest.raises(LayoutChanged) as caught:
        read_body(CarelessSource(), QUERY, b'{"id": "7"}')

    assert str(caught.value).startswith("careless live 7: KeyError in sources/test_reading.py, line ")
    assert str(caught.value).endswith(": 'score'")


def test_an_error_that_says_what_is_wrong_passes_as_it_is() -> None:
    with pytest.raises(MalformedBody, match="careless live 7: the body is no readable JSON"):
        read_body(CarelessSource(), QUERY, b"<html>")
    with pytest.raises(UsageError, match="careless has no scorecard pages"):
        read_body(CarelessSource(), Query(resource="scorecard"), b"{}")


def test_what_this_machine_lacks_is_no_change_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    source = CarelessSource()

    def parse(query: Query, body: bytes) -> Any:
        raise MemoryError

    monkeypatch.setattr(source, "parse", parse)

    with pytest.raises(MemoryError):
        read_body(source, QUERY, b"{}")


def test_a_source_whose_digest_fails_is_read_and_its_equal_bodies_are_unchanged() -> None:
    body, source = b'{"id": "7", "score": "6-4"}', CarelessSource()
    client = SourceClient(source, ScriptedFetcher(lambda _: body))

    async def poll(known: dict[str, bytes]) -> tuple[bool, dict[str, bytes]]:
        poll = PollClient(client, known=known)
        return await poll.are_unchanged(QUERY), poll.digests

    is_unchanged, digests = run_virtual(poll({}))

    assert (is_unchanged, digests) == (False, {LIVE: digest_of(body)})
    assert run_virtual(poll(digests)) == (True, digests)
    assert source.digested == 2


def test_a_poll_that_meets_a_bug_of_the_source_fails_as_a_poll() -> None:
    client = SourceClient(CarelessSource(), ScriptedFetcher(lambda _: b"{}"))

    with pytest.raises(SourceError, match="KeyError"):
        run_virtual(PollClient(client).ask(QUERY, ListingEntry))


def test_a_match_whose_id_cannot_stand_in_an_address_is_listed_as_unreadable() -> None:
    client = SourceClient(CarelessSource(), ScriptedFetcher(lambda _: b'["7", "../8", "a_b", ""]'))

    listing = run_virtual(client.listing())

    assert [line.source_id for line in listing.boards] == ["7"]
    assert listing.unreadable == ("../8", "a_b", "")


def test_a_source_of_a_sport_that_is_not_installed_is_refused_at_the_start() -> None:
    config = SourceConfig(
        domain_id="careless",
        enabled=True,
        precedence_weight=0,
        adapter_class=f"{THIS}:UnknownSportSource",
        hosts=(),
        allow_private_addresses=True,
        permission=None,
        metadata={},
    )

    with pytest.raises(SettingsError, match=r"reads curling, .* Known: cricket, football"):
        make_source(config)
