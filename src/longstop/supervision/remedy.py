"""What is done about a failing scraper. Pure: what is decided here is acted on by the caretaker, always.

Making everything afresh helps against what is wrong with *us*: dead connections, stuck watches, hung browsers. It does
not help against a site that may not be asked, and one match's trouble is no reason to trouble all others for ever.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

from msgspec import Struct, field

from longstop.supervision.grades import TOO_OLD_SECONDS, Age, Sample

#: After so many recycles in a row that did not help it, a match is left to the rules of its own watch.
MAX_RECYCLES = 2


class Remedy(StrEnum):
    #: Nobody may be asked: a breaker is open, or the site has asked for rest; or whoever may has only just begun.
    HOLD = "hold"
    RECYCLE = "recycle"
    #: Nothing is read at all, and recycling has not helped: the whole process begins anew.
    RESTART = "restart"
    #: Recycling has not helped, and nor would a new process: they stay with their own watches.
    LEAVE = "leave"


class Vain(Struct, frozen=True, kw_only=True):
    """The recycles in a row that have not helped."""

    #: For each match; a good look at it ends the row, and so does its end.
    matches: Mapping[int, int] = field(default_factory=dict)
    #: While nothing at all was read; a good look anywhere ends the row.
    stalls: int = 0

    def kept(self, sample: Sample) -> "Vain":
        """Return what still counts: who was counted and is younger than a recycle's outcome was read since."""
        waiting = sample.paused | {age.match_id for age in sample.ages if age.seconds >= TOO_OLD_SECONDS}
        matches = {match_id: count for match_id, count in self.matches.items() if match_id in waiting}
        return Vain(matches=matches, stalls=self.stalls if sample.is_stalled else 0)

    def after(self, tried: Collection[int], sample: Sample) -> "Vain":
        """Return the counts after one more recycle, of these matches, that did not help."""
        raised = {match_id: self.matches.get(match_id, 0) + 1 for match_id in tried}
        return Vain(matches={**self.matches, **raised}, stalls=self.stalls + 1).kept(sample)


def remedy(sample: Sample, vain: Vain, *, may_restart: bool = True) -> Remedy:
    """Return what to do about a bad sample."""
    if not sample.askable:
        return Remedy.HOLD
    hoped = still_hoped_for(sample, vain)
    if sample.is_stalled and (vain.stalls >= MAX_RECYCLES or not hoped):
        return Remedy.RESTART if may_restart else Remedy.LEAVE
    return Remedy.RECYCLE if hoped else Remedy.LEAVE


def still_hoped_for(sample: Sample, vain: Vain) -> tuple[Age, ...]:
    """Return those whom a recycle may help; the others have had theirs."""
    return tuple(age for age in sample.askable if vain.matches.get(age.match_id, 0) < MAX_RECYCLES)
