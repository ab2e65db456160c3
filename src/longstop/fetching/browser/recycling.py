"""When a browser is replaced: it does not respond any more, or it has served long enough. Pure."""

from msgspec import Struct

from longstop.fetching.browser.base import Usage, held_bytes

#: How long a browser may take to return its version, on a machine that is not overloaded.
PROBE_SECONDS = 5.0
#: Latency is compared only after this many probes; the first ones set the baseline.
#: Page loads are no measure: the site may be slow, and an open page receives data whenever it likes.
LATENCY_SAMPLE = 12
#: Reasons that may apply to the next browser as well.
_RECURRING = frozenset({"memory", "processes", "latency", "timeouts"})
FIRST_PATIENCE_SECONDS = 30.0
LAST_PATIENCE_SECONDS = 120.0


class HangPolicy(Struct, frozen=True, kw_only=True):
    """How often a browser is probed, and when it counts as hung."""

    #: Between two probes, and after a failed one.
    check_seconds: float = 5.0
    recheck_seconds: float = 1.0
    #: A browser that has not responded for this long is hung, including the time until that is noticed.
    hung_seconds: float = 30.0

    @property
    def probe_seconds(self) -> float:
        """The time-out of one probe."""
        return min(PROBE_SECONDS, self.hung_seconds / 3)

    def is_hung(self, silent_seconds: float) -> bool:
        """Return whether a browser is hung: the result of another probe would come too late."""
        return silent_seconds + self.recheck_seconds + self.probe_seconds > self.hung_seconds


class RecyclePolicy(Struct, frozen=True, kw_only=True):
    """The limits of one browser."""

    max_pages: int = 1000
    max_age_seconds: float = 6 * 3600.0
    max_memory_bytes: int = 1_500_000_000
    max_processes: int = 200
    #: Consecutive time-outs of pages: a part of the browser may hang although it responds to probes.
    max_timeouts: int = 3
    #: How many times slower than at first a browser may become, once it is slow at all.
    max_drift: float = 4.0
    slow_seconds: float = 0.5


class EngineStats(Struct, frozen=True, kw_only=True):
    """What a browser has served, and what it uses."""

    pages: int
    age_seconds: float
    #: `None` if it was not measured yet.
    usage: Usage | None
    #: Mean latency of the first and of the latest probes; `None` until there are enough.
    first_latency: float | None = None
    last_latency: float | None = None
    #: Consecutive time-outs of pages.
    timeouts: int = 0


def reason_to_recycle(policy: RecyclePolicy, stats: EngineStats) -> str | None:
    """Return why a browser should be replaced; `None` if it may go on."""
    usage = stats.usage
    if usage is not None and held_bytes(usage) > policy.max_memory_bytes:
        return "memory"
    if usage is not None and usage.processes > policy.max_processes:
        return "processes"
    if stats.timeouts >= policy.max_timeouts:
        return "timeouts"
    if stats.pages >= policy.max_pages:
        return "pages"
    if stats.age_seconds >= policy.max_age_seconds:
        return "age"
    if stats.first_latency is not None and stats.last_latency is not None:
        bound = max(policy.max_drift * stats.first_latency, policy.slow_seconds)
        return "latency" if stats.last_latency > bound else None
    return None


def patience_seconds(reason: str, repeats: int) -> float:
    """Return the least age of a browser that is replaced for the same reason as its predecessors.

    If its pages need more than the limits allow, a restart every few seconds does not help.
    """
    if reason not in _RECURRING or not repeats:
        return 0.0
    return min(FIRST_PATIENCE_SECONDS * 2.0 ** (repeats - 1), LAST_PATIENCE_SECONDS)


class Latencies:
    """The mean latency of a browser's first probes, and of its latest."""

    def __init__(self, sample: int = LATENCY_SAMPLE) -> None:
        self._sample = sample
        self._first: list[float] = []
        self._last: list[float] = []

    def add(self, seconds: float) -> None:
        if len(self._first) < self._sample:
            self._first.append(seconds)
        else:
            self._last = [*self._last[-self._sample + 1 :], seconds]

    @property
    def first(self) -> float | None:
        return _mean(self._first, self._sample)

    @property
    def last(self) -> float | None:
        return _mean(self._last, self._sample)


def _mean(values: list[float], needed: int) -> float | None:
    return sum(values) / len(values) if len(values) >= needed else None
