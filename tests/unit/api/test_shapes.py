import json
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from longstop.api.shapes import event_entry, in_order_of_play, splice_metadata
from longstop.model.event import Event, EventKey, Op, StoredEvent
from longstop.sports.cricket.model import (
    Delivery,
    Dismissal,
    InningsSummary,
    Kind,
    Overs,
    OverSummary,
    Result,
    ResultKind,
    Runs,
    Score,
    Wicket,
)
from tests.builders import match_row
from tests.readers import NOW, a_ball

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
        key=EventKey(Kind.DELIVERY, (2, 4, 3)),
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

    ordered = in_order_of_play(events, MATCH)

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
