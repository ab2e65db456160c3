"""A made-up match in Cricsheet's format: short, with one of everything."""

import json
from pathlib import Path
from typing import Any


def ball(batter: str, bowler: str, runs: int = 0, **more: Any) -> dict[str, Any]:
    extras = more.get("extras", {})
    total = runs + sum(extras.values())
    return {
        "batter": batter,
        "bowler": bowler,
        "non_striker": f"{batter[0]} Eleven",
        "runs": {"batter": runs, "extras": total - runs, "total": total},
        **more,
    }


def over(number: int, batter: str, bowler: str, special: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an over of six legal balls: the special ones, then ordinary ones."""
    legal = sum(not ({"wides", "noballs"} & each.get("extras", {}).keys()) for each in special)
    plain = [ball(batter, bowler, runs) for runs in (0, 1, 2, 4, 6, 3)[: 6 - legal]]
    return {"over": number, "deliveries": [*special, *plain]}


def wicket(kind: str, player: str) -> dict[str, Any]:
    return {"wickets": [{"kind": kind, "player_out": player}]}


def squad(letter: str) -> list[str]:
    return [f"{letter} {name}" for name in ("One", "Two", "Three", "Four", "Nine", "Ten")]


def write_match(path: Path) -> int:
    """Write a match of two innings and a super over; return the number of its deliveries."""
    home, away = "Ashford", "Bexley"
    first = [
        over(
            0,
            "A One",
            "B Nine",
            [ball("A One", "B Nine", extras={"wides": 5}), ball("A One", "B Nine", extras={"noballs": 1})],
        ),
        over(
            1,
            "A One",
            "B Ten",
            [ball("A One", "B Ten", 4, extras={"noballs": 1}), ball("A One", "B Ten", extras={"legbyes": 2})],
        ),
        over(2, "A Two", "B Nine", [ball("A Two", "B Nine", **wicket("caught and bowled", "A Two"))]),
        over(3, "A Three", "B Ten", [ball("A Three", "B Ten", extras={"wides": 1}, **wicket("stumped", "A Three"))]),
        over(4, "A Four", "B Nine", [ball("A Four", "B Nine", extras={"legbyes": 1, "penalty": 5})]),
    ]
    second = [
        over(0, "B One", "A Nine", [ball("B One", "A Nine", 1, **wicket("run out", "B Two"))]),
        over(
            1,
            "B One",
            "A Ten",
            [ball("B One", "A Ten", extras={"byes": 4}), ball("B One", "A Ten", **wicket("retired hurt", "B One"))],
        ),
        over(2, "B Three", "A Nine", [ball("B Three", "A Nine", extras={"noballs": 2})]),
    ]
    shoot_out = [over(0, "A One", "B Nine", []), over(0, "B One", "A Nine", [])]
    match: dict[str, Any] = {
        "meta": {"data_version": "1.1.0", "created": "2026-01-01", "revision": 1},
        "info": {
            "balls_per_over": 6,
            "dates": ["2026-01-01"],
            "match_type": "T20",
            "overs": 20,
            "outcome": {"result": "tie", "eliminator": home},
            "teams": [home, away],
            "players": {home: squad("A"), away: squad("B")},
        },
        "innings": [
            {"team": home, "overs": first},
            {"team": away, "overs": second, "target": {"runs": 120, "overs": 20}},
            {"team": away, "overs": shoot_out[1:], "super_over": True},
            {"team": home, "overs": shoot_out[:1], "super_over": True},
        ],
    }
    return _write(path, match)


def write_test_match(path: Path, outcome: dict[str, Any]) -> int:
    """Write a match of two days: a declaration, a follow-on, penalty runs; return the number of its deliveries."""
    home, away = "Ashford", "Bexley"
    first = [over(number, "A One", "B Nine", []) for number in range(6)]
    second = [over(number, "B One", "A Nine", []) for number in range(2)]
    match: dict[str, Any] = {
        "info": {
            "balls_per_over": 6,
            "dates": ["2026-01-01", "2026-01-02"],
            "match_type": "Test",
            "outcome": outcome,
            "teams": [home, away],
            "players": {home: squad("A"), away: squad("B")},
        },
        "innings": [
            {"team": home, "overs": first, "declared": True},
            {"team": away, "overs": second, "penalty_runs": {"pre": 5}},
            {"team": away, "overs": second, "penalty_runs": {"post": 5}},
        ],
    }
    return _write(path, match)


def _write(path: Path, match: dict[str, Any]) -> int:
    path.write_text(json.dumps(match))
    return sum(len(each["deliveries"]) for innings in match["innings"] for each in innings["overs"])
