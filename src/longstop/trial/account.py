"""The account at a trial's end: every event that the truth log has against every event that the API serves."""

from msgspec.structs import replace

from longstop.simulator.judge import Verdict, judge
from longstop.simulator.truth import read_truth
from longstop.trial.sample import all_events, list_matches
from longstop.trial.settle import SETTLE_WITHIN, final_sync
from longstop.trial.stage import Stage


async def account(stage: Stage, *, within: float = SETTLE_WITHIN) -> Verdict:
    """Stop the world, let the product read it whole once more, and compare; `matches` are those that the API lists."""
    await final_sync(stage, within=within)
    entries = await list_matches(stage)
    stored = {entry["match_id"].partition("_")[2]: await all_events(stage, entry["matchId"]) for entry in entries}
    return replace(judge(read_truth(stage.truth), stored), matches=len(entries))
