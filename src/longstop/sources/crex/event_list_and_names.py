"""Parses crex's event list (balls, wickets, over ends) and its table of names."""

import re

import msgspec
from msgspec import UNSET, Struct, UnsetType

from longstop.errors import LayoutChanged, WrongMatch
from longstop.sources.bodies_and_urls import Id, Small, clean_name, decode
from longstop.sources.crex.live_list_and_scores import numbers
from longstop.sports.cricket.model import (
    Delivery,
    Dismissal,
    EventListPage,
    Names,
    Overs,
    OverSummary,
    Runs,
    Score,
    SeenEvent,
    SeenWicket,
    Wicket,
)

_SCORE_AFTER = re.compile(r"(\d{1,4})/(\d{1,2})", re.ASCII)
_LABEL = re.compile(r"(\d{1,3})\.(\d{1,2})", re.ASCII)
_BALL_PART = re.compile(r"(?P<number>\d{0,2})(?P<kind>wd|nb|lb|b|p)?(?P<extras>\d?)", re.ASCII)
_BOUNDARIES = {4: 6, 8: 4}
_EXTRAS = {"wd": "wides", "b": "byes", "lb": "legbyes", "p": "penalty"}
_DISMISSALS = {
    1: Dismissal.BOWLED,
    2: Dismissal.CAUGHT,
    3: Dismissal.LBW,
    4: Dismissal.RUN_OUT,
    5: Dismissal.STUMPED,
    6: Dismissal.HIT_WICKET,
    7: Dismissal.RETIRED,
    8: Dismissal.OBSTRUCTING,
}


class Item(Struct, frozen=True, kw_only=True):
    """The fields of every item. Of commentary between balls nothing else is read."""

    type: str
    id: Id
    mfkey: str | UnsetType = UNSET


class _EventItem(Item, frozen=True, kw_only=True):
    """An item that is an event; the site counts innings from 0."""

    inning: Small
    team: str | None = None
    tfkey: str | None = None


class _Ball(_EventItem, frozen=True, kw_only=True):
    on: Small
    o: str
    b: str
    fv: int
    bf: str | None
    pf: str | None

    def read(self) -> SeenEvent:
        label = _label(self.o)
        if label.over != self.on:
            raise LayoutChanged(f"ball {self.id} of over {self.on} has the label {label}")
        delivery = Delivery(
            label=label,
            runs=read_ball_value(self.b),
            boundary=_BOUNDARIES.get(self.fv),
            batter=self.pf or None,
            bowler=self.bf or None,
        )
        return SeenEvent(innings=self.inning + 1, over=self.on, source_event_id=str(self.id), content=delivery)


class _Wicket(_EventItem, frozen=True, kw_only=True):
    o: str
    dismissal: Small
    player: str
    pf_out: str | None

    def read(self) -> SeenWicket:
        kind = _DISMISSALS.get(self.dismissal, Dismissal.OTHER)
        wicket = Wicket(kind=kind, player_out=clean_name(self.player), player_key=self.pf_out or None)
        return SeenWicket(innings=self.inning + 1, label=_label(self.o), source_event_id=str(self.id), wicket=wicket)


class _Over(_EventItem, frozen=True, kw_only=True):
    on: Small
    s: str
    runs: Small
    bf: str | None

    def read(self) -> SeenEvent:
        runs, wickets = numbers(_SCORE_AFTER, self.s, "s")
        summary = OverSummary(runs=self.runs, score=Score(runs=runs, wickets=wickets), bowler=self.bf or None)
        return SeenEvent(innings=self.inning + 1, over=self.on, source_event_id=str(self.id), content=summary)


_Event = _Ball | _Wicket | _Over
#: Items of other types are commentary, not events.
_SHAPES: dict[str, type[Item]] = {"b": _Ball, "w": _Wicket, "o": _Over}


def read_items(body: bytes) -> list[Item]:
    raw = [bytes(item) for item in decode(body, list[msgspec.Raw])]
    return [decode(item, _SHAPES.get(decode(item, Item).type, Item)) for item in raw]


def read_event_list(source_id: str, body: bytes) -> EventListPage:
    items = read_items(body)
    for item in items:
        if source_id and item.mfkey is not UNSET and item.mfkey != source_id:
            raise WrongMatch(f"the event list is of match {item.mfkey[:20]!r}")
    events = [item for item in items if isinstance(item, _Event)]
    return EventListPage(
        items=tuple(item.read() for item in events),
        next_before=str(items[-1].id) if items else None,
        teams={item.tfkey: clean_name(item.team) for item in events if item.tfkey and item.team},
    )


def _label(text: str) -> Overs:
    return Overs(*numbers(_LABEL, text, "o"))


def read_ball_value(text: str) -> Runs:
    """Parse the runs of a ball: `4`, `wd`, `5wd`, `4nb` (four off the bat), `nb2` (two extras), `lb+5p`, `lb1`."""
    counts = dict.fromkeys(("batter", "wides", "noballs", "byes", "legbyes", "penalty"), 0)
    for part in text.split("+"):
        found = _BALL_PART.fullmatch(part)
        if not part or found is None or (found["extras"] and not _may_follow(found["kind"], found["number"])):
            raise LayoutChanged(f"cannot parse the ball value {text[:40]!r}")
        number, kind = found["number"], found["kind"]
        match kind:
            case None:
                counts["batter"] += int(number)
            case "nb":
                counts["batter"] += int(number or 0)
                counts["noballs"] += int(found["extras"] or 1)
            case _:
                counts[_EXTRAS[kind]] += int(number or found["extras"] or 1)
    return Runs(**counts)


def _may_follow(kind: str | None, number: str) -> bool:
    """Return whether a number may follow: the extras of a no-ball, or byes, whose number may be on either side."""
    return kind == "nb" or (kind in ("b", "lb") and not number)


# --- names -----------------------------------------------------------------------------------------------------------


class _Name(Struct, frozen=True):
    f_key: str
    n: str | None = None


class _NameTable(Struct, frozen=True):
    p: list[_Name]
    t: list[_Name]


def read_names(body: bytes) -> Names:
    table = decode(body, _NameTable)
    return Names(players=_named(table.p), teams=_named(table.t))


def _named(names: list[_Name]) -> dict[str, str]:
    """Return names by key. A key without a name stays unresolved and is requested again."""
    return {item.f_key: clean_name(item.n) for item in names if item.n and item.n.strip()}
