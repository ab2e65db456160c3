"""The account at a trial's end: every event that the truth log has against every event that the API serves."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from longstop.api.serialisers import data_path
from longstop.sports.registry import sports
from longstop_lab.findable import expected
from longstop_lab.sample import all_events, list_matches, sport_at, sport_of
from longstop_lab.settle import SETTLE_WITHIN, final_sync, left_alone
from longstop_lab.simulator.judge import Verdict, judge, wrong_scores
from longstop_lab.simulator.truth import TruthLine, read_truth
from longstop_lab.stage import Stage
from longstop_lab.witness import Seen, Witness, forgotten

#: How many findings beside the judge's own are put into words.
MAX_DETAILS = 20

#: What a truth log tells besides are states.
_KINDS = frozenset(kind for sport in sports().values() for kind in sport.kinds)


async def account(stage: Stage, *, within: float = SETTLE_WITHIN, witness: Witness | None = None) -> Verdict:
    """Stop the world, let the product read it whole once more, and compare; `matches` are those that the API lists.

    Whatever a witness has seen served must be there, too, as it was.
    """
    return total((await accounts(stage, within=within, witness=witness)).values())


async def accounts(
    stage: Stage, *, within: float = SETTLE_WITHIN, witness: Witness | None = None
) -> dict[str, Verdict]:
    """Do the same, with a verdict for each sport that is shown."""
    await final_sync(stage, within=within)
    # Before anything is read: what is served later than that cannot be missed in it.
    seen = witness.seen() if witness is not None else {}
    entries = await list_matches(stage)
    truth = list(read_truth(stage.truth))
    return {
        sport: await _account(
            stage,
            [entry for entry in entries if sport_of(entry) == sport],
            expected(sport, truth, known={_name(entry) for entry in entries}, since=stage.ready_at),
            {url: versions for url, versions in seen.items() if url.startswith(f"{data_path(sport)}/")},
        )
        for sport in sorted({sport_at(site) for site in stage.sites})
    }


def events_published(lines: Iterable[TruthLine], *, since: datetime, until: datetime) -> int:
    """Return how many events a site has shown for the first time between two moments."""
    return sum(line.op == "insert" and line.kind in _KINDS and since < line.at <= until for line in lines)


def total(verdicts: Iterable[Verdict]) -> Verdict:
    """Return what several verdicts say together."""
    each = list(verdicts)
    return Verdict(
        matches=sum(verdict.matches for verdict in each),
        events_truth=sum(verdict.events_truth for verdict in each),
        events_stored=sum(verdict.events_stored for verdict in each),
        lost=sum(verdict.lost for verdict in each),
        duplicated=sum(verdict.duplicated for verdict in each),
        ghost=sum(verdict.ghost for verdict in each),
        declared=sum(verdict.declared for verdict in each),
        wrong=sum(verdict.wrong for verdict in each),
        forgotten=sum(verdict.forgotten for verdict in each),
        witnessed=sum(verdict.witnessed for verdict in each),
        details=tuple(sentence for verdict in each for sentence in verdict.details),
    )


async def _account(stage: Stage, entries: Sequence[dict[str, Any]], truth: Sequence[TruthLine], seen: Seen) -> Verdict:
    stored = {_name(entry): await all_events(stage, entry["url"]) for entry in entries}
    declared = {_name(entry): (await stage.api.get(f"{entry['url']}/findings")).body["findings"] for entry in entries}
    verdict = judge(truth, stored, declared=declared, sites=stage.sites)
    payloads = {_name(entry): (await stage.api.get(entry["url"])).body for entry in entries}
    wrong = wrong_scores(truth, payloads, stage.sites)
    alone = await left_alone(stage, [entry["match_id"] for entry in entries])
    by_order = [f"{name} is left alone by order: what is missing there, nobody has asked for" for name in sorted(alone)]
    missed = forgotten(seen, {entry["url"]: stored[_name(entry)] for entry in entries})
    return replace(
        verdict,
        matches=len(entries),
        wrong=len(wrong),
        forgotten=len(missed),
        witnessed=sum(map(len, seen.values())),
        details=(*by_order, *verdict.details, *wrong[:MAX_DETAILS], *missed[:MAX_DETAILS]),
    )


def _name(entry: dict[str, Any]) -> str:
    """Return what the site calls a match."""
    name: str = entry["match_id"].partition("_")[2]
    return name
