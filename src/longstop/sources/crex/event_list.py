"""Parses crex's event list (balls, wickets, over ends) and its table of names."""

import re
from collections.abc import Callable

import msgspec
from msgspec import UNSET, Struct, UnsetType

from longstop.errors import LayoutChanged, WrongMatch
from longstop.sources.crex.board import numbers
from longstop.sources.parsing import Id, Small, clean_name, decode
from longstop.sports.cricket.model import (
    BallItem,
    Delivery,
    Dismissal,
    EventListPage,
    ListItem,
    Names,
    OverItem,
    Overs,
    OverSummary,
    Runs,
    Score,
    Wicket,
    WicketItem,
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


class _Head(Struct, frozen=True):
    """The fields of every item. Of commentary between balls nothing else is read."""

    type: str
    id: Id
    mfkey: str | UnsetType = UNSET


class Item(_Head, frozen=True):
    """A ball, a wicket or the end of an over. Which fields are required depends on `type`."""

    inning: Small | UnsetType = UNSET
    on: Small | UnsetType = UNSET
    o: str | Small | UnsetType = UNSET
    b: str | UnsetType = UNSET
    fv: int | UnsetType = UNSET
    s: str | UnsetType = UNSET
    bf: str | UnsetType | None = UNSET
    pf: str | UnsetType | None = UNSET
    player: str | UnsetType = UNSET
    pf_out: str | UnsetType | None = UNSET
    dismissal: Small | UnsetType = UNSET
    runs: Small | UnsetType = UNSET
    team: str | None = None
    tfkey: str | None = None


def read_event_list(source_id: str, body: bytes) -> EventListPage:
    raw = decode(body, list[msgspec.Raw])
    heads = [decode(bytes(item), _Head) for item in raw]
    for head in heads:
        if source_id and head.mfkey is not UNSET and head.mfkey != source_id:
            raise WrongMatch(f"the event list is of match {head.mfkey[:20]!r}")
    items = [decode(bytes(item), Item) for head, item in zip(heads, raw, strict=True) if head.type in _READERS]
    return EventListPage(
        items=tuple(_READERS[item.type](item) for item in items),
        next_before=str(heads[-1].id) if heads else None,
        teams={item.tfkey: clean_name(item.team) for item in items if item.tfkey and item.team},
    )


def _ball(item: Item) -> BallItem:
    over = _whole(item, "on", item.on)
    label = Overs(*numbers(_LABEL, _text(item, "o", item.o), "o"))
    if label.over != over:
        raise LayoutChanged(f"ball {item.id} of over {over} has the label {label}")
    delivery = Delivery(
        label=label,
        runs=read_ball_value(_text(item, "b", item.b)),
        boundary=_BOUNDARIES.get(_whole(item, "fv", item.fv)),
        batter=_key(item, "pf", item.pf),
        bowler=_key(item, "bf", item.bf),
    )
    return BallItem(id=item.id, innings=_innings(item), over=over, delivery=delivery)


def _wicket(item: Item) -> WicketItem:
    kind = _DISMISSALS.get(_whole(item, "dismissal", item.dismissal), Dismissal.OTHER)
    name = clean_name(_text(item, "player", item.player))
    wicket = Wicket(kind=kind, player_out=name, player_key=_key(item, "pf_out", item.pf_out))
    label = Overs(*numbers(_LABEL, _text(item, "o", item.o), "o"))
    return WicketItem(id=item.id, innings=_innings(item), label=label, wicket=wicket)


def _over(item: Item) -> OverItem:
    runs, wickets = numbers(_SCORE_AFTER, _text(item, "s", item.s), "s")
    summary = OverSummary(
        runs=_whole(item, "runs", item.runs),
        score=Score(runs=runs, wickets=wickets),
        bowler=_key(item, "bf", item.bf),
    )
    return OverItem(id=item.id, innings=_innings(item), over=_whole(item, "on", item.on), summary=summary)


#: Items of other types are commentary, not events.
_READERS: dict[str, Callable[[Item], ListItem]] = {"b": _ball, "w": _wicket, "o": _over}


def _innings(item: Item) -> int:
    """Return the innings from 1; the site counts from 0."""
    return _whole(item, "inning", item.inning) + 1


def read_ball_value(text: str) -> Runs:
    """Parse the runs of a ball: `4`, `wd`, `5wd`, `4nb` (four off the bat), `nb2` (two extras), `lb+5p`."""
    counts = dict.fromkeys(("batter", "wides", "noballs", "byes", "legbyes", "penalty"), 0)
    for part in text.split("+"):
        found = _BALL_PART.fullmatch(part)
        if not part or found is None or (found["extras"] and found["kind"] != "nb"):
            raise LayoutChanged(f"cannot parse the ball value {text[:40]!r}")
        number, kind = found["number"], found["kind"]
        match kind:
            case None:
                counts["batter"] += int(number)
            case "nb":
                counts["batter"] += int(number or 0)
                counts["noballs"] += int(found["extras"] or 1)
            case _:
                counts[_EXTRAS[kind]] += int(number or 1)
    return Runs(**counts)


def _text(item: Item, field: str, value: str | int | UnsetType) -> str:
    if not isinstance(value, str):
        raise LayoutChanged(f"item {item.id} of type {item.type!r} has no text {field!r}")
    return value


def _key(item: Item, field: str, value: str | UnsetType | None) -> str | None:
    """Return a key; `None` if it is empty. A missing field means that the layout has changed."""
    if value is UNSET:
        raise LayoutChanged(f"item {item.id} of type {item.type!r} has no key {field!r}")
    return value or None


def _whole(item: Item, field: str, value: int | UnsetType) -> int:
    if not isinstance(value, int):
        raise LayoutChanged(f"item {item.id} of type {item.type!r} has no count {field!r}")
    return value


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
