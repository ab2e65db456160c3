"""Adding up: what the events of an innings come to, and whether a scoreboard says the same."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from longstop.model.cricket import Delivery, Dismissal, InferredBalls, InningsScore, Overs

BALLS_PER_OVER = 6


class Tally(Struct, frozen=True, kw_only=True):
    """The sum of an innings' deliveries."""

    runs: int
    #: Wickets that every scoreboard counts.
    wickets: int
    #: Batters who retired: hurt does not count, out does, and the feed does not say which it was.
    retired: int
    overs: Overs


class Difference(Struct, frozen=True):
    """How much more a scoreboard shows than the events; all zero when they agree."""

    runs: int = 0
    wickets: int = 0
    balls: int = 0

    def __bool__(self) -> bool:
        return bool(self.runs or self.wickets or self.balls)

    def __str__(self) -> str:
        return f"the scoreboard shows {self.runs:+d} runs, {self.wickets:+d} wickets, {self.balls:+d} balls"


def tally(
    deliveries: Sequence[Delivery], ended_overs: Collection[int], unseen: Mapping[int, InferredBalls] | None = None
) -> Tally:
    """Add up deliveries in the order of play; `ended_overs` are those the source has summed up.

    `unseen` is what overs gave beyond the balls that were shown.
    """
    sums = (unseen or {}).values()
    fallen = [wicket.kind for delivery in deliveries for wicket in delivery.wickets]
    return Tally(
        runs=sum(delivery.runs.total for delivery in deliveries) + sum(each.runs for each in sums),
        wickets=sum(kind is not Dismissal.RETIRED for kind in fallen) + sum(each.wickets for each in sums),
        retired=sum(kind is Dismissal.RETIRED for kind in fallen),
        overs=_overs(deliveries, ended_overs, unseen or {}),
    )


def _overs(deliveries: Sequence[Delivery], ended_overs: Collection[int], unseen: Mapping[int, InferredBalls]) -> Overs:
    reached = {delivery.label.over for delivery in deliveries[-1:]} | set(ended_overs) | set(unseen)
    last = max(reached, default=None)
    if last is None:
        return Overs(0, 0)
    if last in ended_overs:
        # Umpires miscount: an over may end after five balls or seven.
        return Overs(last + 1, 0)
    legal = sum(each.runs.is_legal for each in deliveries if each.label.over == last)
    return Overs(last, legal + (unseen[last].balls if last in unseen else 0))


def compare(ours: Tally, score: InningsScore) -> Difference:
    """Return what the scoreboard shows beyond the events."""
    counted = min(max(score.wickets, ours.wickets), ours.wickets + ours.retired)
    return Difference(
        runs=score.runs - ours.runs,
        wickets=score.wickets - counted,
        balls=_balls(score.overs) - _balls(ours.overs),
    )


def _balls(overs: Overs) -> int:
    """Count so that 9.6 and 10.0 are the same moment, as they are in different feeds."""
    return overs.over * BALLS_PER_OVER + overs.ball
