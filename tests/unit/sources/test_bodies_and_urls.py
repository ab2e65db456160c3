"""Parsing helpers: errors of a plug-in name its file and line; match addresses map to source ids."""

import sys
from typing import Any

import pytest

from longstop.errors import LayoutChanged, MalformedBody, SettingsError, SourceError, UsageError
from longstop.fetching.base import FetchRequest
from longstop.matches.source_client_and_poll_attempt import PollClient, SourceClient
from longstop.model.match import MatchStatus
from longstop.model.source_queries_and_answers import LIST, LIVE, Listing, ListingEntry, Query
from longstop.sources.base import Source, SourceConfig, not_offered
from longstop.sources.bodies_and_urls import decode, digest_of, host_of, is_challenge, read_body
from longstop.sources.crex.source import CrexSource
from longstop.sources.espncricinfo.source import EspncricinfoSource
from longstop.sources.load_sources import make_source
from longstop.sources.sofascore.source import SofascoreSource
from longstop.testing import ScriptedFetcher, run_virtual

THIS = "tests.unit.sources.test_bodies_and_urls"


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

    assert str(caught.value).startswith("careless live 7: KeyError in sources/test_bodies_and_urls.py, line ")
    assert str(caught.value).endswith(": 'score'")


def test_an_error_that_says_what_is_wrong_passes_as_it_is() -> None:
    with pytest.raises(MalformedBody, match="careless live 7: the body is not valid JSON"):
        read_body(CarelessSource(), QUERY, b"<html>")
    with pytest.raises(UsageError, match="careless has no scorecard resource"):
        read_body(CarelessSource(), Query(resource="scorecard"), b"{}")


def test_what_this_machine_misses_is_no_change_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    source = CarelessSource()

    def parse(query: Query, body: bytes) -> Any:
        raise MemoryError

    monkeypatch.setattr(source, "parse", parse)

    with pytest.raises(MemoryError):
        read_body(source, QUERY, b"{}")


class QuittingSource(CarelessSource):
    """Ends the process wherever it can."""

    def parse(self, query: Query, body: bytes) -> Any:
        sys.exit("done")

    def digest(self, query: Query, body: bytes) -> bytes:
        sys.exit("done")


def test_a_source_that_exits_fails_its_poll_and_not_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    source = QuittingSource()
    client = SourceClient(source, ScriptedFetcher(lambda _: b"{}"))

    with pytest.raises(
        LayoutChanged, match=r"careless list: SystemExit in sources/test_bodies_and_urls.py, line \d+: done"
    ):
        run_virtual(client.listing())
    monkeypatch.setattr(source, "request", sys.exit)
    for query in (lambda: run_virtual(client.listing()), lambda: client.page_of("7")):
        with pytest.raises(Exception, match=r"careless: request\(\) failed: SystemExit\(Query\("):
            query()


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

    with pytest.raises(SettingsError, match=r"has sport 'curling', .* Installed: cricket, football"):
        make_source(config)


# --- challenges ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"<html><form id=challenge-form></form></html>",
        b"<html><div class='g-recaptcha' data-sitekey=x></div></html>",
        b"<html><p>Please solve the CAPTCHA</p></html>",
        b"<!DOCTYPE html><title>Just a moment...</title>",
        b'{"error":{"code":403,"reason":"challenge"}}',
        b' { "error" : { "reason" : "Challenge", "code" : 403 } } ',
    ],
)
def test_a_captcha_page_and_an_error_that_names_a_challenge_are_challenges(body: bytes) -> None:
    assert is_challenge(body)


@pytest.mark.parametrize(
    "body",
    [
        b"<html><script src='https://www.gstatic.com/recaptcha/releases/x/recaptcha__en.js'></script><p>1-0</p></html>",
        b"<html><style>.grecaptcha-badge{visibility:hidden}</style><p>1-0</p></html>",
        b'{"error":{"code":403,"reason":"Forbidden"}}',
        b'{"event":{"error":{"reason":"challenge"}}}',
        b'{"name":"Challenge Cup"}',
        b"",
    ],
)
def test_a_page_that_only_loads_such_a_script_and_other_errors_are_not(body: bytes) -> None:
    assert not is_challenge(body)


# --- addresses of match pages --------------------------------------------------------------------------------------

CREX, ESPN, SOFA = CrexSource, EspncricinfoSource, SofascoreSource


def a_source(make: Any) -> Source:
    config = SourceConfig(
        domain_id="any",
        enabled=True,
        precedence_weight=1,
        adapter_class="any",
        hosts=("127.0.0.1:8701",),
        allow_private_addresses=True,
        permission=None,
        metadata={},
    )
    source: Source = make(config)
    return source


@pytest.mark.parametrize(
    ("make", "url", "source_id"),
    [
        (CREX, "https://crex.com/scoreboard/11HD/1S0/3rd-Match/AB/CD/nep-vs-oma-3rd-match/live", "11HD"),
        (CREX, "https://crex.com/scoreboard/11HD", "11HD"),
        (CREX, "https://CREX.com/cricket-live-score/nep-vs-oma-match-updates-11HD?tab=info", "11HD"),
        (CREX, " http://127.0.0.1:8701/scoreboard/1000/1S0/1-Match/0/1BO/a-vs-b/live ", "1000"),
        (
            ESPN,
            "https://www.espncricinfo.com/series/a-cup-1478874/a-vs-b-1st-match-1478889/full-scorecard",
            "1478889",
        ),
        (ESPN, "https://www.espncricinfo.com/series/the-cup-1478874/a-vs-b-1st-match-1478889", "1478889"),
        (SOFA, "https://www.sofascore.com/football/match/a-b/xKbsyKb#id:11400000", "11400000"),
        (SOFA, "https://www.sofascore.com/football/match/a-b/xKbsyKb#id:11400000,tab:details", "11400000"),
        (SOFA, "https://www.sofascore.com/event/a-b/11400000", "11400000"),
        (SOFA, "https://www.sofascore.com/api/v1/event/11400000", "11400000"),
    ],
)
def test_the_address_of_a_match_names_it(make: Any, url: str, source_id: str) -> None:
    assert a_source(make).match_of(url) == source_id


@pytest.mark.parametrize("make", [CREX, ESPN, SOFA])
@pytest.mark.parametrize(
    "url",
    [
        "",
        "11HD",
        "crex.com/scoreboard/11HD",
        "https://crex.com.evil.example/scoreboard/11HD",
        "https://crex.com@evil.example/scoreboard/11HD",
        "ftp://crex.com/scoreboard/11HD",
        "https://crex.com/live-matches",
        "https://crex.com/scoreboard/../../etc",
        "https://crex.com/cricket-live-score/match-updates-11HD",
        "https://www.espncricinfo.com/live-cricket-score",
        "https://www.espncricinfo.com/series/the-cup-1478874",
        "https://www.sofascore.com/football/match/a-b/xKbsyKb",
        "https://[::1/scoreboard/11HD",
        "https://crex.com/scoreboard/" + "1" * 2_000,
    ],
)
def test_anything_else_names_none(make: Any, url: str) -> None:
    assert a_source(make).match_of(url) is None


@pytest.mark.parametrize(
    ("url", "host"),
    [("https://Example.org:81/x", "example.org:81"), ("example.org", ""), ("https://[::1", ""), ("", "")],
)
def test_the_host_of_an_address_can_be_reported(url: str, host: str) -> None:
    assert host_of(url) == host
