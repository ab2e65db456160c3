from datetime import UTC, datetime, timedelta, timezone

from msgspec import Struct

from longstop.clock import iso_or_none
from longstop.model.event import Event, EventKey, Op, content_hash
from longstop.sports.cricket.model import Result, ResultKind
from longstop.storage.sqlite.connection import columns_of, to_record
from longstop.storage.sqlite.matches import event_columns


class Kept(Struct, frozen=True):
    at: datetime | None


def test_a_moment_keeps_its_milliseconds_and_its_place_in_time() -> None:
    in_india = datetime(2026, 3, 7, 19, 30, 0, 5_000, tzinfo=timezone(timedelta(hours=5, minutes=30)))

    assert columns_of(Kept(in_india)) == {"at": iso_or_none(in_india)} == {"at": "2026-03-07T14:00:00.005Z"}
    assert to_record(Kept, columns_of(Kept(in_india))) == Kept(in_india)
    assert to_record(Kept, columns_of(Kept(in_india))).at == datetime(2026, 3, 7, 14, 0, 0, 5_000, tzinfo=UTC)


def test_no_moment_stays_no_moment() -> None:
    assert iso_or_none(None) is None
    assert to_record(Kept, columns_of(Kept(None))) == Kept(None)


def test_an_event_is_spelt_in_columns() -> None:
    content = Result(outcome=ResultKind.TIE, text="tied")
    event = Event(key=EventKey("result"), rev=2, op=Op.UPDATE, content=content, source_event_id="r")

    columns = event_columns(event, "cricket")

    assert columns == {
        "key": "result",
        "rev": 2,
        "kind": "result",
        "innings": 0,
        "over": 0,
        "nth": 0,
        "side": "",
        "position": None,
        "op": "update",
        "source_event_id": "r",
        "content": '{"kind":"result","outcome":"tie","text":"tied"}',
        "content_hash": content_hash(content, None),
        "source": "",
    }
