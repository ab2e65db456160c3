"""The contract of a source: every shipped source, a third-party one, and the example keep it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from examples.kickoff import KickoffSource
from examples.site import BODIES as LOCAL_BODIES
from examples.test_kickoff import BODIES, CONFIG, MATCH_URLS, test_kickoff_keeps_the_contract
from longstop.errors import MalformedBody
from longstop.model.source_queries_and_answers import LIST, LIVE, Query
from longstop.sources.base import Source, SourceConfig
from longstop.sources.load_sources import check_hosts, load_sources, make_source
from longstop.sports.cricket.model import BALLS, NAMES, SCORECARD
from longstop.sports.football.model import INCIDENTS, LINEUPS, STATISTICS
from longstop.testing import check_source

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGES = ROOT / "tests" / "pages"

Bodies = list[tuple[Query, bytes]]


def check_kickoff(source: Source, bodies: Bodies | None = None, **changes: Any) -> None:
    options: dict[str, Any] = {"config": CONFIG, "match_urls": MATCH_URLS}
    check_source(source, BODIES if bodies is None else bodies, **options | changes)


def test_the_example_keeps_the_contract_in_less_than_80_lines_of_code() -> None:
    test_kickoff_keeps_the_contract()

    lines = (EXAMPLES / "kickoff.py").read_text().splitlines()
    assert sum(bool(line.strip()) for line in lines) < 80


def test_the_example_reads_the_local_site_as_its_local_configuration_says() -> None:
    (config,) = load_sources(EXAMPLES / "local_sources.yaml")
    source = KickoffSource(config)
    queries = [Query(resource=LIST)] + [
        Query(resource=resource, source_id=match) for match in ("7", "8") for resource in (LIVE, INCIDENTS)
    ]

    check_hosts(source, config)
    check_source(
        source, [(query, LOCAL_BODIES[urlsplit(source.request(query).url).path]) for query in queries], config=config
    )


def shipped(name: str) -> tuple[Source, SourceConfig]:
    config = next(each for each in load_sources(ROOT / "config" / "sources.yaml") if each.domain_id == name)
    return make_source(config), config


CREX = {
    "live_list.json": Query(resource=LIST),
    "live_in_play.json": Query(resource=LIVE, source_id="M1"),
    "live_innings_break.json": Query(resource=LIVE, source_id="M1"),
    "ball_feed.json": Query(resource=BALLS, source_id="M1"),
    "scorecard.json": Query(resource=SCORECARD, source_id="M1"),
    "names.json": Query(resource=NAMES, players=("A1",)),
}
SOFASCORE = {
    "live_list.json": Query(resource=LIST),
    "live_in_play.json": Query(resource=LIVE),
    "live_not_started.json": Query(resource=LIVE),
    "live_after_penalties.json": Query(resource=LIVE),
    "incidents_in_play.json": Query(resource=INCIDENTS),
    "incidents_shoot_out.json": Query(resource=INCIDENTS),
    "lineups_confirmed.json": Query(resource=LINEUPS),
    "lineups_empty.json": Query(resource=LINEUPS),
    "statistics_in_play.json": Query(resource=STATISTICS),
}


@pytest.mark.parametrize(
    ("name", "queries", "url", "source_id"),
    [
        ("crex", CREX, "https://crex.com/scoreboard/11HD/x/live", "11HD"),
        ("sofascore", SOFASCORE, "https://www.sofascore.com/event/7", "7"),
    ],
)
def test_a_shipped_source_keeps_the_contract(name: str, queries: dict[str, Query], url: str, source_id: str) -> None:
    source, config = shipped(name)
    bodies = [(query, (PAGES / name / file).read_bytes()) for file, query in queries.items()]

    check_source(source, bodies, config=config, match_urls={url: source_id})


def test_a_source_whose_resources_share_a_page_keeps_the_contract() -> None:
    source, config = shipped("espncricinfo")
    page = (PAGES / "espncricinfo" / "match_in_play.html").read_bytes()
    bodies = [(Query(resource=resource), page) for resource in (LIVE, BALLS, SCORECARD, NAMES)]
    bodies.append((Query(resource=LIST), (PAGES / "espncricinfo" / "live_list.html").read_bytes()))

    check_source(source, bodies, config=config)


class _Changed(KickoffSource):
    """A source with one mistake."""

    def __init__(self) -> None:
        self.name = "kickoff"
        self._api_url = "https://kickoff.example/api"


class _OtherHost(_Changed):
    def __init__(self) -> None:
        super().__init__()
        self._api_url = "https://elsewhere.example"


class _OtherName(_Changed):
    def __init__(self) -> None:
        super().__init__()
        self.name = "kick"


class _TextRequest(_Changed):
    def request(self, query: Query) -> Any:
        return super().request(query).url


class _NoMethods(Source):
    sport = "football"
    name = "kickoff"


class _UnknownSport(_Changed):
    sport = "curling"


class _RawError(_Changed):
    def parse(self, query: Query, body: bytes) -> Any:
        try:
            return super().parse(query, body)
        except MalformedBody as error:
            raise KeyError("id") from error


class _RawView(_Changed):
    def parse(self, query: Query, body: bytes) -> Any:
        view = super().parse(query, body)
        return msgspec.to_builtins(view) if query.resource == INCIDENTS else view


class _BlindDigest(_Changed):
    def digest(self, query: Query, body: bytes) -> bytes:
        return b"same"


class _RestlessDigest(_Changed):
    counter: Iterator[int] = iter(range(1_000))

    def digest(self, query: Query, body: bytes) -> bytes:
        return next(self.counter).to_bytes(2, "big")


class _NoMetadataKeys(_Changed):
    metadata_keys: Any = None


class _OtherMatch(_Changed):
    def parse(self, query: Query, body: bytes) -> Any:
        return super().parse(Query(resource=query.resource), body)


class _BodyAsDigest(_Changed):
    def digest(self, query: Query, body: bytes) -> bytes:
        return body


class _TextStatus(_Changed):
    def parse(self, query: Query, body: bytes) -> Any:
        view: Any = super().parse(query, body)
        return msgspec.structs.replace(view, status="live") if query.resource == LIVE else view


class _NoParser(_Changed):
    def parse(self, query: Query, body: bytes) -> Any:
        raise KeyError(query.resource)


class _RawRequest(_Changed):
    def request(self, query: Query) -> Any:
        raise KeyError(query.resource)


class _NoUrl(_Changed):
    def request(self, query: Query) -> Any:
        return msgspec.structs.replace(super().request(query), url=None)


class _NoBoards(_Changed):
    def parse(self, query: Query, body: bytes) -> Any:
        view: Any = super().parse(query, body)
        return msgspec.structs.replace(view, boards=None) if query.resource == LIST else view


class _RawDigest(_Changed):
    def digest(self, query: Query, body: bytes) -> bytes:
        raise KeyError("score")


class _RawMatch(_Changed):
    def match_of(self, url: str) -> str | None:
        sys.exit("no match")


class _AnyMatch(_Changed):
    def match_of(self, url: str) -> str | None:
        return "7"


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (_OtherHost, "request(list) goes to 'elsewhere.example', which is not in hosts"),
        (
            _OtherName,
            "name is 'kick', but the domain_id of the configuration is 'kickoff': write self.name = config.domain_id",
        ),
        (_TextRequest, "request(list) returned str: return FetchRequest(source=self.name, url=…)"),
        (_NoMethods, "method request() is missing; method parse() is missing"),
        (_UnknownSport, "sport 'curling' is not installed; installed: cricket, football"),
        (_RawError, "raised KeyError('id'): raise a ParseError or an ObservationError"),
        (_RawView, "parse(incidents 7) returned dict: return a view of longstop.sports.football.model"),
        (_BlindDigest, "digest(live 7) is the same for two bodies with different views"),
        (_RestlessDigest, "digest(list) differs for the same body"),
        (_NoMetadataKeys, "metadata_keys must be a tuple"),
        (_OtherMatch, "parse(live 71) accepted the body of match '7': raise WrongMatch"),
        (_BodyAsDigest, "digest(list) must be at most 64 bytes, not 283: return digest_of("),
        (_TextStatus, "parse(live 7) returned status 'live': map it to a MatchStatus"),
        (_NoParser, "parse(list) of a recorded body raised KeyError('list')"),
        (
            _RawRequest,
            "request(list) must return FetchRequest(source=…, url='https://…'): KeyError('list') in contract/",
        ),
        (_NoUrl, "request(list) must return FetchRequest(source=…, url='https://…'): TypeError("),
        (_NoBoards, "parse(list) must return a view whose fields have the declared types: TypeError("),
        (
            _RawDigest,
            "digest() of a recorded body must return digest_of(what you parse): KeyError('score') in contract/",
        ),
        (_RawMatch, "match_of() must return a source id or None for any text: SystemExit('no match') in contract/"),
        (_AnyMatch, "match_of('') must return None"),
    ],
)
def test_each_broken_promise_is_named(mistake: Any, message: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_kickoff(mistake())

    assert message in str(caught.value)


def test_bodies_of_list_and_live_state_are_required() -> None:
    with pytest.raises(AssertionError, match="missing: list, live"):
        check_kickoff(KickoffSource(CONFIG), bodies=[])


def test_a_wrong_match_address_is_named() -> None:
    with pytest.raises(AssertionError, match="returned '7', not '8'"):
        check_kickoff(KickoffSource(CONFIG), match_urls={"https://kickoff.example/match/7": "8"})
