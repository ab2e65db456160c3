"""Targets after rain: how much of an innings a side had, in the manner of Duckworth and Lewis.

The figures are invented; only their shape is real: overs count less the more wickets are down.
"""

from math import exp

#: What the wickets in hand are worth when overs do not matter, by wickets lost.
_WORTH = (1.0, 0.92, 0.83, 0.73, 0.62, 0.51, 0.4, 0.29, 0.19, 0.09, 0.0)
_PER_OVER = 0.045


def resources(overs: float, wickets: int) -> float:
    """Return what a side with so many overs to come and so many wickets down can still spend."""
    worth = _WORTH[min(wickets, len(_WORTH) - 1)]
    return worth * (1 - exp(-_PER_OVER * overs / worth)) if worth else 0.0


def had(whole: int, *, after: int, wickets: int, limit: int) -> float:
    """Return what a side had in all when rain came after so many of its `whole` overs and left `limit`."""
    lost = resources(whole - after, wickets) - resources(limit - after, wickets)
    return resources(whole, 0) - lost


def par(runs: int, first: float, second: float, usual: int) -> int:
    """Return the score that is level with `runs`; `usual` is what a side makes with a whole innings of its own."""
    if second <= first:
        return int(runs * (second / first))
    return runs + int(usual * (second - first))
