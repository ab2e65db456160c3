"""Whether a figure grows: a linear fit through its samples, with an interval that allows for autocorrelation.

The memory of a process is much like that of two seconds ago, so a thousand samples are far fewer independent ones. The
samples are grouped into blocks and the median of each counts, so that a spike (a browser and its replacement) is no
growth. The correlation of neighbouring blocks widens the interval.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from statistics import NormalDist, fmean, linear_regression, median

from msgspec import Struct

BLOCKS = 60
CONFIDENCE = 0.95
#: What a figure may grow by in an hour, as a share of its level.
FLAT_SHARE = 0.10
#: The least number of independent samples: with fewer there is no interval.
_LEAST_THROWS = 4.0
_MOST_ALIKE = 0.99
_SECONDS_PER_HOUR = 3600.0


class Course(StrEnum):
    """Where a figure goes."""

    #: All of the interval is flat.
    FLAT = "flat"
    #: Some of it is: the run was too short, or too noisy, to say more.
    OPEN = "open"
    GROWS = "grows"
    FALLS = "falls"


class Trend(Struct, frozen=True, kw_only=True):
    """How a figure moves, by the hour, and what it can be with 95 % confidence."""

    level: float
    slope: float
    low: float
    high: float

    @property
    def course(self) -> Course:
        if self.low > self.flat:
            return Course.GROWS
        if self.high < -self.flat:
            return Course.FALLS
        return Course.FLAT if -self.flat <= self.low and not self.may_grow else Course.OPEN

    @property
    def flat(self) -> float:
        """Return what it may grow by in an hour."""
        return FLAT_SHARE * abs(self.level)

    @property
    def may_grow(self) -> bool:
        """Return whether growth beyond that is not excluded: an interval that reaches there has shown nothing."""
        return self.high > self.flat


def trend(seconds: Sequence[float], values: Sequence[float]) -> Trend:
    """Return where a figure goes that had these values at these moments; four samples at least."""
    times, levels = _blocks(seconds), _blocks(values)
    line = linear_regression(times, levels)
    residuals = [level - line.intercept - line.slope * time for time, level in zip(times, levels, strict=True)]
    independent = _independent_samples(residuals)
    spread = sum((time - fmean(times)) ** 2 for time in times) * independent / len(times)
    error = math.sqrt(sum(each**2 for each in residuals) * independent / len(residuals) / (independent - 2) / spread)
    reach = _students_t(independent - 2) * error
    return Trend(
        level=fmean(levels),
        slope=line.slope * _SECONDS_PER_HOUR,
        low=(line.slope - reach) * _SECONDS_PER_HOUR,
        high=(line.slope + reach) * _SECONDS_PER_HOUR,
    )


def _blocks(values: Sequence[float]) -> list[float]:
    """Return the middle value of each of sixty blocks, or all values when there are fewer."""
    count = min(BLOCKS, len(values))
    edges = [nth * len(values) // count for nth in range(count + 1)]
    return [median(values[begin:end]) for begin, end in pairwise(edges)]


def _independent_samples(residuals: Sequence[float]) -> float:
    """Return to how many independent independent the blocks come, by how much each is like the one before it."""
    count, whole = len(residuals), sum(each**2 for each in residuals)
    if not whole:
        return float(count)
    alike = sum(before * after for before, after in pairwise(residuals)) / whole
    # A line fitted to few blocks takes some of their likeness away: this gives it back.
    alike = min(_MOST_ALIKE, max(0.0, alike + (1 + 4 * alike) / count))
    return max(_LEAST_THROWS, count * (1 - alike) / (1 + alike))


def _students_t(freedom: float) -> float:
    """Return how many standard errors the interval reaches to each side: Student's t, by its expansion."""
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )
