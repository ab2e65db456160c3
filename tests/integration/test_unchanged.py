"""Unchanged is free: how often a poll ends at its digests, on recorded bodies and over simulated play.

Two properties of a digest. *Safety*: bodies of one digest are read alike, or a poll would miss something. *Use*: what
moves without meaning (odds, clocks, tokens) does not move it, or it would never fire on a real site.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest
from msgspec import Struct

from longstop.errors import PageNotFound, SourceError
from longstop.fetching.base import FetchRequest
from longstop.matches.pipeline import Pipeline
from longstop.matches.source_client_and_poll_attempt import PollAttempt, PollClient, SourceClient
from longstop.model.event import StoredEvent
from longstop.model.match import MatchRef, MatchStatus
from longstop.model.snapshot import Snapshot
from longstop.model.source_queries_and_answers import LIST, LIVE, Listing, Query
from longstop.sources.base import Source
from longstop.sources.bodies_and_urls import read_body
from longstop.sources.crex.source import CrexSource
from longstop.sources.espncricinfo.embedded_json_fields import embedded_json
from longstop.sources.espncricinfo.source import EspncricinfoSource
from longstop.sources.sofascore.source import SofascoreSource
from longstop.sports.cricket.model import BALLS
from longstop.sports.football.model import INCIDENTS
from longstop.sports.registry import sport_named
from longstop.telemetry.bus import Bus
from longstop.testing import ScriptedFetcher
from longstop_lab.simulator.cricket.world import PlannedMatch, World, play, script_for
from longstop_lab.simulator.football.generate import play_football
from longstop_lab.simulator.football.script import script_football
from longstop_lab.simulator.football.world import FootballWorld, PlannedFootball
from longstop_lab.simulator.http import Request, Response
from longstop_lab.simulator.sites.crex.site import CrexSite
from longstop_lab.simulator.sites.espncricinfo.ids import match_number
from longstop_lab.simulator.sites.espncricinfo.site import EspncricinfoSite
from longstop_lab.simulator.sites.sofascore.site import SofascoreSite
from tests.builders import CREX_CONFIG, NOW, body
from tests.football_site import SOFASCORE_CONFIG
from tests.live import CONFIRMED, take
from tests.memory import MemorySink, MemoryStore
from tests.readers import ManualClock

PROJECT = Path(__file__).parents[2]
RECORDINGS = PROJECT / os.environ.get("LONGSTOP_RECORDED", "../shared/data")
where_recorded = pytest.mark.skipif(
    not (RECORDINGS / "crex").is_dir(), reason="no recordings: set LONGSTOP_RECORDED to their directory"
)

SEED = 7
POLL_EVERY = 2.5
CREX = CrexSource(CREX_CONFIG)
ESPNCRICINFO = EspncricinfoSource(
    msgspec.structs.replace(CREX_CONFIG, domain_id="espncricinfo", metadata={"site_url": "https://site.test"})
)
SOFASCORE = SofascoreSource(SOFASCORE_CONFIG)


# --- recorded bodies -------------------------------------------------------------------------------------------------


def recorded(name: str) -> Any:
    return msgspec.json.decode((RECORDINGS / name).read_bytes())


def reading(source: Source, query: Query, page: bytes) -> object:
    """Return what a body says; an error is said too."""
    try:
        return read_body(source, query, page)
    except SourceError as error:
        return str(error)


def digest(source: Source, query: Query, page: bytes) -> object:
    """Return the digest; where it fails, the body is read, whatever it says."""
    try:
        return source.digest(query, page)
    except SourceError:
        return object()


def frames(name: str) -> list[dict[str, Any]]:
    return [frame.get("body", frame) for frame in recorded(name)]


@where_recorded
def test_recorded_frames_have_equal_digests_exactly_when_they_are_read_alike() -> None:
    fired = equal_bytes = pairs = 0
    for name in ("QUY", "11HD_inplay"):
        shown = [body(frame) for frame in frames(f"crex/sv3_frames_{name}.json")]
        query = Query(resource=LIVE, source_id=name.partition("_")[0])
        for before, after in pairwise(shown):
            is_same = CREX.digest(query, before) == CREX.digest(query, after)
            assert is_same == (read_body(CREX, query, before) == read_body(CREX, query, after))
            fired, equal_bytes, pairs = fired + is_same, equal_bytes + (before == after), pairs + 1

    print(f"digest fired on {fired} of {pairs} consecutive frames; bytes equal on {equal_bytes}")
    assert (fired, pairs) == (8, 11)


@where_recorded
def test_what_moved_between_recorded_frames_beside_the_play_moves_no_digest() -> None:
    """The frames in play are some balls apart: each is shown again with the odds and forecasts of the next."""
    read = {"a", "B", "j", "k", "fo", "mt", "tg", "p", "q", "s", "b", "c", "rb"}
    query = Query(resource=LIVE, source_id="11HD")
    shown = frames("crex/sv3_frames_11HD_inplay.json")
    for before, after in pairwise(shown):
        drifted = {**after, **{key: value for key, value in before.items() if key in read}}

        assert body(drifted) != body(before)
        assert CREX.digest(query, body(drifted)) == CREX.digest(query, body(before))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, (*path, key))
    else:
        yield path


def moved(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}1"
    return 0


def drifts(document: Any, every: int) -> Iterator[Any]:
    """Change one value at a time of a document, in its place, and put it back."""
    for path in list(leaves(document))[::every]:
        holder = document
        for key in path[:-1]:
            holder = holder[key]
        value = holder[path[-1]]
        holder[path[-1]] = moved(value)
        yield document
        holder[path[-1]] = value


def state_page(name: str) -> tuple[Any, Callable[[Any], bytes]]:
    """Return the state inside a recorded page, and how to put another one there."""
    page = (RECORDINGS / name).read_bytes()
    state = embedded_json(page)
    before, _, after = page.partition(state)
    return msgspec.json.decode(state), lambda changed: before + msgspec.json.encode(changed) + after


@where_recorded
@pytest.mark.parametrize(
    ("source", "query", "name", "every", "least"),
    [
        pytest.param(CREX, Query(resource=LIVE), "crex/sv3_frames_11HD_inplay.json", 1, 0.9, id="crex live"),
        pytest.param(CREX, Query(resource=BALLS), "crex/ball_feed_11HD.json", 1, 0.4, id="crex balls"),
        pytest.param(SOFASCORE, Query(resource=LIVE), "sofascore/events/13424932.json", 1, 0.75, id="sofascore live"),
        pytest.param(
            SOFASCORE, Query(resource=INCIDENTS), "sofascore/incidents/9578818.json", 1, 0.45, id="sofascore incidents"
        ),
        pytest.param(
            SOFASCORE, Query(resource=LIST), "extra/sofascore/list/akkradet_2025-05-22T0148.json", 199, 0.75, id="list"
        ),
        pytest.param(
            ESPNCRICINFO, Query(resource=BALLS), "espncricinfo/match_1478914.html", 199, 0.9, id="espncricinfo"
        ),
    ],
)
def test_no_value_of_a_recorded_body_that_we_read_moves_without_the_digest(
    source: Source, query: Query, name: str, every: int, least: float
) -> None:
    if name.endswith(".html"):
        document, written = state_page(name)
    else:
        document, written = recorded(name), body
        document = document[0].get("body", document[0]) if query.resource == LIVE and source is CREX else document
    first = written(document)
    said, known = read_body(source, query, first), source.digest(query, first)
    changes = unmoved = 0
    for changed in drifts(document, every):
        page = written(changed)
        is_same = digest(source, query, page) == known
        assert not is_same or reading(source, query, page) == said
        changes, unmoved = changes + 1, unmoved + is_same

    print(f"{name}: {unmoved} of {changes} values may move without being read again")
    assert unmoved / changes >= least


# --- simulated play --------------------------------------------------------------------------------------------------


class SimulatedMatch(Struct, frozen=True):
    """One match of a simulated site, and when it is polled."""

    source: Source
    source_id: str
    answer: Callable[[Request], Response]
    advance_to: Callable[[float], None]
    until: MatchStatus
    first: float
    last: float


def _nowhere(_lines: Iterable[object]) -> None:
    """Keep no truth: a run is compared with another run."""


def cricket_match(source: Source, site: Callable[[World], Callable[[Request], Response]]) -> SimulatedMatch:
    """Return the first innings of a match, and the beginning of the break after it."""
    game = play("t20", SEED, 0)
    script = script_for(game, SEED)
    world = World([PlannedMatch(game=game, script=script, starts_at=0.0)], started_at=NOW, speed=1.0, record=_nowhere)
    return SimulatedMatch(
        source=source,
        source_id=game.key if source is CREX else str(match_number(game.key)),
        answer=site(world),
        advance_to=world.advance_to,
        until=MatchStatus.BREAK,
        first=0.0,
        last=script[-1].at,
    )


def crex_match() -> SimulatedMatch:
    return cricket_match(CREX, lambda world: CrexSite(world).answer)


def espncricinfo_match() -> SimulatedMatch:
    return cricket_match(ESPNCRICINFO, lambda world: EspncricinfoSite(world, ManualClock(NOW)).answer)


def sofascore_match() -> SimulatedMatch:
    """Return the first half of a match, and the beginning of the break after it."""
    match = play_football(SEED, 0)
    script, before = script_football(match, SEED), 8000.0
    plan = PlannedFootball(match=match, script=script, starts_at=before)
    world = FootballWorld([plan], started_at=NOW, speed=1.0, record=_nowhere)
    return SimulatedMatch(
        source=SOFASCORE,
        source_id=match.key,
        answer=SofascoreSite(world).answer,
        advance_to=world.advance_to,
        until=MatchStatus.BREAK,
        first=before,
        last=before + script[-1].at,
    )


MATCHES = {"crex": crex_match, "espncricinfo": espncricinfo_match, "sofascore": sofascore_match}
#: Polls of the break after the innings or half.
BREAK_POLLS = 40


class Watched(Struct, frozen=True):
    """What a run polled and stored."""

    polls: int
    unchanged: int
    events: list[StoredEvent]
    snapshot: Snapshot


def _answering(match: SimulatedMatch) -> ScriptedFetcher:
    def answer(request: FetchRequest) -> bytes | PageNotFound:
        address = urlsplit(request.url)
        asked = Request(
            method=request.method,
            path=address.path,
            query=dict(parse_qsl(address.query)),
            body=request.body or b"",
        )
        answered = match.answer(asked)
        return PageNotFound("404") if answered.status == 404 else answered.body

    return ScriptedFetcher(answer)


async def watched(match: SimulatedMatch) -> Watched:
    """Poll a match until its first break, and go on for a while."""
    store, clock = MemoryStore(), ManualClock(NOW)
    sport = sport_named(match.source.sport)
    client = SourceClient(match.source, _answering(match))
    pipeline = Pipeline(sport, client=client, store=store, bus=Bus([MemorySink()]), clock=clock, scraper_id="node-a")
    ref = MatchRef(match.source.name, match.source_id)
    row = await store.register(ref, "Red v Blue", None, NOW, sport=sport.name)
    state = await take(store, row.match_id, "node-a")
    polls = unchanged = in_break = 0
    at = match.first
    while in_break < BREAK_POLLS:
        assert at < match.last, "the match has no break"
        match.advance_to(at)
        attempt = PollAttempt()
        observation = await pipeline.observe(state, is_full=False, attempt=attempt)
        state = (await pipeline.apply(state, observation, attempt, trust=CONFIRMED)).state
        polls, unchanged = polls + 1, unchanged + (observation.view is None)
        in_break += state.row.status is match.until
        at += POLL_EVERY
        clock.advance(POLL_EVERY)
    return Watched(
        polls=polls,
        unchanged=unchanged,
        events=store.history[row.match_id],
        snapshot=store.snapshots[row.match_id],
    )


@pytest.mark.parametrize(
    ("name", "least", "events"), [("crex", 0.9, 120), ("espncricinfo", 0.9, 120), ("sofascore", 0.9, 4)]
)
async def test_most_polls_of_an_innings_end_unchanged_and_nothing_is_lost_by_it(
    name: str, least: float, events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await watched(MATCHES[name]())

    print(f"{name}: {found.unchanged} of {found.polls} polls ended unchanged")
    assert found.unchanged / found.polls > least

    async def never(_client: PollClient, *_queries: Query) -> bool:
        return False

    monkeypatch.setattr(PollClient, "are_unchanged", never)
    always_read = await watched(MATCHES[name]())
    assert (always_read.polls, always_read.unchanged) == (found.polls, 0)
    assert found.events == always_read.events
    assert len(found.events) >= events
    assert found.snapshot == always_read.snapshot


@pytest.mark.parametrize("name", list(MATCHES))
async def test_a_listing_is_read_again_only_when_it_says_something_new(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    match = MATCHES[name]()
    client, fetcher, query = SourceClient(match.source, _answering(match)), _answering(match), Query(resource=LIST)
    reads = polls = 0
    parse = match.source.parse

    def counted(query: Query, page: bytes) -> Any:
        nonlocal reads
        reads += 1
        return parse(query, page)

    monkeypatch.setattr(match.source, "parse", counted)
    shown: list[Listing] = []
    for polls in range(1, 601):
        match.advance_to(match.first + polls * POLL_EVERY)
        shown.append(await client.listing())
        assert shown[-1] == parse(query, (await fetcher.fetch(match.source.request(query))).body)

    news = sum(before != after for before, after in pairwise(shown))
    print(f"{name}: the listing was read at {reads} of {polls} polls")
    assert reads == news + 1
    assert 1 < reads < 0.2 * polls


async def test_a_page_that_answers_several_queries_is_digested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    match = espncricinfo_match()
    digested: list[str] = []
    make = ESPNCRICINFO.digest

    def counted(query: Query, page: bytes) -> bytes:
        digested.append(query.resource)
        return make(query, page)

    monkeypatch.setattr(ESPNCRICINFO, "digest", counted)
    heads = [Query(resource=resource, source_id=match.source_id) for resource in (BALLS, LIVE)]
    client = SourceClient(ESPNCRICINFO, _answering(match))
    match.advance_to(600.0)
    first = PollClient(client)
    assert not await first.are_unchanged(*heads)
    again = PollClient(client, known=first.digests)

    assert await again.are_unchanged(*heads)
    assert digested == [BALLS, BALLS]
    match.advance_to(900.0)
    again.forget()
    assert not await again.are_unchanged(*heads)
