"""What a hostile page costs: no memory after a failed poll, no time that grows with the square of its size."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import perf_counter

import msgspec
import pytest

from longstop.errors import LongstopError
from longstop.model.event import Event, EventKey
from longstop.sources.bodies_and_urls import clean_name
from longstop.sources.espncricinfo.embedded_json_fields import embedded_json
from longstop.sports.football.align import align
from longstop.sports.football.model import Card, CardKind, FootballKind, SeenIncident, Side
from longstop.telemetry.bus import Bus
from tests.crex_site import SiteMatch
from tests.live import watch
from tests.memory import MemoryHot
from tests.unit.sports.cricket.polling import Polling

FAILURES = 50
#: How much more memory may be in use after them: far less than one page.
GROWTH_BYTES = 1_000_000
PAGE_BYTES = 500_000


@pytest.fixture
def no_collection() -> Iterator[None]:
    """What only the garbage collector would free stays."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


def balls(count: int, **fields: object) -> list[dict[str, object]]:
    item = {"type": "b", "mfkey": "M1", "inning": 0, "on": 0, "o": "0.1", "b": "1", "fv": 2, "bf": "B1", "pf": "A1"}
    return [{**item, "id": 10**6 - nth, **fields} for nth in range(count)]


def page(*items: dict[str, object]) -> bytes:
    """Return a page of the event list, of half a megabyte."""
    return msgspec.json.encode([*balls(9, x="y" * (PAGE_BYTES // 9)), *items])


BROKEN = page({"type": "b", "id": "?"})
PAGES = {
    "a field of another type": ("getBallFeeds", BROKEN),
    "not JSON": ("getBallFeeds", page()[:-1]),
    "not UTF-8": ("getBallFeeds", page().replace(b"yyyy", b"\xff\xfe\xfd\xfc", 1)),
    "a ball that cannot be read": ("getBallFeeds", page(*balls(1, b="?"))),
    "another match": ("getBallFeeds", page(*balls(1, mfkey="M2"))),
    "too many items": ("getBallFeeds", msgspec.json.encode(balls(2_500))),
    "a state that cannot be read": ("getSV3", BROKEN),
    "an optional page that cannot be read": ("getSC4", BROKEN),
    "names that cannot be read": ("getHomeMapData", BROKEN),
}


@pytest.mark.parametrize("what", PAGES)
async def test_failed_polls_leave_no_memory_behind(what: str, no_collection: None) -> None:
    resource, body = PAGES[what]
    polling = Polling(SiteMatch())
    polling.match.bowl(*"12")
    await polling.start()
    watching = await watch(1, polling.pipeline, polling.store, MemoryHot(), Bus(), polling.clock)
    await watching.poll()
    polling.site.faults[resource] = body

    async def poll(times: int) -> int:
        for _ in range(times):
            polling.match.bowl("1")
            polling.clock.advance(400)  # longer than the match is paused
            await watching.poll()
            if len(polling.match.balls) > 5:
                polling.match.balls.pop()
        return tracemalloc.get_traced_memory()[0]

    before = await poll(3)
    after = await poll(FAILURES)

    assert after - before < GROWTH_BYTES


# --- time that grows squared ----------------------------------------------------------------------------------------

SCRIPT = b'<script id="__NEXT_DATA__" type="application/json">'


def seconds(call: Callable[[], object]) -> float:
    started = perf_counter()
    with suppress(LongstopError):
        call()
    return perf_counter() - started


def renamed_cards() -> object:
    """Compare 1,500 stored cards with as many under new ids."""
    known = {
        (key := EventKey(FootballKind.CARD, (nth,), "home")): Event(
            key=key, content=_card(nth), source_event_id=str(nth), position=None
        )
        for nth in range(1, 1_501)
    }
    shown = [
        SeenIncident(source_event_id=str(9_000 + nth), side=Side.HOME, content=_card(nth))
        for nth in range(1_500, 0, -1)
    ]
    return align(known, shown, None)


def _card(nth: int) -> Card:
    return Card(minute=nth % 90, player=str(nth), card=CardKind.YELLOW)


@pytest.mark.parametrize(
    "call",
    [
        renamed_cards,
        lambda: clean_name("A" + "\u0301\u0316" * 60_000),
        lambda: embedded_json(SCRIPT * 6_000),
        lambda: embedded_json(SCRIPT.removesuffix(b">") * 6_000),
    ],
    ids=["new ids", "combining characters", "openings of scripts", "openings of tags"],
)
def test_a_page_made_to_be_slow_is_not(call: Callable[[], object]) -> None:
    assert seconds(call) < 0.5
