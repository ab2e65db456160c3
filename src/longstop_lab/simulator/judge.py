"""Compares the truth log with what the public API serves, without knowledge of the product's internals."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from longstop_lab.simulator.football.judge import FootballFinding, FootballTruth, compare_football
from longstop_lab.simulator.sites.espncricinfo.ids import SITE as ESPNCRICINFO
from longstop_lab.simulator.sites.espncricinfo.truth import as_espncricinfo
from longstop_lab.simulator.truth import TruthLine

CREX = "crex"
SOFASCORE = "sofascore"
#: The kind of a record that sums up balls that were never seen.
INFERRED = "inferred"
#: At most this many findings are described.
MAX_DETAILS = 20

_RUN_KINDS = ("batter", "wides", "noballs", "byes", "legbyes", "penalty")

#: Overs that the product says it does not know whole, as (innings, over).
_Gaps = frozenset[tuple[int, int]]
#: One version of an event, as the API gives it.
_Version = Mapping[str, Any]
#: A content in one comparable spelling, whichever side it comes from.
_Spelling = tuple[Any, ...]


class TruthComparison(Struct, frozen=True, kw_only=True):
    """The result of the comparison; `lost`, `duplicated` and `ghost` should be 0."""

    matches: int
    events_truth: int
    events_stored: int
    lost: int
    duplicated: int
    ghost: int
    #: Deliveries that are wrong or missing inside a gap that the product has declared.
    declared: int
    #: Innings totals that are served otherwise than they were published.
    wrong: int = 0
    #: Event versions that were served before and are not served unchanged now, and the number of versions logged.
    forgotten: int = 0
    witnessed: int = 0
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


def judge(
    truth: Iterable[TruthLine],
    events: Mapping[str, Sequence[_Version]],
    *,
    declared: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    sites: Iterable[str] | None = None,
) -> TruthComparison:
    """Compare what was published with what is served.

    `events` contains, for every match by its site's id, all event versions in the order of their sequence numbers;
    `declared`, by the same ids, the findings that the product has reported. Every match must be there as each of
    `sites` shows it; without them, as each site that an event names as its source. A football match, which is one
    whose first line is its status, is shown at one site only.
    """
    shown_at = tuple(sites if sites is not None else _sources(events))
    published: dict[str, _Truth] = {}
    football: dict[str, FootballTruth] = {}
    for line in truth:
        if line.kind == "status" or line.match in football:
            football.setdefault(line.match, FootballTruth()).take(line)
            continue
        for site in _of_cricket(shown_at):
            seen = as_espncricinfo(line) if site == ESPNCRICINFO else line
            published.setdefault(seen.match, _Truth()).take(seen)
    findings: list[_Finding | FootballFinding] = []
    for match, match_truth in sorted(football.items()):
        findings += compare_football(match, match_truth, events.get(match, ()))
    for match in sorted(published.keys() | events.keys() - football.keys()):
        reported = (declared or {}).get(match, ())
        findings += _compare(match, published.get(match, _Truth()), events.get(match, ()), reported)
    counts = Counter(finding.kind for finding in findings)
    return TruthComparison(
        matches=len(published) + len(football),
        events_truth=sum(len(each.live) for each in published.values())
        + sum(len(each.live) for each in football.values()),
        events_stored=sum(len(_live(versions)[0]) for versions in events.values()),
        lost=counts["lost"],
        duplicated=counts["duplicated"],
        ghost=counts["ghost"],
        declared=counts["declared"],
        details=first_few([finding.sentence for finding in findings if finding.kind != "declared"]),
    )


def first_few(sentences: Sequence[str]) -> tuple[str, ...]:
    """Return the first findings, and how many there are beyond them."""
    more = len(sentences) - MAX_DETAILS
    return (*sentences[:MAX_DETAILS], *((f"and {more} more",) if more > 0 else ()))


def wrong_scores(
    truth: Iterable[TruthLine], payloads: Mapping[str, Mapping[str, Any]], sites: Sequence[str]
) -> list[str]:
    """Return a sentence for each closed innings that a match's payload shows with another total than was published."""
    published: dict[tuple[str, int], TruthLine] = {}
    for line in truth:
        for site in _of_cricket(sites) if line.kind == "innings" else ():
            seen = as_espncricinfo(line) if site == ESPNCRICINFO else line
            published[seen.match, int(seen.id.partition("-")[2])] = seen
    found = []
    for (match, number), line in sorted(published.items()):
        served = next((each for each in payloads.get(match, {}).get("innings", ()) if each["number"] == number), None)
        shown = (served["runs"], served["wickets"]) if served else None
        if line.op != "void" and shown != (line.content["runs"], line.content["wickets"]):
            total = f"{line.content['runs']}/{line.content['wickets']}"
            found.append(f"{match}: innings {number} is served as {shown}, published was {total}")
    return found


def _of_cricket(sites: Iterable[str]) -> list[str]:
    return [site for site in sites if site != SOFASCORE]


def _sources(events: Mapping[str, Sequence[_Version]]) -> list[str]:
    return sorted({str(versions[0].get("source", CREX)) for versions in events.values() if versions}) or [CREX]


def _compare(
    match: str, match_truth: _Truth, versions: Sequence[_Version], reported: Iterable[Mapping[str, Any]]
) -> Iterator[_Finding]:
    live, inferred = _live(versions)
    gaps = _gaps(reported) | {_over_of(version) for version in inferred}
    yield from _lost(match, match_truth, live, gaps)
    yield from _duplicated(match, live, versions)
    yield from _ghosts(match, match_truth, live, [version for version in versions if version["kind"] != INFERRED], gaps)
    yield from _wrong_sums(match, match_truth, live, inferred)


def _gaps(reported: Iterable[Mapping[str, Any]]) -> _Gaps:
    places = (str(finding["place"]).partition(":") for finding in reported if finding["kind"] == "gap")
    return frozenset((int(innings), int(over)) for innings, _, over in places if over)


def _live(versions: Sequence[_Version]) -> tuple[list[_Version], list[_Version]]:
    """Return the current version of every key that is not void: events that were seen, and sums of unseen balls."""
    latest = {str(version["key"]): version for version in versions}
    standing = [version for version in latest.values() if version["op"] != "void"]
    seen = [version for version in standing if version["kind"] != INFERRED]
    return seen, [version for version in standing if version["kind"] == INFERRED]


def _lost(match: str, match_truth: _Truth, live: list[_Version], gaps: _Gaps) -> Iterator[_Finding]:
    stored = {str(version["source_event_id"]): version for version in live}
    misplaced = dict(_misplaced(match_truth, stored, gaps))
    for id_, line in match_truth.live.items():
        version = stored.get(id_)
        is_declared = line.kind == "delivery" and _over_of(line.content) in gaps
        if version is None:
            yield _Finding("declared" if is_declared else "lost", f"{match}: {_name(line)} is not stored")
        elif _spell_stored(version) != _spell_truth(line):
            sentence = f"{match}: {_name(line)} reads {_spell_stored(version)}, not {_spell_truth(line)}"
            yield _Finding("declared" if is_declared else "lost", sentence)
        elif id_ in misplaced:
            yield _Finding("lost", f"{match}: {_name(line)} has position {version['position']}, {misplaced[id_]}")


def _misplaced(match_truth: _Truth, stored: Mapping[str, _Version], gaps: _Gaps) -> Iterator[tuple[str, str]]:
    """Yield the deliveries out of their place; in an innings with a gap, only their order can be asked for."""
    has_gap = {innings for innings, _ in gaps}
    reached: dict[int, int] = {}
    for id_, position in match_truth.positions().items():
        version = stored.get(id_)
        if version is None:
            continue
        innings, actual = version["innings"], version["position"]
        if innings not in has_gap and actual != position:
            yield id_, f"not {position}"
        elif innings in has_gap and actual <= reached.get(innings, 0):
            yield id_, "which an earlier one has passed"
        reached[innings] = max(actual, reached.get(innings, 0))


def _duplicated(match: str, live: list[_Version], versions: Sequence[_Version]) -> Iterator[_Finding]:
    ids = Counter(str(version["source_event_id"]) for version in live)
    places = Counter((version["innings"], version["position"]) for version in live if version["kind"] == "delivery")
    seqs = Counter(version["seq"] for version in versions)
    for what, counter in (("source id", ids), ("place", places), ("sequence number", seqs)):
        for value, count in counter.items():
            if count > 1:
                yield _Finding("duplicated", f"{match}: {what} {value} stands {count} times")


def _ghosts(
    match: str, match_truth: _Truth, live: list[_Version], versions: Sequence[_Version], gaps: _Gaps
) -> Iterator[_Finding]:
    unknown = {
        version["source_event_id"]: version for version in live if version["source_event_id"] not in match_truth.live
    }
    for id_, version in unknown.items():
        # A ball that was withdrawn unseen is part of a declared gap.
        is_declared = id_ in match_truth.shown and _over_of(version) in gaps
        sentence = f"{match}: {version['key']} is stored, and the source does not show it"
        yield _Finding("declared" if is_declared else "ghost", sentence)
    for version in versions:
        id_ = version["source_event_id"]
        if version["op"] == "void" or id_ in unknown:
            continue
        if _spell_stored(version) not in match_truth.shown.get(id_, ()):
            yield _Finding("ghost", f"{match}: {version['key']} once read {_spell_stored(version)}, never published")


def _wrong_sums(match: str, match_truth: _Truth, live: list[_Version], inferred: list[_Version]) -> Iterator[_Finding]:
    """Yield the sums of unseen balls that do not make up, with the balls seen, what the over gave."""
    given: Counter[tuple[int, int]] = Counter()
    for line in match_truth.live.values():
        if line.kind == "delivery":
            given[_over_of(line.content)] += sum(line.content["runs"].values())
    for version in live:
        if version["kind"] == "delivery":
            given[_over_of(version)] -= sum(version["data"]["runs"].values())
    for version in inferred:
        missing = given[_over_of(version)]
        if version["data"]["runs"] != missing:
            sentence = f"{match}: {version['key']} stands for {version['data']['runs']} runs, not {missing}"
            yield _Finding("ghost", sentence)


def _over_of(place: Mapping[str, Any]) -> tuple[int, int]:
    return place["innings"], place["over"]


def _name(line: TruthLine) -> str:
    place = f" {line.content['innings']}/{line.content['label']}" if line.kind == "delivery" else ""
    return f"{line.kind}{place} ({line.id})"


def _spell_truth(line: TruthLine) -> _Spelling:
    return _spell(line.kind, line.content, label=line.content.get("label"), overs=line.content.get("overs"))


def _spell_stored(version: _Version) -> _Spelling:
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
