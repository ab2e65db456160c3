"""How many requests a perfect client needs: the yardstick for amplification."""

from collections.abc import Iterable
from datetime import datetime
from math import ceil

from longstop.simulator.truth import TruthLine

#: Items on a page of the event list.
PAGE_ITEMS = 10


def requests_needed(truth: Iterable[TruthLine], *, began: datetime, seconds: float, interval: float) -> int:
    """Return the requests of a client that is never refused, never killed, and asks for nothing in vain.

    It reads the list once an interval; of each match the whole event list, the scoreboard and the scorecard once at
    the beginning, and one page and the scoreboard in every interval in which the match published something.
    """
    items: dict[str, int] = {}
    busy: set[tuple[str, int]] = set()
    for line in truth:
        after = (line.at - began).total_seconds()
        if after <= 0:
            items[line.match] = items.get(line.match, 0) + 1
        else:
            busy.add((line.match, int(after / interval)))
    whole = sum(ceil(count / PAGE_ITEMS) + 2 for count in items.values())
    return ceil(seconds / interval) + whole + 2 * len(busy)
