"""What was done without a person, told from what is heard. Pure: events and monotonic moments go in, entries come out.

A browser that is given up, its successor and the first good look are three events and one action; so are a watch that
begins anew and the look that follows, and the processes that one sweep has ended.
"""

from collections.abc import Callable, Collection

from msgspec import Struct

from longstop.fetching.browser.events import BrowserClosed, BrowserFailed, BrowserRecycled, BrowserStarted, OrphanKilled
from longstop.model.recovery import RecoveryKind, RecoveryOutcome
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.matches import PollSucceeded, WatchRestarted
from longstop.telemetry.events.sources import ListingRead

#: An outcome is looked for so long; then it counts as none.
OBSERVED_WITHIN_SECONDS = 120.0
#: So long after a sweep it is seen who is left.
SWEEP_SECONDS = 2.0
#: What a person has asked for is no action of ours, and what a recycle does stands in its own entry.
_NOT_BY_ITSELF = ("asked", "recycled")


class Key(Struct, frozen=True):
    """What an action is known by while its outcome is looked for: one of a kind at a time for each subject."""

    kind: RecoveryKind
    subject: str


class Began(Struct, frozen=True, kw_only=True):
    key: Key
    trigger: str
    pids_before: tuple[int, ...] = ()


class Ended(Struct, frozen=True, kw_only=True):
    key: Key
    outcome: RecoveryOutcome
    observed: str
    pids_after: tuple[int, ...] | None = None


Entry = Began | Ended
Living = Callable[[Collection[int]], Collection[int]]


class _Open(Struct):
    """An action whose outcome is not seen yet."""

    began: float
    generation: int = 0
    #: The browser that has come after; `None` before it has.
    pid: int | None = None
    is_closed: bool = False
    has_failed: bool = False
    #: Those whom a sweep has ended.
    swept: tuple[int, ...] = ()


class Actions:
    """Remembers which browsers run, and what was begun and is not seen through."""

    def __init__(self) -> None:
        self._pids: dict[str, tuple[int, int]] = {}
        self._open: dict[Key, _Open] = {}
        #: Ended, and in no entry yet.
        self._swept: list[OrphanKilled] = []

    def take(self, event: Telemetry, now: float) -> list[Entry]:
        """Return what an event begins or ends."""
        match event:
            case BrowserStarted():
                self._started(event)
            case BrowserRecycled() if not event.reason.startswith("asked"):
                return self._replaced(event.source, event.generation, event.reason, None, now)
            case BrowserFailed():
                return self._replaced(event.source, event.generation, event.reason, event.pid, now)
            case BrowserClosed():
                self._closed(event)
            case OrphanKilled():
                self._swept.append(event)
            case WatchRestarted() if event.reason not in _NOT_BY_ITSELF:
                return self._restarted(event, now)
            case PollSucceeded():
                return [*self._read(event.ref), *self._served(event.ref.partition("_")[0], event.ref)]
            case ListingRead():
                return self._served(event.source, f"the listing of {event.source}")
            case _:
                pass
        return []

    def tick(self, now: float, living: Living) -> list[Entry]:
        """Return what begins or ends by time: a sweep after a moment, the others when nothing was seen for long."""
        over: list[Entry] = self._sweep(now)
        for key, action in list(self._open.items()):
            seconds = now - action.began
            if key.kind is RecoveryKind.SWEEP:
                over += [self._end_of_sweep(key, action, living)] if seconds >= SWEEP_SECONDS else []
            elif seconds >= OBSERVED_WITHIN_SECONDS:
                over.append(self._given_up(key, action))
        return over

    def _started(self, event: BrowserStarted) -> None:
        self._pids[event.source] = (event.generation, event.pid)
        action = self._open.get(Key(RecoveryKind.BROWSER_RECYCLE, event.source))
        if action is not None:
            action.pid = event.pid

    def _replaced(self, source: str, generation: int, reason: str, pid: int | None, now: float) -> list[Entry]:
        key, known = Key(RecoveryKind.BROWSER_RECYCLE, source), self._pids.get(source)
        if known is not None and known[0] == generation:
            pid = known[1]
        action = self._open.get(key)
        if action is not None and (pid is None or generation <= action.generation):
            # Its successor did not start, or the old one did not wait for its last user: the same action still.
            action.has_failed = True
            return []
        ended = [self._end(key, RecoveryOutcome.NOT_RECOVERED, f"its successor went too: {reason}")] if action else []
        self._open[key] = _Open(began=now, generation=generation, has_failed=pid is None)
        return [*ended, Began(key=key, trigger=reason, pids_before=() if pid is None else (pid,))]

    def _closed(self, event: BrowserClosed) -> None:
        action = self._open.get(Key(RecoveryKind.BROWSER_RECYCLE, event.source))
        if action is not None and event.generation == action.generation:
            action.is_closed = not event.left

    def _served(self, source: str, what: str) -> list[Entry]:
        key = Key(RecoveryKind.BROWSER_RECYCLE, source)
        action = self._open.get(key)
        if action is None or action.pid is None:
            return []
        return [self._end(key, RecoveryOutcome.RECOVERED, f"{what} was read with the next one", (action.pid,))]

    def _restarted(self, event: WatchRestarted, now: float) -> list[Entry]:
        key = Key(RecoveryKind.WATCH_RESTART, event.ref)
        again = f"it had to begin anew again: {event.reason}"
        ended = [self._end(key, RecoveryOutcome.NOT_RECOVERED, again)] if key in self._open else []
        self._open[key] = _Open(began=now)
        return [*ended, Began(key=key, trigger=event.reason)]

    def _read(self, ref: str) -> list[Entry]:
        key = Key(RecoveryKind.WATCH_RESTART, ref)
        return [self._end(key, RecoveryOutcome.RECOVERED, f"{ref} was read again")] if key in self._open else []

    def _sweep(self, now: float) -> list[Entry]:
        """Begin the entry of those who were ended since the last time, while none is open."""
        key = Key(RecoveryKind.SWEEP, "orphans")
        if not self._swept or key in self._open:
            return []
        swept, self._swept = self._swept, []
        pids, programs = tuple(each.pid for each in swept), sorted({each.program for each in swept})
        self._open[key] = _Open(began=now, swept=pids)
        return [Began(key=key, trigger=f"nobody owned them: {', '.join(programs)}", pids_before=pids)]

    def _end_of_sweep(self, key: Key, action: _Open, living: Living) -> Ended:
        left, count = tuple(sorted(living(action.swept))), len(action.swept)
        if left:
            return self._end(key, RecoveryOutcome.NOT_RECOVERED, f"{len(left)} of {count} still live", left)
        return self._end(key, RecoveryOutcome.RECOVERED, f"of {count} that were ended none is left", ())

    def _given_up(self, key: Key, action: _Open) -> Ended:
        within = f"{OBSERVED_WITHIN_SECONDS:.0f} s"
        if key.kind is RecoveryKind.WATCH_RESTART:
            return self._end(key, RecoveryOutcome.NOT_RECOVERED, f"it was not read for {within} after")
        if action.pid is not None:
            observed = f"its successor runs, and nothing was read for {within}"
            return self._end(key, RecoveryOutcome.NOT_RECOVERED, observed, (action.pid,))
        if action.is_closed and not action.has_failed:
            return self._end(key, RecoveryOutcome.RECOVERED, "it is gone, and nobody has needed another one since", ())
        return self._end(key, RecoveryOutcome.NOT_RECOVERED, f"no other one has started within {within}", ())

    def _end(self, key: Key, outcome: RecoveryOutcome, observed: str, pids: tuple[int, ...] | None = None) -> Ended:
        del self._open[key]
        return Ended(key=key, outcome=outcome, observed=observed, pids_after=pids)
