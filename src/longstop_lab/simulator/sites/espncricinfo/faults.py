"""Faults in espncricinfo's content: readable pages that are wrong."""

import re
from typing import Any

import msgspec

from longstop_lab.simulator.faults import Fault, FaultKind
from longstop_lab.simulator.sites.espncricinfo.page import escaped

#: What a poisoned innings has too much.
_POISON_RUNS = 23
_ALL_WICKETS = 10
_SCRIPT = re.compile(rb'(<script id="__NEXT_DATA__" type="application/json">)(.*?)(</script>)', re.DOTALL)
#: The last innings in a side's score, such as 120/3 in "245 & 120/3d".
_LAST_INNINGS = re.compile(r"(\d+)(?:/(\d+))?(d?)$")


def corrupt_page(fault: Fault, body: bytes) -> bytes:
    """Return the page with the fault applied; other pages are returned unchanged."""
    if fault.kind is not FaultKind.POISONED:
        return body
    return _SCRIPT.sub(lambda found: found[1] + _poisoned(found[2]) + found[3], body)


def _poisoned(script: bytes) -> bytes:
    """Return the page's data with wrong scores, which the balls of the page contradict."""
    page: dict[str, Any] = msgspec.json.decode(script)
    data = page["props"]["appPageProps"]["data"]
    shown = data.get("data", data)
    for match in (shown["match"],) if "match" in shown else shown["content"]["matches"]:
        for team in match["teams"]:
            if team["isLive"] and team["score"]:
                team["score"] = _LAST_INNINGS.sub(_poisoned_score, team["score"])
    for innings in shown["content"].get("innings", ()):
        if innings["isCurrent"]:
            innings["runs"] += _POISON_RUNS
            innings["wickets"] = min(_ALL_WICKETS, innings["wickets"] + 1)
    return escaped(msgspec.json.encode(page))


def _poisoned_score(score: re.Match[str]) -> str:
    wickets = _ALL_WICKETS if score[2] is None else min(_ALL_WICKETS, int(score[2]) + 1)
    return f"{int(score[1]) + _POISON_RUNS}" + (f"/{wickets}{score[3]}" if wickets < _ALL_WICKETS else "")
