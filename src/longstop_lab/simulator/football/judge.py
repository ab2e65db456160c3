"""Compares what was published of a football match with what the public API serves."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from longstop_lab.simulator.football.model import AWAY, HOME
from longstop_lab.simulator.truth import TruthLine

#: What is compared of each kind of event. Status and line-ups are states, no events: the payload shows them.
JUDGED = {
    "goal": ("minute", "added", "scorer", "assist", "how", "home", "away"),
    "card": ("minute", "added", "player", "card"),
    "substitution": ("minute", "added", "player_in", "player_out", "is_injury"),
    "var": ("minute", "added", "decision", "player"),
    "missed_penalty": ("minute", "added", "player"),
    "kick": ("sequence", "player", "is_scored", "home", "away"),
    "period": ("period", "home", "away"),
    "result": ("outcome", "after", "home", "away", "home_penalties", "away_penalties"),
}
#: Kinds whose key names a side and a number.
_SIDED = frozenset({"goal", "card", "substitution", "var", "missed_penalty", "kick"})

#: One version of an event, as the API gives it.
_Version = Mapping[str, Any]
#: Ids are unique within a kind only: the video referee's have a series of their own.
_Id = tuple[str, str]
#: A content in one comparable spelling, whichever side it comes from.
_Spelling = tuple[Any, ...]


class FootballFinding(Struct, frozen=True):
    #: `lost`, `duplicated` or `ghost`.
    kind: str
    sentence: str


class FootballTruth:
    """What one match published: the events that stand now, and every content ever shown."""

    def __init__(self) -> None:
        self.live: dict[_Id, TruthLine] = {}
        self._shown: dict[_Id, set[_Spelling]] = {}

    def take(self, line: TruthLine) -> None:
        if line.kind not in JUDGED:
            return
        if line.op == "void":
            self.live.pop(_id_of(line), None)
            return
        self.live[_id_of(line)] = line
        self._shown.setdefault(_id_of(line), set()).add(_spell_truth(line))

    def has_shown(self, version: _Version) -> bool:
        return _spell_stored(version) in self._shown.get(_stored_id(version), ())


def compare_football(match: str, published: FootballTruth, versions: Sequence[_Version]) -> Iterator[FootballFinding]:
    """Yield what is wrong with all versions of a match's events, given in the order of their sequence numbers."""
    live = live_events(versions)
    yield from _lost(match, published, live)
    yield from _duplicated(match, live, versions)
    yield from _misnamed(match, versions)
    yield from _ghosts(match, published, live, versions)


def live_events(versions: Sequence[_Version]) -> list[_Version]:
    """Return the current version of every key that is not void."""
    latest = {str(version["key"]): version for version in versions}
    return [version for version in latest.values() if version["op"] != "void"]


def _lost(match: str, published: FootballTruth, live: list[_Version]) -> Iterator[FootballFinding]:
    stored = {_stored_id(version): version for version in live}
    for id_, line in published.live.items():
        version = stored.get(id_)
        if version is None:
            yield FootballFinding("lost", f"{match}: {line.kind} ({line.id}) is not stored")
        elif _spell_stored(version) != _spell_truth(line):
            reads = f"reads {_spell_stored(version)}, not {_spell_truth(line)}"
            yield FootballFinding("lost", f"{match}: {line.kind} ({line.id}) {reads}")


def _duplicated(match: str, live: list[_Version], versions: Sequence[_Version]) -> Iterator[FootballFinding]:
    ids = Counter(" ".join(_stored_id(version)) for version in live)
    seqs = Counter(version["seq"] for version in versions)
    for what, counter in (("event", ids), ("sequence number", seqs)):
        for value, count in counter.items():
            if count > 1:
                yield FootballFinding("duplicated", f"{match}: {what} {value} stands {count} times")


def _misnamed(match: str, versions: Sequence[_Version]) -> Iterator[FootballFinding]:
    """Yield keys that were given twice, or that do not count on from 1 for their kind and side."""
    owners: dict[str, str] = {}
    given: Counter[str] = Counter()
    for version in versions:
        key, id_ = str(version["key"]), str(version["source_event_id"])
        if key in owners:
            if owners[key] != id_:
                yield FootballFinding("duplicated", f"{match}: {key} was the key of {owners[key]}, then of {id_}")
            continue
        owners[key] = id_
        if version["kind"] not in _SIDED:
            continue
        family, _, nth = key.rpartition(":")
        given[family] += 1
        kind, _, side = family.partition(":")
        if (kind, nth) != (version["kind"], str(given[family])) or side not in (HOME, AWAY):
            yield FootballFinding("ghost", f"{match}: {key} is no key for number {given[family]} of {family}")


def _ghosts(
    match: str, published: FootballTruth, live: list[_Version], versions: Sequence[_Version]
) -> Iterator[FootballFinding]:
    unknown = {_stored_id(version): version for version in live if _stored_id(version) not in published.live}
    for version in unknown.values():
        yield FootballFinding("ghost", f"{match}: {version['key']} is stored, and the source does not show it")
    for version in versions:
        if version["op"] != "void" and _stored_id(version) not in unknown and not published.has_shown(version):
            reads = f"once read {_spell_stored(version)}, never published"
            yield FootballFinding("ghost", f"{match}: {version['key']} {reads}")


def _id_of(line: TruthLine) -> _Id:
    # The end of a period has no id on the site; its name identifies it.
    return line.kind, line.id.removeprefix("period-")


def _stored_id(version: _Version) -> _Id:
    kind = str(version["kind"])
    return kind, str(version["data"]["period"] if kind == "period" else version["source_event_id"])


def _spell_truth(line: TruthLine) -> _Spelling:
    return _spell(line.kind, line.content.get("side"), line.content)


def _spell_stored(version: _Version) -> _Spelling:
    kind = str(version["kind"])
    return _spell(kind, str(version["key"]).split(":")[1] if kind in _SIDED else None, version["data"])


def _spell(kind: str, side: str | None, content: Mapping[str, Any]) -> _Spelling:
    # The site does not distinguish no added time from unknown added time.
    values = (content.get(name) or 0 if name == "added" else content.get(name) for name in JUDGED.get(kind, ()))
    return kind, side if kind in _SIDED else None, *values
