"""Builders of the records that travel between the stages, with values that make sense when nothing is said."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
from msgspec import Struct

from longstop.model.event import Event, EventKey, Op
from longstop.model.match import MatchRef, MatchRow, MatchStatus, Phase
from longstop.model.polling_status import MonitoringRecord, SyncState
from longstop.sources.base import SourceConfig
from longstop.sports.cricket.model import (
    Board,
    CricketContent,
    CricketKind,
    CricketState,
    Delivery,
    Dismissal,
    InningsScore,
    Overs,
    OverSummary,
    Runs,
    Score,
    SeenEvent,
    SeenEvents,
    SeenWicket,
    Wicket,
)

NOW = datetime(2026, 3, 7, 14, 0, tzinfo=UTC)
REF = MatchRef("crex", "M1")

CREX_CONFIG = SourceConfig(
    domain_id="crex",
    enabled=True,
    precedence_weight=100,
    adapter_class="longstop.sources.crex.source:CrexSource",
    hosts=("api.test", "content.test", "names.test"),
    allow_private_addresses=False,
    permission=None,
    metadata={"api_url": "https://api.test", "content_url": "https://content.test", "names_url": "https://names.test"},
)


def overs(text: str) -> Overs:
    over, _, ball = text.partition(".")
    return Overs(int(over), int(ball))


def score(text: str) -> InningsScore:
    """Return a score from `runs/wickets over.ball`, e.g. `12/1 2.3`."""
    figures, _, bowled = text.partition(" ")
    runs, _, wickets = figures.partition("/")
    return InningsScore(runs=int(runs), wickets=int(wickets), overs=overs(bowled))


def wicket(kind: Dismissal = Dismissal.BOWLED, player_out: str = "A Batter", key: str | None = "A1") -> Wicket:
    return Wicket(kind=kind, player_out=player_out, player_key=key)


def delivery(label: str = "0.1", batter_runs: int = 0, *fallen: Wicket, **runs: int) -> Delivery:
    return Delivery(
        label=overs(label), runs=Runs(batter=batter_runs, **runs), batter="A1", bowler="B1", wickets=tuple(fallen)
    )


def ball_item(id_: int, label: str = "0.1", batter_runs: int = 0, *, innings: int = 1, **runs: int) -> SeenEvent:
    ball = delivery(label, batter_runs, **runs)
    return SeenEvent(innings=innings, over=ball.label.over, source_event_id=str(id_), content=ball)


def wicket_item(id_: int, label: str = "0.1", *, innings: int = 1, fallen: Wicket | None = None) -> SeenWicket:
    return SeenWicket(innings=innings, label=overs(label), source_event_id=str(id_), wicket=fallen or wicket())


def over_summary(runs: int = 4, total: int = 4, wickets: int = 0) -> OverSummary:
    return OverSummary(runs=runs, score=Score(runs=total, wickets=wickets), bowler="B1")


def over_item(id_: int, over: int = 0, *, innings: int = 1, runs: int = 4) -> SeenEvent:
    return SeenEvent(innings=innings, over=over, source_event_id=str(id_), content=over_summary(runs))


def seen(source_event_id: str, content: Struct | None = None, *, innings: int = 1, over: int = 0) -> SeenEvent:
    """Return a delivery or, when the content is one, an over's end as a source shows it."""
    shown = delivery() if content is None else cast(CricketContent, content)
    return SeenEvent(
        innings=innings,
        over=shown.label.over if isinstance(shown, Delivery) else over,
        source_event_id=source_event_id,
        content=shown,
    )


def listed(*events: SeenEvent, is_whole: bool = True, orphans: int = 0) -> SeenEvents:
    return SeenEvents(events=events, is_whole=is_whole, orphans=orphans)


def event(key: str, source_event_id: str, content: Struct | None = None, **changes: Any) -> Event:
    """Return a first version; `position` defaults to the nth of a delivery's key."""
    parsed = EventKey.parse(key)
    fields: dict[str, Any] = {
        "rev": 1,
        "op": Op.INSERT,
        "position": parsed.numbers[-1] if parsed.kind == CricketKind.DELIVERY else None,
        **changes,
    }
    return Event(key=parsed, content=content or delivery(), source_event_id=source_event_id, **fields)


def fold(*events: Event) -> dict[EventKey, Event]:
    """Return the latest version of each key."""
    return {each.key: each for each in events}


def applied(known: Mapping[EventKey, Event], events: Iterable[Event]) -> dict[EventKey, Event]:
    return {**known, **fold(*events)}


def board(**changes: Any) -> Board:
    fields: dict[str, Any] = {
        "source_id": REF.source_id,
        "status": MatchStatus.LIVE,
        "headline": "",
        "batting": "T1",
        "bowling": "T2",
        "match_format": "T20",
    }
    return Board(**{**fields, **changes})


def match_row(**changes: Any) -> MatchRow:
    fields: dict[str, Any] = {
        "match_id": 1,
        "ref": REF,
        "phase": Phase.ACTIVE,
        "status": MatchStatus.LIVE,
        "title": "T1 vs T2 - T20",
        "start_at": None,
        "owner": "node-a",
        "epoch": 1,
        "seq": 0,
        "created_at": NOW,
        "updated_at": NOW,
        "completed_at": None,
        "sport": "cricket",
    }
    return MatchRow(**{**fields, **changes})


def match_state(events: Mapping[EventKey, Event] | None = None, **changes: Any) -> CricketState:
    fields: dict[str, Any] = {"snapshot": None, "findings": (), "players": {}, "teams": {}, "row": match_row()}
    return CricketState(events=events or {}, **{**fields, **changes})


def record(**changes: Any) -> MonitoringRecord:
    fields: dict[str, Any] = {
        "match_id": 1,
        "ref": REF,
        "phase": Phase.ACTIVE,
        "status": MatchStatus.LIVE,
        "sync": SyncState.IN_SYNC,
        "last_poll_at": NOW,
        "sport": "cricket",
    }
    return MonitoringRecord(**{**fields, **changes})


def body(value: object) -> bytes:
    return msgspec.json.encode(value)
