import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

from longstop.api.match_documents import (
    event_entry,
    from_hot,
    from_store,
    in_order_of_play,
    record_age,
    shown_age,
    splice_metadata,
)
from longstop.clock import Moment
from longstop.model.event import Event, EventKey, Op, StoredEvent
from longstop.model.match import Phase
from longstop.model.polling_status import SyncState
from longstop.sports.cricket.model import (
    CricketKind,
    Delivery,
    Dismissal,
    InningsSummary,
    Overs,
    OverSummary,
    Result,
    ResultKind,
    Runs,
    Score,
    Wicket,
)
from tests.builders import match_row
from tests.readers import NOW, a_ball, a_hot_row, a_match, a_record, a_snapshot

OVER = OverSummary(runs=6, score=Score(runs=6, wickets=0))
INNINGS = InningsSummary(team="R", runs=6, wickets=0, overs=Overs(1, 0))
MATCH = match_row()
RESULT = Result(outcome=ResultKind.TIE, text="Match tied")


def stored(key: str, content: Struct, seq: int = 1) -> StoredEvent:
    event = Event(key=EventKey.parse(key), rev=1, op=Op.INSERT, content=content, source_event_id="9")
    return StoredEvent(event=event, seq=seq, epoch=1, captured_at=NOW)


def test_a_delivery_is_spelled_in_full() -> None:
    wicket = Wicket(kind=Dismissal.BOWLED, player_out="A. Batter", player_key="P1")
    content = Delivery(label=Overs(4, 2), runs=Runs(wides=1), wickets=(wicket,))
    event = Event(
        key=EventKey(CricketKind.DELIVERY, (2, 4, 3)),
        rev=2,
        op=Op.UPDATE,
        content=content,
        source_event_id="77",
        position=27,
    )

    entry = event_entry(StoredEvent(event=event, seq=12, epoch=3, captured_at=NOW), MATCH)

    assert json.loads(msgspec.json.encode(entry)) == {
        "seq": 12,
        "key": "delivery:2:4:3",
        "kind": "delivery",
        "rev": 2,
        "op": "update",
        "innings": 2,
        "over": 4,
        "nth": 3,
        "position": 27,
        "critical": True,
        "source": "crex",
        "source_event_id": "77",
        "captured_at": "2026-11-15T12:00:00.000Z",
        "data": {
            "label": {"over": 4, "ball": 2},
            "runs": {"batter": 0, "wides": 1, "noballs": 0, "byes": 0, "legbyes": 0, "penalty": 0},
            "boundary": None,
            "batter": None,
            "bowler": None,
            "wickets": [{"kind": "bowled", "player_out": "A. Batter", "player_key": "P1"}],
        },
    }


@pytest.mark.parametrize(
    ("key", "content", "numbers"),
    [
        ("over:1:0", OVER, (1, 0, None)),
        ("innings:2", INNINGS, (2, None, None)),
        ("result", RESULT, (None, None, None)),
    ],
)
def test_what_a_kind_does_not_have_is_null(key: str, content: Struct, numbers: tuple[int | None, ...]) -> None:
    entry = event_entry(stored(key, content), MATCH)

    assert (entry["innings"], entry["over"], entry["nth"]) == numbers
    assert entry["position"] is None
    assert "kind" not in entry["data"]


def test_events_are_ordered_as_played_and_void_ones_left_out() -> None:
    events = [
        stored("result", RESULT, seq=9),
        stored("innings:1", INNINGS, seq=8),
        stored("over:1:0", OVER, seq=7),
        stored("over:1:1", OVER, seq=10),
        a_ball(1, nth=1, position=1),
        a_ball(2, nth=2, position=3),
        a_ball(3, nth=3, position=2),  # inserted in the past: allotted later, played earlier
        a_ball(6, nth=4, rev=2, op=Op.VOID),
    ]

    ordered = in_order_of_play(events, MATCH, with_voids=False)

    assert [str(each.event.key) for each in ordered] == [
        "delivery:1:0:1",
        "delivery:1:0:3",
        "delivery:1:0:2",
        "over:1:0",
        "over:1:1",
        "innings:1",
        "result",
    ]


@pytest.mark.parametrize("payload", [b"{}", b'{"a":1}', '{"a":{"b":"}\\"“"}}'.encode()])
def test_metadata_is_spliced_in_and_the_payload_stays_byte_for_byte(payload: bytes) -> None:
    about: dict[str, Any] = {"sequence": 3}

    body = splice_metadata(payload, about)

    assert body.startswith(payload[:-1])
    assert json.loads(body) == json.loads(payload) | {"_metadata": about}


@pytest.mark.parametrize(
    ("seconds", "age"),
    [
        (3.0, 3.0),
        (0.0014, 0.001),
        (-5.0, 0.0),  # the other clock is ahead
    ],
)
def test_an_age_is_in_milliseconds_and_never_negative(seconds: float, age: float) -> None:
    assert shown_age(seconds) == age


@pytest.mark.req("NFR-005")
@pytest.mark.parametrize("leap", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_live_view_is_as_old_as_it_is_whatever_the_wall_clock_shows(leap: timedelta) -> None:
    record = replace(a_record(polled=2), last_poll_monotonic=998.0)
    now = Moment(NOW + leap, 1000.0)

    view, stored = from_hot(a_match(), a_hot_row(record)), from_store(a_match(), a_snapshot(), record)

    assert view is not None
    assert (view.age_at(now), stored.age_at(now), record_age(record, now)) == (2.0, 2.0, 2.0)


def test_what_only_the_store_knows_is_as_old_as_the_wall_clock_says() -> None:
    view = from_store(a_match(), a_snapshot(), None)

    assert view.age_at(Moment(NOW, 5.0)) == 40.0


def test_a_live_view_without_a_payload_is_none() -> None:
    assert from_hot(a_match(), a_hot_row(payload=None)) is None


def test_a_live_payload_whose_poll_is_unknown_is_as_old_as_its_capture() -> None:
    row = a_hot_row(a_record(polled=None))

    view = from_hot(a_match(), row)

    assert view is not None
    assert view.polled_at == row.captured_at


def test_an_unwatched_view_is_as_old_as_its_snapshot() -> None:
    view = from_store(a_match(), a_snapshot(), None)

    assert view.polled_at == a_snapshot().created_at
    assert view.sync is SyncState.UNWATCHED


def test_an_archived_match_is_in_sync_although_it_is_unwatched() -> None:
    archived = replace(a_match(), phase=Phase.ARCHIVED)

    assert from_store(archived, a_snapshot(), None).sync is SyncState.IN_SYNC


def test_a_stored_view_takes_poll_and_sync_from_a_record_that_has_them() -> None:
    view = from_store(a_match(), a_snapshot(), a_record(polled=2))

    assert view.polled_at == NOW - timedelta(seconds=2)
    assert view.sync is SyncState.IN_SYNC
