"""What the tests of crex read, and how they ask for it."""

from pathlib import Path
from typing import Any

from longstop.model import source_queries_and_answers
from longstop.model.source_queries_and_answers import Listing, Query
from longstop.sources.bodies_and_urls import read_body
from longstop.sources.crex.source import CrexSource
from longstop.sports.cricket import model
from longstop.sports.cricket.model import Board, EventListPage
from tests.builders import CREX_CONFIG, body

PAGES = Path(__file__).parents[3] / "pages" / "crex"
SOURCE = CrexSource(CREX_CONFIG)
LIST = Query(resource=source_queries_and_answers.LIST)
LIVE = Query(resource=source_queries_and_answers.LIVE, source_id="M1")
BALLS = Query(resource=model.BALLS, source_id="M1")
SCORECARD = Query(resource=model.SCORECARD, source_id="M1")
NAMES = Query(resource=model.NAMES, players=("A1",))
EVERY_ASK = (LIST, LIVE, BALLS, SCORECARD, NAMES)
PAGE_OF = {
    source_queries_and_answers.LIST: "live_list.json",
    source_queries_and_answers.LIVE: "live_in_play.json",
    model.BALLS: "ball_feed.json",
    model.SCORECARD: "scorecard.json",
    model.NAMES: "names.json",
}
STATE: dict[str, Any] = {"a": "T1.T2", "B": "1", "j": "40/2(6.3", "k": "0/0(0.0", "fo": "T20", "mt": 1_772_892_000_000}
BALL: dict[str, Any] = {
    "type": "b",
    "id": 100,
    "mfkey": "M1",
    "inning": 0,
    "on": 6,
    "o": "6.3",
    "b": "1",
    "fv": 2,
    "bf": "B1",
    "pf": "A1",
}
WICKET: dict[str, Any] = {
    "type": "w",
    "id": 101,
    "mfkey": "M1",
    "inning": 0,
    "on": 6,
    "o": "6.3",
    "fv": 64,
    "player": "Ann One",
    "pf_out": "A1",
    "dismissal": 1,
}
OVER: dict[str, Any] = {
    "type": "o",
    "id": 110,
    "mfkey": "M1",
    "inning": 0,
    "on": 5,
    "o": 6,
    "runs": 7,
    "s": "40/2",
    "bf": "B1",
}


def page(name: str) -> bytes:
    return (PAGES / name).read_bytes()


def board(**changes: object) -> Board:
    found = read_body(SOURCE, LIVE, body({**STATE, **changes}))
    assert isinstance(found, Board)
    return found


def feed(*items: dict[str, Any]) -> EventListPage:
    found = read_body(SOURCE, BALLS, body(items))
    assert isinstance(found, EventListPage)
    return found


def listing(entries: object) -> Listing:
    found = read_body(SOURCE, LIST, body(entries))
    assert isinstance(found, Listing)
    return found
