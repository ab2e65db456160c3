"""Faults that grow and fade: responses get slower and fail more often, then recover."""

from collections.abc import Iterator

from msgspec import Struct

from bench.chaos.fault_schedule import Action
from longstop_lab.simulator.faults import Fault, FaultKind

#: Seconds for which a slope stays on one level.
LEVEL_SECONDS = 0.5
#: Answers of one level differ by so much of its latency.
JITTER_SHARE = 0.2


class GradualFault(Struct, frozen=True, kw_only=True):
    """A way up and down again, as long up as down, for latency and for errors."""

    seconds: float
    #: Latency at the foot and at the top.
    foot_seconds: float = 0.0
    top_seconds: float = 0.0
    #: The share of requests that fail at the top; at the foot none do.
    top_errors: float = 0.0
    #: In which part of the time answers are late, and in which they fail: shares of the whole, from 0 to 1.
    late_from_to: tuple[float, float] = (0.0, 1.0)
    failing_from_to: tuple[float, float] = (0.0, 1.0)

    def latency(self, after: float) -> float:
        return self.foot_seconds + (self.top_seconds - self.foot_seconds) * self._height(after, self.late_from_to)

    def errors(self, after: float) -> float:
        return self.top_errors * self._height(after, self.failing_from_to)

    def _height(self, after: float, part: tuple[float, float]) -> float:
        """Return how far up it is, from 0 to 1."""
        begin, end = (share * self.seconds for share in part)
        return max(0.0, 1 - abs(2 * (after - begin) / (end - begin) - 1))


def acts_of(slope: GradualFault, at: float = 0.0) -> Iterator[Action]:
    """Yield the slope level by level; each is as it is in its middle."""
    for nth in range(round(slope.seconds / LEVEL_SECONDS)):
        begin = nth * LEVEL_SECONDS
        for fault in _level(slope, begin + LEVEL_SECONDS / 2):
            yield Action(at=round(at + begin, 3), fault=fault)


def _level(slope: GradualFault, after: float) -> Iterator[Fault]:
    late = slope.latency(after)
    yield Fault(
        kind=FaultKind.LATENCY,
        seconds=round(late * (1 - JITTER_SHARE / 2), 3),
        jitter_seconds=round(late * JITTER_SHARE, 3),
        valid_seconds=LEVEL_SECONDS,
    )
    if share := slope.errors(after):
        yield from errors(share, LEVEL_SECONDS)


def errors(share: float, seconds: float) -> Iterator[Fault]:
    """Yield two faults that together hit this share of requests, half of them with 503 and half with a reset."""
    refused = share / 2
    yield Fault(kind=FaultKind.STATUS, status=503, share=round(refused, 4), valid_seconds=seconds)
    # The first fault that applies wins: only the requests that it let pass are left for the second one.
    yield Fault(kind=FaultKind.RESET, share=round(refused / (1 - refused), 4), valid_seconds=seconds)
