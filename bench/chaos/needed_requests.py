"""How many requests a perfect client needs: the baseline for amplification.

The perfect client never fails and sends no needless request. It still reads an over again when it has ended, and
everything when an innings or the match has ended, because sites correct their data.

With slow responses it polls less often, too: its period is the cadence, or the duration of one poll if that is longer.
The next poll reads what it missed, ten events a page. Where the product has slowed down on purpose, the perfect client
uses the same cadence, so that repeated requests do not hide behind it.
Errors are not allowed for: the perfect client's requests all succeed, so every repetition counts as too many.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from math import ceil

from longstop_lab.simulator.truth import TruthLine

#: Items on a page of the event list.
PAGE_ITEMS = 10
#: Consecutive requests of one poll: a page and the scoreboard.
LOOK_REQUESTS = 2

#: Seconds between two polls of a match (`None` stands for the listing), at a time after the start.
Pace = Callable[[str | None, float], float]
#: Seconds of one response, at a time after the start.
Latency = Callable[[float], float]


def requests_needed(truth: Iterable[TruthLine], *, began: datetime, seconds: float, interval: float) -> int:
    """Return the requests of a client that begins with nothing.

    Of each match it reads the whole event list, the scoreboard and the scorecard, and then follows it.
    """
    lines = list(truth)
    whole = sum(_whole(sum(line.at <= began for line in of)) for of in _by_match(lines).values())
    return whole + requests_to_follow(lines, began=began, seconds=seconds, pace=lambda _match, _after: interval)


def requests_to_follow(
    truth: Iterable[TruthLine],
    *,
    began: datetime,
    seconds: float,
    pace: Pace,
    latency: Latency = lambda _after: 0.0,
) -> int:
    """Return the requests of a client that has everything and follows the changes.

    It reads the list at the list's pace, and of each match what is new, in every period in which there is something.
    """
    lists = sum(1 for _ in _periods(seconds, lambda after: max(pace(None, after), latency(after))))
    return lists + sum(
        _looks(lines, began, _periods(seconds, _period_of(match, pace, latency)))
        for match, lines in _by_match(truth).items()
    )


def _by_match(truth: Iterable[TruthLine]) -> dict[str, list[TruthLine]]:
    lines: dict[str, list[TruthLine]] = defaultdict(list)
    for line in truth:
        lines[line.match].append(line)
    return lines


def _period_of(match: str, pace: Pace, latency: Latency) -> Callable[[float], float]:
    return lambda after: max(pace(match, after), LOOK_REQUESTS * latency(after))


def _periods(seconds: float, length: Callable[[float], float]) -> Iterator[tuple[float, float]]:
    """Yield the periods that cover a span, each as long as its beginning says."""
    begin = 0.0
    while begin < seconds:
        end = begin + length(begin)
        yield begin, min(end, seconds)
        begin = end


def _looks(lines: Sequence[TruthLine], began: datetime, periods: Iterable[tuple[float, float]]) -> int:
    times = [(line.at - began).total_seconds() for line in lines]
    spans = ((bisect_left(times, begin), bisect_left(times, end)) for begin, end in periods)
    return sum(_look(lines[:last], last - first) for first, last in spans if last > first)


def _look(so_far: Sequence[TruthLine], new: int) -> int:
    """Return the requests of a poll that finds this many new lines."""
    opened = {line.kind for line in so_far[-new:] if line.op == "insert"}
    if opened & {"innings", "result"}:
        return _whole(len(so_far))
    return ceil(new / PAGE_ITEMS) + ("over" in opened) + 1


def _whole(items: int) -> int:
    """Return the requests that read everything of a match: its list, its scoreboard, its scorecard."""
    return ceil(items / PAGE_ITEMS) + 2 if items else 0
