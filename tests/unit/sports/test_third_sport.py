"""A third sport, by its plug-in in `tests/plugins`: one poll at a time, without processes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from longstop.api.match_documents import event_entry
from longstop.errors import PageNotFound, StorageError
from longstop.fetching.base import FetchRequest
from longstop.matches.live_match_and_feeds import LiveMatch
from longstop.matches.pipeline import Pipeline
from longstop.matches.source_client_and_poll_attempt import PollAttempt, SourceClient
from longstop.model.event import EventKey
from longstop.model.match import MatchRef, Phase
from longstop.model.polling_status import SyncState
from longstop.sources.load_sources import offline_source
from longstop.sports.base import MatchState, Sport
from longstop.sports.registry import sport_named, sports
from longstop.telemetry.bus import Bus
from longstop.testing import ScriptedFetcher, ScriptedReply
from tests.builders import NOW
from tests.live import CONFIRMED, finished, take
from tests.memory import MemoryStore
from tests.readers import ManualClock
from tests.tennis_site import AWAY, HOME, Court, TennisSite

PLUGINS = Path(__file__).parents[2] / "plugins"
REF = MatchRef("courtside", "final")


class Polling:
    """A match, its site, its store, and the state after the last poll."""

    def __init__(self) -> None:
        self.court = Court("final")
        self.site = TennisSite(self.court)
        self.store = MemoryStore()
        #: The page that the site does not have any more.
        self.gone = ""
        self.state: MatchState

    def pipeline(self, sport: Sport[Any] | None = None) -> Pipeline:
        return Pipeline(
            sport or sport_named("tennis"),
            client=SourceClient(offline_source("courtside"), ScriptedFetcher(self._answer)),
            store=self.store,
            bus=Bus(),
            clock=ManualClock(NOW),
            scraper_id="node-a",
        )

    async def poll(self, times: int = 1, *, is_full: bool = False) -> bool:
        """Poll and go on from there; return whether the last poll read anything."""
        for _ in range(times):
            attempt, pipeline = PollAttempt(), self.pipeline()
            observation = await pipeline.observe(self.state, is_full=is_full, attempt=attempt)
            self.state = (await pipeline.apply(self.state, observation, attempt, trust=CONFIRMED)).state
        return observation.view is not None

    def versions(self) -> list[str]:
        """Return every stored version: its key, its revision, and what it does."""
        return [f"{each.event.key} {each.event.rev} {each.event.op}" for each in self.store.history.get(1, [])]

    def _answer(self, request: FetchRequest) -> ScriptedReply:
        path = urlsplit(request.url).path
        return PageNotFound("it is gone") if path == self.gone else self.site.body(path)


@pytest.fixture(autouse=True)
def _plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put the plug-in on the path, as if it were installed."""
    monkeypatch.syspath_prepend(PLUGINS)
    sports.cache_clear()
    yield
    sports.cache_clear()


@pytest.fixture
async def polling() -> Polling:
    """A match of which one game is stored, in sync."""
    polling = Polling()
    await polling.store.register(REF, "a match", None, NOW, sport="tennis")
    polling.state = await take(polling.store, 1, "node-a")
    polling.court.win_game(HOME)
    await polling.poll()
    assert polling.state.sync is SyncState.IN_SYNC
    return polling


async def test_what_is_played_is_stored_under_the_numbers_of_the_site(polling: Polling) -> None:
    polling.court.point(AWAY, "0-15")

    await polling.poll()

    points = [f"point:1:1:{nth} 1 insert" for nth in (1, 2, 3, 4)]
    assert polling.versions() == [*points, "game:1:1 1 insert", "point:1:2:1 1 insert"]


async def test_unchanged_pages_are_not_read_however_the_clock_on_them_moves(polling: Polling) -> None:
    before = polling.state

    assert not await polling.poll()

    assert polling.state is before
    assert await polling.poll(is_full=True)


async def test_a_point_that_one_poll_does_not_show_stays(polling: Polling) -> None:
    polling.court.point(HOME, "15-0")
    whole = list(polling.court.plays)
    await polling.poll()
    polling.court.plays.pop()
    await polling.poll()
    polling.court.plays = whole
    await polling.poll()

    assert polling.versions()[-1] == "point:1:2:1 1 insert"
    assert not polling.state.suspects


async def test_a_second_poll_confirms_though_the_sport_asks_first_whether_anything_has_changed(
    polling: Polling,
) -> None:
    polling.court.point(HOME, "15-0")
    await polling.poll()
    polling.court.correct(AWAY, "0-15")

    assert [await polling.poll() for _ in range(3)] == [True, True, False]

    assert polling.versions()[-1] == "point:1:2:1 2 update"


async def test_a_point_that_comes_back_is_the_old_one(polling: Polling) -> None:
    polling.court.point(HOME, "15-0")
    shown = list(polling.court.plays)
    await polling.poll()
    polling.court.take_back()
    await polling.poll(2)
    polling.court.plays = shown
    await polling.poll()

    assert polling.versions()[-3:] == [f"point:1:2:1 {version}" for version in ("1 insert", "2 void", "3 update")]


async def test_a_list_that_lags_behind_the_board_is_a_finding_until_it_has_caught_up(polling: Polling) -> None:
    polling.court.sets[-1] = [2, 0]
    await polling.poll()
    assert not polling.state.findings
    await polling.poll()
    assert [finding.detail for finding in polling.state.findings] == ["1 games are listed, the board shows 2"]

    polling.court.sets[-1] = [1, 0]
    polling.court.win_game(HOME)
    await polling.poll()

    assert not polling.state.findings


async def test_a_match_whose_page_is_gone_is_finished_by_what_is_left_of_it(polling: Polling) -> None:
    polling.court.point(AWAY, "0-15")
    polling.gone = "/matches/final"

    state = await finished(polling.pipeline(), polling.state)

    assert polling.versions()[-1] == "point:1:2:1 1 insert"
    assert state.row.phase is Phase.COMPLETED
    assert [finding.place for finding in state.findings] == ["result"]


async def test_a_sport_that_fails_on_what_is_left_finishes_its_match_all_the_same(
    polling: Polling, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_self: object, _state: object) -> None:
        raise KeyError("winner")

    monkeypatch.setattr(type(sport_named("tennis")), "stand_in", fail)

    state = await finished(polling.pipeline(), polling.state)

    assert state.row.phase is Phase.COMPLETED


async def test_an_event_is_served_with_the_numbers_of_its_key(polling: Polling) -> None:
    stored = polling.store.history[1][1]

    entry = event_entry(stored, polling.state.row)

    assert {name: entry[name] for name in ("key", "set", "game", "nth", "critical")} == {
        "key": "point:1:1:2",
        "set": 1,
        "game": 1,
        "nth": 2,
        "critical": False,
    }
    assert entry["data"] == {"winner": "home", "score": "30-0"}


async def test_a_source_of_another_sport_does_not_join_the_match(polling: Polling) -> None:
    match = await LiveMatch.take(polling.store, 1, "node-a")

    with pytest.raises(StorageError, match="match 1 is tennis, but source courtside is football"):
        await match.join(REF, polling.pipeline(sport_named("football")))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (EventKey("point", (1, 3, 2)), "point:1:3:2"),
        (EventKey("challenge", (2, 1), "away"), "challenge:away:2:1"),
        (EventKey("retired", (), "home"), "retired:home"),
    ],
)
def test_a_key_of_any_sport_comes_back_from_its_text(key: EventKey, text: str) -> None:
    assert str(key) == text
    assert EventKey.parse(text) == key
