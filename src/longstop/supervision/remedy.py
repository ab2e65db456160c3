"""What is done about a failing scraper. Pure: what is decided here is acted on by the caretaker, always.

Making everything afresh helps against what is wrong with *us*: dead connections, stuck watches, hung browsers. It does
not help against a site that may not be asked, and one match's trouble is no reason to trouble all others for ever.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from longstop.supervision.grades import Sample

#: After so many recycles in a row that did not help it, a match is left to the rules of its own watch.
MAX_RECYCLES = 2


class Remedy(StrEnum):
    #: Nobody may be asked: a breaker is open, or the site has asked for rest.
    HOLD = "hold"
    RECYCLE = "recycle"
    #: Nothing is read at all, and recycling has not helped: the whole process begins anew.
    RESTART = "restart"
    #: Recycling has not helped a few, and the others are read: they stay with their own watches.
    LEAVE = "leave"


def remedy(sample: Sample, vain: Mapping[int, int]) -> Remedy:
    """Return what to do about a bad sample; `vain` counts the recycles that did not help, by match."""
    askable = sample.askable
    if not askable:
        return Remedy.HOLD
    if any(vain.get(age.match_id, 0) < MAX_RECYCLES for age in askable):
        return Remedy.RECYCLE
    return Remedy.RESTART if sample.is_stalled else Remedy.LEAVE


def counted(vain: Mapping[int, int], tried: Iterable[int], sample: Sample) -> dict[int, int]:
    """Return the counts after a recycle that did not help; what is no offender any more is forgotten."""
    raised = {match_id: vain.get(match_id, 0) + 1 for match_id in tried}
    offending = {age.match_id for age in sample.offenders}
    return {match_id: count for match_id, count in {**vain, **raised}.items() if match_id in offending}
