"""The account at a trial's end: every event that the truth log has against every event that the API serves."""

from collections.abc import Container
from typing import Any

from msgspec.structs import replace

from longstop.simulator.judge import Verdict, judge, wrong_scores
from longstop.simulator.truth import read_truth
from longstop.trial.sample import all_events, list_matches
from longstop.trial.settle import SETTLE_WITHIN, final_sync
from longstop.trial.stage import Stage


async def account(stage: Stage, *, within: float = SETTLE_WITHIN) -> Verdict:
    """Stop the world, let the product read it whole once more, and compare; `matches` are those that the API lists."""
    await final_sync(stage, within=within)
    entries = await list_matches(stage)
    stored = {_name(entry): await all_events(stage, entry["url"]) for entry in entries}
    declared = {_name(entry): (await stage.api.get(f"{entry['url']}/findings")).body["findings"] for entry in entries}
    unlisted = await _never_listed(stage, stored)
    truth = [line for line in read_truth(stage.truth) if line.match not in unlisted]
    verdict = judge(truth, stored, declared=declared, sites=stage.sites)
    payloads = {_name(entry): (await stage.api.get(entry["url"])).body for entry in entries}
    wrong = wrong_scores(truth, payloads, stage.sites)
    return replace(verdict, matches=len(entries), wrong=len(wrong), details=(*verdict.details, *wrong[:20]))


async def _never_listed(stage: Stage, stored: Container[str]) -> set[str]:
    """Return the football matches that nobody could find: a live list has no place for what is not being played."""
    matches = (await stage.simulator.get("/_sim/status")).body["matches"]
    return {
        match["key"]
        for match in matches
        if match["sport"] == "football" and match["phase"] != "live" and match["key"] not in stored
    }


def _name(entry: dict[str, Any]) -> str:
    """Return what the site calls a match."""
    name: str = entry["match_id"].partition("_")[2]
    return name
