"""crex: how it is asked, and that no body whatever is taken for something that it is not."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.errors import MalformedBody, ObservationError, ParseError, SourceError
from longstop.model.source_queries_and_answers import Listing, Query
from longstop.sources.bodies_and_urls import read_body
from longstop.sports.cricket.model import Board, EventListPage, Names, Scorecard
from tests.builders import body
from tests.unit.sources.crex.reading import (
    BALL,
    BALLS,
    EVERY_ASK,
    LIST,
    LIVE,
    NAMES,
    OVER,
    PAGE_OF,
    SCORECARD,
    SOURCE,
    STATE,
    page,
)


@pytest.mark.parametrize(
    ("ask", "asked"),
    [
        (LIST, "GET https://api.test/api/v3/getLiveMatches"),
        (LIVE, "GET https://api.test/api/v3/getSV3?key=M1"),
        (SCORECARD, "GET https://api.test/api/v3/getSC4?key=M1"),
        (BALLS, "POST https://content.test/commentary/v1/getBallFeeds"),
        (NAMES, "POST https://names.test/mapping/getHomeMapData"),
    ],
)
def test_each_resource_has_its_address(ask: Query, asked: str) -> None:
    request = SOURCE.request(ask)

    assert (request.source, f"{request.method} {request.url}") == ("crex", asked)


def test_the_feed_is_asked_for_the_items_before_the_oldest_we_have() -> None:
    request = SOURCE.request(Query(resource=BALLS.resource, source_id="M1", cursor="1772899002000"))

    assert msgspec.json.decode(request.body or b"") == {
        "matchKey": "M1",
        "lastDocId": "1772899002000",
        "filters": {},
        "lang": "en",
    }


def test_codes_and_odds_move_no_digest_and_words_and_scores_do() -> None:
    def digests(**changes: object) -> tuple[bytes, bytes]:
        state = {**STATE, "B": "1", **changes}
        return SOURCE.digest(LIVE, body(state)), SOURCE.digest(LIST, body({"M1": state}))

    known = digests()

    assert digests(B="B") == digests(B="^2") == digests(B="o") == digests(R="31+2", wp="M1,1,2,0") == known
    for changes in ({"B": "Drinks"}, {"B": ""}, {"j": "1/1(0.3"}, {"a": "T2.T1"}, {"tg": "171(20.0"}, {"c": "9.9.9"}):
        assert not set(digests(**changes)) & set(known), changes


def test_names_are_asked_for_players_and_teams_apart() -> None:
    request = SOURCE.request(Query(resource=NAMES.resource, players=("A1", "B1"), teams=("T1",)))

    asked = msgspec.json.decode(request.body or b"")
    assert (asked["p"], asked["t"]) == (["A1", "B1"], ["T1"])


def spoilt_bodies(good: bytes) -> dict[str, bytes]:
    text = good.decode()
    return {
        "empty": b"",
        "blank": b"  \n",
        "truncated": good[: len(good) // 2],
        "html": b"<!doctype html><title>Welcome</title>",
        "utf-16": text.encode("utf-16"),
        "nul": b"\0" * 16,
        "byte order mark": b"\xef\xbb\xbf" + good,
        "nan": b"NaN",
        "nan inside": b'{"M1": NaN}',
        "infinity inside": b"[Infinity]",
        "huge exponent": b"1e400",
        "huge integer": b"[" + b"9" * 5000 + b"]",
        "deep list": b"[" * 100_000,
        "deep list closed": b"[" * 100_000 + b"]" * 100_000,
        "deep object": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        "lone surrogate": b'"\\ud800"',
        "wrong type": b"7",
        "null": b"null",
        "two bodies": good + good,
    }


CASES = [(ask, name) for ask in EVERY_ASK for name in spoilt_bodies(b"{}")]


@pytest.mark.parametrize(("ask", "name"), CASES, ids=[f"{ask.resource}-{name}" for ask, name in CASES])
def test_a_spoilt_body_is_a_typed_error_that_names_source_and_request(ask: Query, name: str) -> None:
    spoilt = spoilt_bodies(page(PAGE_OF[ask.resource]))[name]

    with pytest.raises(ParseError) as caught:
        read_body(SOURCE, ask, spoilt)

    assert caught.value.source == "crex"
    assert caught.value.request.startswith(ask.resource)
    assert caught.value.reason
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("spoilt", [b'{"a": "\xe9", "B": "", "j": ""}', b'{"a": "\\udfff", "B": "", "j": ""}'])
def test_text_in_another_encoding_is_malformed(spoilt: bytes) -> None:
    with pytest.raises(MalformedBody):
        read_body(SOURCE, LIVE, spoilt)


READINGS = (Listing, Board, EventListPage, Scorecard, Names)


def reading_or_error(ask: Query, spoilt: bytes) -> object:
    try:
        return read_body(SOURCE, ask, spoilt)
    except (ParseError, ObservationError) as error:
        return error


@given(
    ask=st.sampled_from(EVERY_ASK),
    place=st.integers(min_value=0, max_value=5000),
    junk=st.binary(max_size=4),
    width=st.integers(min_value=0, max_value=40),
)
def test_any_mutation_is_a_reading_or_a_typed_error(ask: Query, place: int, junk: bytes, width: int) -> None:
    good = page(PAGE_OF[ask.resource])
    start = place % len(good)

    found = reading_or_error(ask, good[:start] + junk + good[start + width :])

    assert isinstance(found, READINGS) or (isinstance(found, SourceError) and found.source == "crex")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(ask=st.sampled_from((LIVE, BALLS)), name=st.sampled_from(sorted({*STATE, *BALL, *OVER})), value=_VALUES)
def test_any_value_in_any_field_is_a_reading_or_a_typed_error(ask: Query, name: str, value: object) -> None:
    good: object = {**STATE, name: value} if ask is LIVE else [{**OVER, name: value}, {**BALL, name: value}]
    try:
        spoilt = body(good)
    except OverflowError:  # beyond 64 bits: no JSON of ours can say it
        return

    found = reading_or_error(ask, spoilt)

    assert isinstance(found, READINGS) or (isinstance(found, SourceError) and found.source == "crex")
