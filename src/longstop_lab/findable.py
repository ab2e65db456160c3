"""What must have been found: of cricket all that was published, of football what stood in the live list. Pure."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

from longstop_lab.simulator.sites.sofascore.statuses import LISTED
from longstop_lab.simulator.truth import TruthLine

#: Who stands in the list for so long, in real seconds, has been there for several looks at it.
FOUND_WITHIN = 10.0


def expected(sport: str, truth: Sequence[TruthLine], *, known: Collection[str], since: datetime) -> list[TruthLine]:
    """Return what was published of a sport's matches that are known, or should be to who has looked since then."""
    football = {line.match for line in truth if line.kind == "status"}
    if sport != "football":
        return [line for line in truth if line.match not in football]
    told = football & {*known, *findable(truth, since=since)}
    return [line for line in truth if line.match in told]


def findable(lines: Iterable[TruthLine], *, since: datetime, within: float = FOUND_WITHIN) -> set[str]:
    """Return the matches that stand in the list now, or stood there long enough since we began to look."""
    listed: dict[str, datetime] = {}
    found: set[str] = set()
    for line in lines:
        if line.kind != "status":
            continue
        if line.content["status"] in LISTED:
            listed.setdefault(line.match, line.at)
        elif (began := listed.pop(line.match, None)) and line.at - max(began, since) >= timedelta(seconds=within):
            found.add(line.match)
    return found | listed.keys()
