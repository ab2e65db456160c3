"""The gate to one source: closed for all when it refuses too much, and for one kind of page when that kind has changed.

Connection failures do not count here: they are the target's breaker's, which knows when the way is open again.
"""

from collections import defaultdict
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from longstop.clock import Clock
from longstop.errors import CircuitOpen, LayoutPaused, ParseError, SourceChallenged, SourceError
from longstop.resilience.breaker import Breaker, BreakerPolicy, Permit, Transition
from longstop.resilience.taxonomy import FailureKind, kind_of
from longstop.telemetry.breakers import tell_breaker
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.sources import ChallengeCleared, ChallengeServed, LayoutBroken, LayoutRecovered

#: More pages of a kind than these, unreadable one after the other, are no accident: the site has changed.
MAX_UNREADABLE = 10
#: Of pages that are unreadable now and then, one is kept in this time: the folder is for more than one trouble.
KEEP_EVERY_SECONDS = 300.0
_COUNTED = frozenset({FailureKind.REFUSAL, FailureKind.CONTENT})
_SILENT = frozenset({FailureKind.CONNECTION, FailureKind.HELD, FailureKind.OURS})


class KeepsPages(Protocol):
    """Where pages are kept that could not be read."""

    def keep(self, name_hint: str, body: bytes, now: datetime) -> str | None:
        """Keep a page; return its path, or `None` when that could not be."""
        ...


class TakesPictures(Protocol):
    """Who takes a picture of a page that could not be read; nobody waits for it."""

    def take(self, name: str, address: str) -> None: ...


class _Pass(Struct, frozen=True):
    permit: Permit
    #: Whether this is the one try at a kind of page that could not be read.
    is_try: bool


class _Streak:
    """Unreadable pages of one kind, one after the other."""

    def __init__(self) -> None:
        self.length = 0
        self.closed_until = 0.0
        self.page: str | None = None

    @property
    def is_broken(self) -> bool:
        return self.length > MAX_UNREADABLE


class SourceGate:
    """Who may ask a source now. It hears of every answer, and opens again by itself."""

    def __init__(
        self,
        source: str,
        *,
        policy: BreakerPolicy,
        probe_seconds: float,
        pages: KeepsPages,
        clock: Clock,
        bus: Bus,
        camera: TakesPictures | None = None,
    ) -> None:
        self._source = source
        self._camera = camera
        self._breaker = Breaker(policy)
        self._probe_seconds = probe_seconds
        self._pages = pages
        self._clock = clock
        self._bus = bus
        self._streaks = defaultdict[str, _Streak](_Streak)
        self._keep_again_at = defaultdict[str, float](float)
        #: Challenges since the last good page.
        self._challenges = 0
        self._challenge_page: str | None = None

    @property
    def rejected(self) -> int:
        """How many questions were turned away because the source refuses too much."""
        return self._breaker.rejected

    def enter(self, resource: str) -> object:
        now = self._clock.monotonic()
        is_try = self._is_try(resource, now)
        permit = self._breaker.permit(now)
        if permit is None:
            seconds = self._breaker.remaining(now)
            raise CircuitOpen(f"{self._source} is left alone for {seconds:.0f} s", retry_after_seconds=seconds)
        self._report(permit.transition)
        if is_try:
            self._streaks[resource].closed_until = now + self._probe_seconds
        return _Pass(permit, is_try)

    def _is_try(self, resource: str, now: float) -> bool:
        """Return whether the time for one try has come, or raise: before it, nobody is let through."""
        streak = self._streaks[resource]
        if not streak.is_broken:
            return False
        if now < streak.closed_until:
            seconds = streak.closed_until - now
            raise LayoutPaused(
                f"{self._source} {resource} pages cannot be read; the next try is in {seconds:.0f} s",
                retry_after_seconds=seconds,
            )
        return True

    def leave(
        self, passed: object, resource: str, error: BaseException | None, body: bytes | None, page: str = ""
    ) -> None:
        if not isinstance(passed, _Pass):
            raise TypeError("whoever leaves has entered here")
        now = self._clock.monotonic()
        if error is None:
            self._report(self._breaker.succeed(passed.permit, now))
            self._readable(resource)
        elif isinstance(error, SourceError):
            if isinstance(error, ParseError):
                self._unreadable(resource, error, body, now, page)
            self._failed(passed.permit, resource, error, body, now)
        if passed.is_try and _says_nothing(error):
            self._streaks[resource].closed_until = now
        self._breaker.release(passed.permit, now)

    def _failed(self, permit: Permit, resource: str, error: SourceError, body: bytes | None, now: float) -> None:
        if isinstance(error, SourceChallenged):
            self._challenged(resource, error, body)
        kind = kind_of(error)
        if kind in _COUNTED:
            self._report(self._breaker.fail(permit, now), last=error.reason)
        elif kind not in _SILENT:
            self._report(self._breaker.succeed(permit, now))

    def _report(self, transition: Transition | None, last: str = "") -> None:
        if transition is not None:
            tell_breaker(self._bus, "source", self._source, transition, last=last)

    def _unreadable(self, resource: str, error: ParseError, body: bytes | None, now: float, page: str) -> None:
        streak = self._streaks[resource]
        streak.length += 1
        if streak.length == MAX_UNREADABLE + 1 or (streak.length == 1 and now >= self._keep_again_at[resource]):
            self._keep_again_at[resource] = now + KEEP_EVERY_SECONDS
            name = f"{self._source}-{resource}"
            streak.page = self._pages.keep(name, body or b"", self._clock.now()) or streak.page
            if self._camera is not None and page:
                self._camera.take(name, page)
        error.page = streak.page
        if streak.is_broken:
            streak.closed_until = now + self._probe_seconds
        if streak.length == MAX_UNREADABLE + 1:
            self._bus.emit(
                LayoutBroken(
                    source=self._source,
                    resource=resource,
                    failures=streak.length,
                    error_message=error.reason,
                    page=streak.page,
                    retry_in_seconds=self._probe_seconds,
                )
            )

    def _challenged(self, resource: str, error: SourceChallenged, body: bytes | None) -> None:
        """Tell the first challenge at once, with its page: no patience makes it go away."""
        self._challenges += 1
        if self._challenges == 1:
            self._challenge_page = self._pages.keep(f"{self._source}-challenge", body or b"", self._clock.now())
            self._bus.emit(ChallengeServed(source=self._source, resource=resource, page=self._challenge_page))
        error.page = self._challenge_page

    def _readable(self, resource: str) -> None:
        if self._challenges:
            self._bus.emit(ChallengeCleared(source=self._source, challenges=self._challenges))
            self._challenges = 0
        streak = self._streaks[resource]
        if streak.is_broken:
            failures = streak.length
            self._bus.emit(LayoutRecovered(source=self._source, resource=resource, failures=failures))
        if streak.length:
            self._streaks[resource] = _Streak()


def _says_nothing(error: BaseException | None) -> bool:
    """Return whether a question ended so that nothing is known of the page: cancelled, held back, or no answer."""
    return error is not None and not (isinstance(error, SourceError) and kind_of(error) not in _SILENT)
