"""When a browser has served enough. Pure."""

from msgspec import Struct

from longstop.fetching.browser.base import Usage, held_bytes

#: Latency is compared once so many answers to our own small question have been timed: the first ones set the measure.
#: Pages say nothing about the browser: their site may be slow, and an open one speaks when it likes.
LATENCY_SAMPLE = 12
#: Reasons that may hold for the next browser too.
_RECURRING = frozenset({"memory", "processes", "latency", "timeouts"})
FIRST_PATIENCE_SECONDS = 30.0
LAST_PATIENCE_SECONDS = 120.0


class RecyclePolicy(Struct, frozen=True, kw_only=True):
    """The bounds of one browser's life."""

    max_pages: int = 1000
    max_age_seconds: float = 6 * 3600.0
    max_memory_bytes: int = 1_500_000_000
    max_processes: int = 200
    #: Answers in a row that did not come in time: a part of the browser may hang though it answers when asked.
    max_timeouts: int = 3
    #: How many times slower than at its beginning a browser may become, once it is slow at all.
    max_drift: float = 4.0
    slow_seconds: float = 0.5


class Wear(Struct, frozen=True, kw_only=True):
    """How much a browser has served."""

    pages: int
    age_seconds: float
    #: `None` when it was not measured yet.
    usage: Usage | None
    #: How long a small question took, by the mean of the first and of the last ones; `None` while there are too few.
    first_latency: float | None = None
    last_latency: float | None = None
    #: Answers in a row that did not come in time.
    timeouts: int = 0


def reason_to_recycle(policy: RecyclePolicy, wear: Wear) -> str | None:
    """Return why another browser should take over; `None` when this one may go on."""
    usage = wear.usage
    if usage is not None and held_bytes(usage) > policy.max_memory_bytes:
        return "memory"
    if usage is not None and usage.processes > policy.max_processes:
        return "processes"
    if wear.timeouts >= policy.max_timeouts:
        return "timeouts"
    if wear.pages >= policy.max_pages:
        return "pages"
    if wear.age_seconds >= policy.max_age_seconds:
        return "age"
    if wear.first_latency is not None and wear.last_latency is not None:
        bound = max(policy.max_drift * wear.first_latency, policy.slow_seconds)
        return "latency" if wear.last_latency > bound else None
    return None


def patience_seconds(reason: str, repeats: int) -> float:
    """Return how old a browser must be before it is replaced for the same reason as those before it.

    What its pages need in all may be more than it is allowed; to begin anew every few seconds helps nobody then.
    """
    if reason not in _RECURRING or not repeats:
        return 0.0
    return min(FIRST_PATIENCE_SECONDS * 2.0 ** (repeats - 1), LAST_PATIENCE_SECONDS)


class Latencies:
    """The mean of a browser's first answers, and of its latest."""

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
