"""The truth log: one JSON line for every change that a site publishes, written at once."""

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec import Struct

from longstop.clock import from_iso, to_iso
from longstop.errors import UsageError
from longstop.sports.cricket.model import Runs, Score, Wicket
from longstop_lab.simulator.football.model import FootballContent
from longstop_lab.simulator.sites.espncricinfo.ids import ball_number, over_name

_ENCODER = msgspec.json.Encoder()
#: Everything published at the start has the same moment.
_to_iso = lru_cache(maxsize=16)(to_iso)
_FRAME = ("at", "match", "op", "kind", "id")


class DeliveryTruth(Struct, frozen=True, kw_only=True, gc=False):
    innings: int
    over: int
    label: str
    runs: Runs
    boundary: int | None
    batter: str
    bowler: str
    wickets: tuple[Wicket, ...]


class OverTruth(Struct, frozen=True, kw_only=True, gc=False):
    innings: int
    over: int
    runs: int
    score: Score
    bowler: str


class InningsTruth(Struct, frozen=True, kw_only=True, gc=False):
    innings: int
    team: str
    runs: int
    wickets: int
    overs: str


class ResultTruth(Struct, frozen=True, kw_only=True, gc=False):
    outcome: str
    text: str


Content = DeliveryTruth | OverTruth | InningsTruth | ResultTruth | FootballContent


class Change(Struct, frozen=True, kw_only=True, gc=False):
    """One published change of one match."""

    op: str
    kind: str
    id: str
    #: `None` for a void.
    content: Content | None


class TruthLine(Struct, frozen=True, kw_only=True):
    """A line as it stands in the log."""

    at: datetime
    match: str
    op: str
    kind: str
    id: str
    #: What espncricinfo calls the event; `None` where that site has no name for it.
    espn_id: str | None = None
    content: dict[str, Any]

    def encode(self) -> bytes:
        frame = {"at": _to_iso(self.at), "match": self.match, "op": self.op, "kind": self.kind, "id": self.id}
        other = {} if self.espn_id is None else {"espn_id": self.espn_id}
        return msgspec.json.encode({**frame, **other, **self.content}) + b"\n"


def to_line(at: datetime, match: str, change: Change) -> TruthLine:
    # By way of JSON, so that a line is the same whether it was just made or read from the log.
    content = msgspec.json.decode(_ENCODER.encode(change.content)) if change.content else {}
    return TruthLine(
        at=at,
        match=match,
        op=change.op,
        kind=change.kind,
        id=change.id,
        espn_id=_espn_id(change.kind, change.id, content),
        content=content,
    )


def _espn_id(kind: str, id_: str, content: dict[str, Any]) -> str | None:
    match kind:
        case "delivery":
            return str(ball_number(int(id_)))
        case "over" if content:
            return over_name(content["innings"], content["over"])
        case "innings" | "result":
            return id_
    return None


class TruthFile:
    """Appends lines to a file; each is with the operating system when `write` returns."""

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        except OSError as error:
            raise UsageError(f"the truth log {path} cannot be written: {error.strerror}") from error

    def write(self, lines: Iterable[TruthLine]) -> None:
        text = b"".join(line.encode() for line in lines)
        while text:
            text = text[os.write(self._descriptor, text) :]

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def read_truth(path: Path) -> Iterator[TruthLine]:
    """Yield the lines of a log; one that was cut short by a kill stands last and is left out."""
    with path.open("rb") as file:
        for raw in file:
            if raw.endswith(b"\n"):
                yield decode_line(raw)


def decode_line(raw: bytes) -> TruthLine:
    fields: dict[str, Any] = msgspec.json.decode(raw)
    at, match, op, kind, id_ = (fields.pop(name) for name in _FRAME)
    espn_id = fields.pop("espn_id", None)
    return TruthLine(at=from_iso(at), match=match, op=op, kind=kind, id=id_, espn_id=espn_id, content=fields)
