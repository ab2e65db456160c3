"""When a browser is replaced: it does not respond any more, or it has served long enough. Pure."""

from collections import deque
from collections.abc import Collection

from msgspec import Struct

from longstop.fetching.browser.browser_policy_and_stats import BrowserStats

#: How long a browser may take to return its version, on a machine that is not overloaded.
PROBE_SECONDS = 5.0
#: Latency is compared only after this many probes; the first ones set the baseline.
#: Page loads are no measure: the site may be slow, and an open page receives data whenever it likes.
LATENCY_SAMPLE = 12
#: Reasons that may apply to the next browser as well: if its pages need more than the limits allow, a restart every few
#: seconds does not help. It is not replaced for the same reason as its predecessor before this age.
RECURRING = frozenset({"memory", "processes", "latency", "timeouts"})
PATIENCE_SECONDS = 60.0


class HangPolicy(Struct, frozen=True, kw_only=True):
    """How often a browser is probed, and when it counts as hung."""

    #: Between two probes, and after a failed one.
    check_seconds: float = 5.0
    recheck_seconds: float = 1.0
    #: A browser that has not responded for this long is hung, including the time until that is noticed.
    hung_seconds: float = 30.0

    @property
    def probe_seconds(self) -> float:
        return min(PROBE_SECONDS, self.hung_seconds / 3)

    def is_hung(self, silent_seconds: float) -> bool:
        """Return whether a browser is hung: the result of another probe would come too late."""
        return silent_seconds + self.recheck_seconds + self.probe_seconds > self.hung_seconds


class RecyclePolicy(Struct, frozen=True, kw_only=True):
    max_pages: int = 1000
    max_age_seconds: float = 6 * 3600.0
    max_memory_bytes: int = 1_500_000_000
    max_processes: int = 200
    #: Consecutive time-outs of pages: a part of the browser may hang although it responds to probes.
    max_timeouts: int = 3
    #: How many times slower than at first a browser may become, once it is slow at all.
    max_drift: float = 4.0
    slow_seconds: float = 0.5


def reason_to_recycle(policy: RecyclePolicy, stats: BrowserStats) -> str | None:
    """Return why a browser should be replaced; `None` if it may go on."""
    usage = stats.usage
    if usage is not None and usage.held_bytes > policy.max_memory_bytes:
        return "memory"
    if usage is not None and usage.processes > policy.max_processes:
        return "processes"
    if stats.timeouts >= policy.max_timeouts:
        return "timeouts"
    if stats.pages_served >= policy.max_pages:
        return "pages"
    if stats.age_seconds >= policy.max_age_seconds:
        return "age"
    if stats.first_latency is not None and stats.last_latency is not None:
        bound = max(policy.max_drift * stats.first_latency, policy.slow_seconds)
        return "latency" if stats.last_latency > bound else None
    return None


class Latencies:
    """The mean latency of a browser's first probes, and of its latest."""

    def __init__(self) -> None:
        self._first: list[float] = []
        self._last = deque[float](maxlen=LATENCY_SAMPLE)

    def add(self, seconds: float) -> None:
        (self._first if len(self._first) < LATENCY_SAMPLE else self._last).append(seconds)

    @property
    def first(self) -> float | None:
        return _mean(self._first)

    @property
    def last(self) -> float | None:
        return _mean(self._last)


def _mean(values: Collection[float]) -> float | None:
    return sum(values) / len(values) if len(values) >= LATENCY_SAMPLE else None
