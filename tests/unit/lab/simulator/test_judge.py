from collections import Counter
from typing import Any

import msgspec
import pytest

from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.limited_overs import play_t20
from longstop_lab.simulator.cricket.world import script_for
from longstop_lab.simulator.judge import TruthComparison, judge
from longstop_lab.simulator.sites.espncricinfo.ids import match_number
from longstop_lab.simulator.sites.espncricinfo.truth import as_espncricinfo
from longstop_lab.simulator.truth import TruthLine
from tests.unit.lab.simulator.games import board_at, lines_of, small_script

Events = list[dict[str, Any]]


def small_lines() -> list[TruthLine]:
    return lines_of(board_at(small_script(), 10_000)[1])


def perfect(lines: list[TruthLine]) -> Events:
    """Return what the API would serve of a store that took in every line as it was published."""
    events: Events = []
    keys: dict[str, str] = {}
    for line in lines:
        keys.setdefault(line.id, f"{line.kind}:{len(keys)}")
        events.append(_event(line, keys[line.id], len(events) + 1, events))
    return _with_positions(events)


def _event(line: TruthLine, key: str, seq: int, earlier: Events) -> dict[str, Any]:
    content = line.content or next(event for event in earlier if event["key"] == key)["data"]
    data = {name: value for name, value in content.items() if name not in ("innings", "over")}
    for name in ("label", "overs"):
        if isinstance(data.get(name), str):
            over, ball = data[name].split(".")
            data[name] = {"over": int(over), "ball": int(ball)}
    return {
        "seq": seq,
        "key": key,
        "kind": line.kind,
        "op": line.op,
        "innings": content.get("innings", 0),
        "over": content.get("over", 0),
        "position": None,
        "source_event_id": line.id,
        "data": data,
    }


def _with_positions(events: Events) -> Events:
    latest = {event["key"]: event for event in events}
    counts: Counter[int] = Counter()
    for event in sorted(latest.values(), key=lambda event: str(event["source_event_id"])):
        if event["kind"] == "delivery" and event["op"] != "void":
            counts[event["innings"]] += 1
            event["position"] = counts[event["innings"]]
    return events


def verdict_of(events: Events) -> TruthComparison:
    return judge(small_lines(), {"11AB": events})


def counts(verdict: TruthComparison) -> tuple[int, int, int]:
    return verdict.lost, verdict.duplicated, verdict.ghost


def delivery(events: Events, nth: int) -> dict[str, Any]:
    """Return the current version of the nth delivery."""
    latest = {event["key"]: event for event in events if event["kind"] == "delivery"}
    return list(latest.values())[nth]


def test_a_perfect_store_is_found_perfect() -> None:
    verdict = verdict_of(perfect(small_lines()))

    assert counts(verdict) == (0, 0, 0)
    assert verdict.details == ()
    assert verdict.matches == 1
    assert verdict.events_truth == verdict.events_stored == 16 + 2 + 2 + 1


def test_a_whole_t20_with_its_corrections_is_found_perfect() -> None:
    game = play_t20(1, 2)
    board = Board(game)
    lines = lines_of((change for step in script_for(game, 1) for change in board.apply(step)), game.key)

    assert counts(judge(lines, {game.key: perfect(lines)})) == (0, 0, 0)


def test_a_version_in_between_need_not_have_been_seen() -> None:
    events = perfect(small_lines())
    wicket_ball = next(event for event in events if event["op"] == "update")["key"]
    first_version = next(event for event in events if event["key"] == wicket_ball)
    events.remove(first_version)

    assert counts(verdict_of(events)) == (0, 0, 0)


def test_a_missing_event_is_lost() -> None:
    events = perfect(small_lines())
    events.remove(delivery(events, -1))

    verdict = verdict_of(events)

    assert counts(verdict) == (1, 0, 0)
    assert "delivery 2/0.2" in verdict.details[0]


def test_a_match_that_was_never_read_is_lost_whole() -> None:
    verdict = judge(small_lines(), {})

    assert (verdict.lost, verdict.events_stored) == (verdict.events_truth, 0)


def test_an_event_voided_by_mistake_is_lost() -> None:
    events = perfect(small_lines())
    last = delivery(events, -1)
    events.append({**last, "seq": 999, "op": "void", "position": None})

    assert counts(verdict_of(events)) == (1, 0, 0)


def test_a_source_id_under_two_keys_is_duplicated() -> None:
    events = perfect(small_lines())
    events.append({**delivery(events, 3), "seq": 999, "key": "delivery:99", "position": 77})

    assert verdict_of(events).duplicated == 1


def test_two_deliveries_at_one_place_are_duplicated_and_one_is_lost() -> None:
    events = perfect(small_lines())
    delivery(events, 3)["position"] = 3

    assert counts(verdict_of(events)) == (1, 1, 0)


def test_a_repeated_sequence_number_is_duplicated() -> None:
    events = perfect(small_lines())
    events[3]["seq"] = events[2]["seq"]

    assert counts(verdict_of(events)) == (0, 1, 0)


def test_an_invented_event_is_a_ghost() -> None:
    events = perfect(small_lines())
    events.append({**delivery(events, 0), "seq": 999, "key": "x", "source_event_id": "1", "position": 99})

    assert counts(verdict_of(events)) == (0, 0, 1)


def test_an_invented_event_stays_a_ghost_when_it_was_voided_later() -> None:
    events = perfect(small_lines())
    ghost = {**delivery(events, 0), "seq": 999, "key": "x", "source_event_id": "1", "position": 99}
    events += [ghost, {**ghost, "seq": 1000, "op": "void", "position": None}]

    assert counts(verdict_of(events)) == (0, 0, 1)


def test_a_whole_match_that_the_truth_does_not_know_is_ghosts() -> None:
    events = perfect(small_lines())

    verdict = judge(small_lines(), {"11AB": events, "11ZZ": events})

    assert counts(verdict) == (0, 0, verdict.events_truth)


@pytest.mark.parametrize(
    "change",
    [
        {"runs": {"batter": 3}},
        {"boundary": 6},
        {"batter": "R7"},
        {"bowler": None},
        {"label": {"over": 0, "ball": 6}},
        {"wickets": [{"kind": "lbw", "player_out": "Rover 0", "player_key": "R0"}]},
    ],
)
def test_an_altered_delivery_is_lost_and_a_ghost(change: dict[str, Any]) -> None:
    events = perfect(small_lines())
    altered = delivery(events, 0)
    altered["data"] = {**altered["data"], **change}

    assert counts(verdict_of(events)) == (1, 0, 1)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("over", {"runs": 99}),
        ("over", {"score": {"runs": 14, "wickets": 9}}),
        ("innings", {"overs": {"over": 1, "ball": 5}}),
        ("innings", {"wickets": 9}),
        ("result", {"outcome": "tie"}),
        ("result", {"text": "Match tied"}),
    ],
)
def test_an_altered_summary_is_lost_and_a_ghost(kind: str, change: dict[str, Any]) -> None:
    events = perfect(small_lines())
    altered = next(event for event in events if event["kind"] == kind)
    altered["data"] = {**altered["data"], **change}

    assert counts(verdict_of(events)) == (1, 0, 1)


def test_only_the_first_findings_are_put_into_words_and_the_rest_is_counted() -> None:
    game = play_t20(1, 0)
    board = Board(game)
    lines = lines_of(change for step in script_for(game, 1) for change in board.apply(step))

    verdict = judge(lines, {})

    assert verdict.lost > 200
    assert len(verdict.details) == 21
    assert verdict.details[-1] == f"and {verdict.lost - 20} more"


ESPN = "espncricinfo"
ESPN_MATCH = str(match_number("11AB"))


def espn_events() -> Events:
    """Return what the API would serve of a store that read every line from espncricinfo."""
    return [{**event, "source": ESPN} for event in perfect([as_espncricinfo(line) for line in small_lines()])]


def without_over(events: Events, innings: int, over: int) -> Events:
    """Return the events without the deliveries of an over, and the others moved up."""
    place = (innings, over)
    kept = [event for event in events if event["kind"] != "delivery" or (event["innings"], event["over"]) != place]
    return _with_positions(kept)


def gap(place: str) -> dict[str, Any]:
    return {"kind": "gap", "place": place, "detail": "not shown"}


def test_a_store_that_read_the_other_site_is_compared_by_its_numbers() -> None:
    verdict = judge(small_lines(), {ESPN_MATCH: espn_events()})

    assert counts(verdict) == (0, 0, 0), verdict.details
    assert (verdict.matches, verdict.events_truth, verdict.declared) == (1, 21, 0)


def test_a_match_read_from_both_sites_is_judged_at_both() -> None:
    events = espn_events()
    events.remove(delivery(events, -1))

    verdict = judge(small_lines(), {"11AB": perfect(small_lines()), ESPN_MATCH: events})

    assert counts(verdict) == (1, 0, 0)
    assert verdict.events_truth == 42


def test_a_site_that_should_have_been_read_and_was_not_is_lost_whole() -> None:
    verdict = judge(small_lines(), {"11AB": perfect(small_lines())}, sites=("crex", ESPN))

    assert (verdict.matches, verdict.lost) == (2, 21)


def test_deliveries_missing_inside_a_declared_gap_are_declared_not_lost() -> None:
    events = without_over(espn_events(), 1, 1)

    silent = judge(small_lines(), {ESPN_MATCH: events})
    honest = judge(small_lines(), {ESPN_MATCH: events}, declared={ESPN_MATCH: [gap("1:1")]})

    assert (silent.lost, silent.declared) == (6, 0)
    assert (*counts(honest), honest.declared, honest.details) == (0, 0, 0, 6, ())


@pytest.mark.parametrize("finding", [gap("1:0"), gap("2:1"), gap("1"), {"kind": "mismatch", "place": "1:1"}])
def test_a_gap_elsewhere_excuses_nothing(finding: dict[str, Any]) -> None:
    events = without_over(espn_events(), 1, 1)

    assert judge(small_lines(), {ESPN_MATCH: events}, declared={ESPN_MATCH: [finding]}).lost == 6


def test_an_over_is_never_excused_by_a_gap() -> None:
    events = [event for event in espn_events() if event["source_event_id"] != "over-1-1"]

    assert judge(small_lines(), {ESPN_MATCH: events}, declared={ESPN_MATCH: [gap("1:1")]}).lost == 1


def test_positions_behind_a_gap_must_still_be_in_order() -> None:
    events = without_over(espn_events(), 1, 1)
    first, second = delivery(events, 0), delivery(events, 1)
    first["position"], second["position"] = second["position"], first["position"]

    assert counts(judge(small_lines(), {ESPN_MATCH: events}, declared={ESPN_MATCH: [gap("1:1")]})) == (1, 0, 0)


def test_an_invented_delivery_inside_a_gap_stays_a_ghost() -> None:
    events = without_over(espn_events(), 1, 1)
    events.append({**delivery(events, 0), "over": 1, "seq": 999, "key": "x", "source_event_id": "1", "position": 99})

    assert counts(judge(small_lines(), {ESPN_MATCH: events}, declared={ESPN_MATCH: [gap("1:1")]})) == (0, 0, 1)


def test_a_ball_taken_back_unseen_inside_a_gap_is_declared() -> None:
    lines = small_lines()
    taken_back = next(line for line in lines if line.kind == "delivery" and line.content["over"] == 1)
    lines.append(msgspec.structs.replace(taken_back, op="void", content={}))

    silent = judge(lines, {ESPN_MATCH: espn_events()})
    honest = judge(lines, {ESPN_MATCH: espn_events()}, declared={ESPN_MATCH: [gap("1:1")]})

    assert silent.ghost == 1
    assert (honest.ghost, honest.declared) == (0, 1)


@pytest.mark.parametrize(("runs", "ghosts"), [(6, 0), (5, 1), (0, 1)])
def test_a_sum_of_unseen_balls_declares_its_over_and_must_be_right(runs: int, ghosts: int) -> None:
    events = without_over(espn_events(), 1, 1)
    inferred = {"kind": "inferred", "key": "inferred:1:1", "source_event_id": "inferred-1-1", "position": None}
    data = {"runs": runs, "wickets": 0, "balls": 6}
    events.append({**inferred, "seq": 999, "op": "insert", "innings": 1, "over": 1, "data": data, "source": ESPN})

    verdict = judge(small_lines(), {ESPN_MATCH: events})

    assert (*counts(verdict), verdict.declared) == (0, 0, ghosts, 6)
    assert verdict.events_stored == 15
