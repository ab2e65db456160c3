"""The judge: compares the truth log with what the public API serves. It knows nothing of the product's inside."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from longstop.simulator.truth import TruthLine

#: How many findings are put into words.
MAX_DETAILS = 20

_RUN_KINDS = ("batter", "wides", "noballs", "byes", "legbyes", "penalty")

#: A content in one comparable spelling, whichever side it comes from.
_Spelling = tuple[Any, ...]


class Verdict(Struct, frozen=True, kw_only=True):
    """What the comparison found; the three last counts are 0 when all is well."""

    matches: int
    events_truth: int
    events_stored: int
    lost: int
    duplicated: int
    ghost: int
    details: tuple[str, ...]


class _Finding(Struct, frozen=True):
    kind: str
    sentence: str


class _Truth:
    """What one match published: the state now, and every content ever shown."""

    def __init__(self) -> None:
        self.live: dict[str, TruthLine] = {}
        self.shown: dict[str, set[_Spelling]] = {}

    def take(self, line: TruthLine) -> None:
        if line.op == "void":
            self.live.pop(line.id, None)
            return
        self.live[line.id] = line
        self.shown.setdefault(line.id, set()).add(_spell_truth(line))

    def positions(self) -> dict[str, int]:
        """Return the place of every live delivery among those of its innings."""
        deliveries = sorted((line for line in self.live.values() if line.kind == "delivery"), key=lambda x: int(x.id))
        counts: Counter[int] = Counter()
        positions = {}
        for line in deliveries:
            counts[line.content["innings"]] += 1
            positions[line.id] = counts[line.content["innings"]]
        return positions


def judge(truth: Iterable[TruthLine], events: Mapping[str, Sequence[Mapping[str, Any]]]) -> Verdict:
    """Compare: `events` holds, for every match key, all event versions in the order of their sequence numbers."""
    published: dict[str, _Truth] = {}
    for line in truth:
        published.setdefault(line.match, _Truth()).take(line)
    findings: list[_Finding] = []
    for match in sorted(published.keys() | events.keys()):
        findings += _compare(match, published.get(match, _Truth()), events.get(match, ()))
    counts = Counter(finding.kind for finding in findings)
    return Verdict(
        matches=len(published),
        events_truth=sum(len(told.live) for told in published.values()),
        events_stored=sum(len(_live(versions)) for versions in events.values()),
        lost=counts["lost"],
        duplicated=counts["duplicated"],
        ghost=counts["ghost"],
        details=tuple(finding.sentence for finding in findings[:MAX_DETAILS]),
    )


def _compare(match: str, told: _Truth, versions: Sequence[Mapping[str, Any]]) -> Iterator[_Finding]:
    live = _live(versions)
    yield from _lost(match, told, live)
    yield from _duplicated(match, live, versions)
    yield from _ghosts(match, told, live, versions)


def _live(versions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the current version of every key that is not void."""
    latest = {str(version["key"]): version for version in versions}
    return [version for version in latest.values() if version["op"] != "void"]


def _lost(match: str, told: _Truth, live: list[Mapping[str, Any]]) -> Iterator[_Finding]:
    positions = told.positions()
    stored = {str(version["source_event_id"]): version for version in live}
    for id_, line in told.live.items():
        version = stored.get(id_)
        if version is None:
            yield _Finding("lost", f"{match}: {_name(line)} is not stored")
        elif _spell_stored(version) != _spell_truth(line):
            yield _Finding("lost", f"{match}: {_name(line)} reads {_spell_stored(version)}, not {_spell_truth(line)}")
        elif line.kind == "delivery" and version["position"] != positions[id_]:
            sentence = f"{match}: {_name(line)} has position {version['position']}, not {positions[id_]}"
            yield _Finding("lost", sentence)


def _duplicated(match: str, live: list[Mapping[str, Any]], versions: Sequence[Mapping[str, Any]]) -> Iterator[_Finding]:
    ids = Counter(str(version["source_event_id"]) for version in live)
    places = Counter((version["innings"], version["position"]) for version in live if version["kind"] == "delivery")
    seqs = Counter(version["seq"] for version in versions)
    for what, counter in (("source id", ids), ("place", places), ("sequence number", seqs)):
        for value, count in counter.items():
            if count > 1:
                yield _Finding("duplicated", f"{match}: {what} {value} stands {count} times")


def _ghosts(
    match: str, told: _Truth, live: list[Mapping[str, Any]], versions: Sequence[Mapping[str, Any]]
) -> Iterator[_Finding]:
    unknown = {version["source_event_id"]: version for version in live if version["source_event_id"] not in told.live}
    for version in unknown.values():
        yield _Finding("ghost", f"{match}: {version['key']} is stored, and the source does not show it")
    for version in versions:
        id_ = version["source_event_id"]
        if version["op"] == "void" or id_ in unknown:
            continue
        if _spell_stored(version) not in told.shown.get(id_, ()):
            yield _Finding("ghost", f"{match}: {version['key']} once read {_spell_stored(version)}, never published")


def _name(line: TruthLine) -> str:
    place = f" {line.content['innings']}/{line.content['label']}" if line.kind == "delivery" else ""
    return f"{line.kind}{place} ({line.id})"


def _spell_truth(line: TruthLine) -> _Spelling:
    return _spell(line.kind, line.content, label=line.content.get("label"), overs=line.content.get("overs"))


def _spell_stored(version: Mapping[str, Any]) -> _Spelling:
    data = version["data"]
    place = {"innings": version["innings"], "over": version["over"]}
    return _spell(
        version["kind"], {**data, **place}, label=_dotted(data.get("label")), overs=_dotted(data.get("overs"))
    )


def _spell(kind: str, content: Mapping[str, Any], *, label: str | None, overs: str | None) -> _Spelling:
    match kind:
        case "delivery":
            return (
                *(kind, content["innings"], content["over"], label),
                tuple(content["runs"].get(run_kind, 0) for run_kind in _RUN_KINDS),
                *(content.get("boundary"), content.get("batter"), content.get("bowler")),
                tuple((out["kind"], out["player_out"], out.get("player_key")) for out in content.get("wickets", ())),
            )
        case "over":
            score = content["score"]
            return (
                kind,
                content["innings"],
                content["over"],
                content["runs"],
                score["runs"],
                score["wickets"],
                content.get("bowler"),
            )
        case "innings":
            return kind, content["innings"], content["team"], content["runs"], content["wickets"], overs
        case _:
            return kind, content["outcome"], content["text"]


def _dotted(overs: Mapping[str, int] | None) -> str | None:
    return None if overs is None else f"{overs['over']}.{overs['ball']}"
