"""The account at a trial's end: every event that the truth log has against every event that the API serves."""

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
    stored = {_name(entry): await all_events(stage, entry["matchId"]) for entry in entries}
    declared = {_name(entry): (await stage.api.get(f"{entry['url']}/findings")).body["findings"] for entry in entries}
    truth = list(read_truth(stage.truth))
    verdict = judge(truth, stored, declared=declared, sites=stage.sites)
    payloads = {_name(entry): (await stage.api.get(entry["url"])).body for entry in entries}
    wrong = wrong_scores(truth, payloads, stage.sites)
    return replace(verdict, matches=len(entries), wrong=len(wrong), details=(*verdict.details, *wrong[:20]))


def _name(entry: dict[str, Any]) -> str:
    """Return what the site calls a match."""
    name: str = entry["match_id"].partition("_")[2]
    return name
