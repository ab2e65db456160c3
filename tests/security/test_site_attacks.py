"""Hostile matches, listings and sites beside healthy ones: real sockets, a real scraper."""

import asyncio
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from longstop_lab.simulator.http import Request
from tests.security.hostile_site import FRESH_SECONDS, Attack, HostileSite, Observed, live_match, scrape

BALLS, NAMES, STATE, LIST = "getBallFeeds", "getHomeMapData", "getSV3", "getLiveMatches"
GOOD = ("G1", "G2", "G3")
LAG_SECONDS = 0.5
MEGABYTES = 400
#: A little less than a page may have.
PAGE_BYTES = 4_900_000


def item(key: str, number: int, *, innings: int = 0, over: int = 0, text: str = "") -> dict[str, Any]:
    return {
        "type": "b",
        "id": number,
        "mfkey": key,
        "inning": innings,
        "on": over,
        "o": f"{over}.1",
        "b": "1",
        "fv": 2,
        "bf": "B1",
        "pf": "A1",
        "c": text,
    }


def cursor_of(request: Request) -> int | None:
    """Return where a page of the event list begins; `None` for the first one."""
    cursor = msgspec.json.decode(request.body)["lastDocId"]
    return int(cursor) if cursor else None


def only_page(request: Request, page: bytes) -> bytes | None:
    """Return this as the first and only page of the event list."""
    if not request.path.endswith(BALLS):
        return None
    return b"[]" if cursor_of(request) else page


@cache
def _padding() -> str:
    return "x" * (PAGE_BYTES // 10)


async def endless_pages(request: Request) -> bytes | None:
    """Ten balls on 4.9 MB, and then another page."""
    if not request.path.endswith(BALLS):
        return None
    before = cursor_of(request) or 10**9
    return msgspec.json.encode([item("PAGES", before - nth, text=_padding()) for nth in range(1, 11)])


@cache
def _many_innings() -> bytes:
    # Shorter than those of `item`, so that a page may have as many.
    short = {"type": "b", "on": 0, "o": "0.1", "b": "1", "fv": 2, "bf": None, "pf": None}
    return msgspec.json.encode([{**short, "id": 60_000 - nth, "inning": 9_998 - nth % 9_999} for nth in range(50_000)])


async def many_innings(request: Request) -> bytes | None:
    """50,000 balls in 9,999 innings on one page."""
    return only_page(request, _many_innings())


@cache
def _one_over() -> bytes:
    return msgspec.json.encode([item("OVER", 60_000 - nth) for nth in range(10_000)])


async def one_over(request: Request) -> bytes | None:
    """10,000 balls in one over."""
    return only_page(request, _one_over())


async def small_endless_pages(request: Request) -> bytes | None:
    """Ten balls a page, a few innings each, and every page points to the next one."""
    if not request.path.endswith(BALLS):
        return None
    before = cursor_of(request) or 10**9
    return msgspec.json.encode(
        [item("ENDLESS", before - nth, innings=nth % 4, over=before % 20) for nth in range(1, 11)]
    )


async def long_name(request: Request) -> bytes | None:
    """A player with a name of 4 MB."""
    if not request.path.endswith(NAMES) or b"BADMAN" not in request.body:
        return None
    table = msgspec.json.decode(request.body)
    players = [{"f_key": key, "n": "N" * 4_000_000 if key == "BADMAN" else key} for key in table["p"]]
    return msgspec.json.encode({"p": players, "t": [{"f_key": key, "n": key} for key in table["t"]]})


@cache
def _garbage() -> bytes:
    return _many_innings().removesuffix(b"]") + b',{"type":"b","id":"?"}]'


async def garbage(request: Request) -> bytes | None:
    """50,000 balls, of which the last cannot be parsed."""
    return _garbage() if request.path.endswith(BALLS) else None


@cache
def _deep() -> bytes:
    return b"[" * (PAGE_BYTES // 2) + b"]" * (PAGE_BYTES // 2)


async def deep(request: Request) -> bytes | None:
    """2.4 million lists in each other."""
    return _deep() if request.path.endswith(BALLS) else None


async def huge_numbers(request: Request) -> bytes | None:
    """A ball with a number of four million digits."""
    return b'[{"type":"b","id":' + b"9" * 4_000_000 + b"}]" if request.path.endswith(BALLS) else None


async def long_headline(request: Request) -> bytes | None:
    """A live state with a text of 4 MB."""
    if not request.path.endswith(STATE):
        return None
    return msgspec.json.encode({**live_match("TEXT").state(), "B": "rain " * 800_000})


#: By match; the name is attacked by its key, which the request has in place of the match.
ATTACKS: dict[str | None, Attack] = {
    "PAGES": endless_pages,
    "INNINGS": many_innings,
    "OVER": one_over,
    "ENDLESS": small_endless_pages,
    "BROKEN": garbage,
    "DEEP": deep,
    "NUMBER": huge_numbers,
    "TEXT": long_headline,
    None: long_name,
}
#: Their pages are no event lists at all; those of the others exceed a limit.
UNREADABLE = ("BROKEN", "DEEP", "NUMBER")
HOSTILE = (*(key for key in ATTACKS if key), "NAME")


async def hostile_matches(request: Request) -> bytes | None:
    attack = ATTACKS.get(request.match_key)
    return await attack(request) if attack else None


async def test_hostile_matches_are_paused_and_the_others_do_not_notice(tmp_path: Path) -> None:
    site, other = HostileSite("crex", (*GOOD, *HOSTILE), hostile_matches), HostileSite("other", GOOD)
    site.batters["NAME"] = "BADMAN"

    seen = await scrape(tmp_path, site, other, seconds=20, until="circuit_opened", times=len(HOSTILE))

    check_others(seen)
    assert max(seen.ages[f"crex_{key}"] for key in GOOD) < FRESH_SECONDS
    paused = {line["subject"] for line in seen.logged("circuit_opened")}
    assert paused == {f"crex_{key}" for key in HOSTILE}
    assert not seen.logged("layout.broken")
    for key in HOSTILE:
        expected = {"MalformedBody", "LayoutChanged"} if key in UNREADABLE else {"LimitExceeded"}
        assert expected >= {line["error_type"] for line in seen.logged("poll.failed", f"crex_{key}")}


async def crowded_list(request: Request) -> bytes | None:
    """50,000 matches in a listing, on at most 5 MB."""
    if not request.path.endswith(LIST):
        return None
    return _crowd()


@cache
def _crowd() -> bytes:
    entry = {"a": "T1.T2", "B": "B", "j": "1/0(0.1", "k": ""}
    return msgspec.json.encode({**dict.fromkeys(GOOD, entry), **{f"X{nth}": entry for nth in range(50_000)}})


class ChangingList:
    """A listing with a thousand entries, whose ids are new in every answer."""

    def __init__(self) -> None:
        self._turn = 0

    async def __call__(self, request: Request) -> bytes | None:
        if not request.path.endswith(LIST):
            return None
        self._turn += 1
        entry = live_match("X").entry()
        new = {f"X{self._turn}-{nth}": entry for nth in range(1_000)}
        return msgspec.json.encode({**dict.fromkeys(GOOD, entry), **new})


def check_others(seen: Observed) -> None:
    assert seen.exit_code is None
    assert 0 < seen.loop_lag < LAG_SECONDS + seen.machine_lag
    assert seen.memory < MEGABYTES
    assert seen.oldest("other") < FRESH_SECONDS


async def test_a_listing_of_50000_matches_is_refused_and_known_ones_are_polled_without_it(tmp_path: Path) -> None:
    site, other = HostileSite("crex", GOOD, crowded_list), HostileSite("other", GOOD)

    seen = await scrape(tmp_path, site, other, seconds=12, until="listing.failed")

    check_others(seen)
    # Without a listing, matches are polled every fourth interval.
    assert seen.oldest("crex") < 4 * 0.5 + FRESH_SECONDS
    assert {line["error_type"] for line in seen.logged("listing.failed")} == {"LimitExceeded"}
    assert len(seen.logged("match.discovered")) == 2 * len(GOOD)
    assert seen.disk < 20_000_000


async def test_a_listing_with_new_matches_in_every_answer_fills_neither_memory_nor_disk(tmp_path: Path) -> None:
    site, other = HostileSite("crex", GOOD, ChangingList()), HostileSite("other", GOOD)

    seen = await scrape(tmp_path, site, other, seconds=12, settings={"SCRAPER_MAX_MATCHES": "300"})

    check_others(seen)
    assert len(seen.logged("match.discovered")) <= 300 + len(GOOD)
    assert len(seen.logged("matches.refused")) == 1
    assert seen.disk < 20_000_000


async def test_a_slow_site_leaves_slots_to_the_others(tmp_path: Path) -> None:
    async def slow(request: Request) -> bytes | None:
        if not request.path.endswith(LIST):
            await asyncio.sleep(7)
        return None

    crowd = HostileSite("crex", [f"S{nth}" for nth in range(12)], slow)
    other = HostileSite("other", GOOD)

    seen = await scrape(tmp_path, crowd, other, seconds=15, settings={"CONCURRENCY_CAP": "4"})

    check_others(seen)
