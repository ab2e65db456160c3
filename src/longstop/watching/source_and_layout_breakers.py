"""Admission control for one source: which requests may go out.

`SourceAdmission` blocks all requests while the site refuses too many of them, and one kind of page while its layout
cannot be parsed. It ignores connection failures: the target's breaker handles those.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Protocol

from msgspec import Struct, field

from longstop.clock import Clock
from longstop.errors import CircuitOpen, LayoutPaused, ParseError, SourceChallenged, SourceError
from longstop.matches.source_client_and_poll_attempt import RecordOutcome
from longstop.model.request_pause import FormerPause, NoStoredPauses, PauseKind, SourcePauses
from longstop.resilience.breaker import ASKED, Breaker, BreakerPolicy, BreakerState, Permit, Transition
from longstop.resilience.taxonomy import FailureKind, kind_of
from longstop.telemetry.bus import Bus, report_breaker
from longstop.telemetry.events.sources import ChallengeCleared, ChallengeServed, LayoutBroken, LayoutRecovered

#: More consecutive unparsable pages of one kind than this mean that the site's layout has changed.
MAX_UNREADABLE = 10
#: As many of them at most count of one match, while the site has lately shown readable pages of another one.
MAX_OF_ONE_MATCH = 6
#: What one match shows says nothing about the site while nothing similar happened to another one for this long.
ALONE_SECONDS = 600.0
#: Isolated unparsable pages are saved at most this often, so that they do not fill the folder.
KEEP_EVERY_SECONDS = 300.0
_COUNTED = frozenset({FailureKind.REFUSAL, FailureKind.CONTENT})
#: Failures that reveal nothing about the site or the page.
_NEUTRAL = frozenset({FailureKind.CONNECTION, FailureKind.NOT_SENT, FailureKind.OURS})


class ErrorPageStore(Protocol):
    """Saves pages that could not be parsed."""

    def keep(self, name_hint: str, body: bytes, now: datetime) -> str | None:
        """Save a page; return its path, or `None` when it could not be saved."""


class _UnreadableStreak(Struct):
    """Consecutive unparsable pages of one kind."""

    length: int = 0
    closed_until: float = 0.0
    page: str | None = None
    #: How many of them are counted of each match.
    matches: Counter[str] = field(default_factory=Counter)

    @property
    def is_broken(self) -> bool:
        return self.length > MAX_UNREADABLE


class _Latest:
    """When something last happened to each of the latest two matches."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}

    def note(self, match: str, now: float) -> None:
        self._at.pop(match, None)
        self._at[match] = now
        if len(self._at) > 2:
            del self._at[next(iter(self._at))]

    def has_other(self, match: str, now: float) -> bool:
        return any(each != match and now - at < ALONE_SECONDS for each, at in self._at.items())


class SourceAdmission:
    """Decides whether a source may be queried, and learns from every outcome."""

    def __init__(
        self,
        source: str,
        *,
        policy: BreakerPolicy,
        probe_seconds: float,
        pages: ErrorPageStore,
        clock: Clock,
        bus: Bus,
        pauses: SourcePauses | None = None,
        request_screenshot: Callable[[str, str], None] | None = None,
    ) -> None:
        self._source = source
        #: Takes the name of the file and the address of the page; returns at once.
        self._request_screenshot = request_screenshot
        self._breaker = Breaker(policy, source)
        self._probe_seconds = probe_seconds
        self._pages = pages
        self._clock = clock
        self._bus = bus
        self._streaks = defaultdict[str, _UnreadableStreak](_UnreadableStreak)
        #: By resource, the matches with readable pages; and those that failed, whatever the resource.
        self._readable = defaultdict[str, _Latest](_Latest)
        self._failing = _Latest()
        self._keep_again_at = defaultdict[str, float](float)
        #: Challenges since the last page that was parsed.
        self._challenges = 0
        self._challenge_page: str | None = None
        self._pauses = pauses or NoStoredPauses()
        for former in self._pauses.former:
            self._resume(former)

    @property
    def rejected(self) -> int:
        """Return how many queries were rejected because the circuit was open."""
        return self._breaker.rejected

    def admit(self, resource: str, source_id: str = "") -> RecordOutcome:
        """Admit a query and return what records its outcome, or raise `CircuitOpen`."""
        now = self._clock.monotonic()
        is_probe = self._is_probe(resource, now)
        permit = self._breaker.permit(now)
        if permit is None:
            seconds = self._breaker.remaining(now)
            raise CircuitOpen(f"circuit open for {self._source} ({seconds:.0f} s)", retry_after_seconds=seconds)
        self._report(permit.transition)
        if is_probe:
            self._streaks[resource].closed_until = now + self._probe_seconds
        return partial(self._record, resource, source_id, permit, is_probe)

    def retry_now(self) -> bool:
        """Probe at the next query what an open circuit pauses, as an operator asks; return whether there is any."""
        now = self._clock.monotonic()
        paused = {key: each for key, each in self._streaks.items() if each.is_broken and now < each.closed_until}
        for resource, streak in paused.items():
            streak.closed_until = now
            self._pauses.cut_short(PauseKind.LAYOUT, resource)
        transition = self._breaker.half_open(ASKED)
        self._report(transition)
        return bool(paused) or transition is not None

    def _resume(self, former: FormerPause) -> None:
        """Continue a pause of an earlier run, and report it as a new one: nothing else knows of it."""
        now = self._clock.monotonic()
        if former.kind is PauseKind.SOURCE_CIRCUIT:
            transition = self._breaker.reopen(now, former.seconds, former.explained())
            report_breaker(self._bus, "source", transition)
        elif former.kind is PauseKind.LAYOUT:
            seconds = min(former.seconds, self._probe_seconds)
            streak = _UnreadableStreak(length=MAX_UNREADABLE + 1, closed_until=now + seconds)
            self._streaks[former.subject] = streak
            self._emit_broken(former.subject, streak, former.explained(), seconds)

    def _is_probe(self, resource: str, now: float) -> bool:
        """Return whether a probe of a broken layout is due; raise while it is not."""
        streak = self._streaks[resource]
        if not streak.is_broken:
            return False
        if now < streak.closed_until:
            seconds = streak.closed_until - now
            raise LayoutPaused(
                f"cannot parse {resource} pages of {self._source}; next attempt in {seconds:.0f} s",
                retry_after_seconds=seconds,
            )
        return True

    def _record(
        self,
        resource: str,
        match: str,
        permit: Permit,
        is_probe: bool,
        error: BaseException | None,
        body: bytes | None,
        page: str,
    ) -> None:
        """Record how an admitted query ended; one that `is_probe` has tried a broken layout."""
        now = self._clock.monotonic()
        if error is None:
            self._report(self._breaker.succeed(permit, now))
            self._record_readable(resource, match, now)
        elif isinstance(error, SourceError):
            if isinstance(error, ParseError):
                self._record_unreadable(resource, match, error, body, now, page)
            self._record_failure(permit, resource, match, error, body, now)
        if is_probe and _is_inconclusive(error):
            self._streaks[resource].closed_until = now
        self._breaker.release(permit)

    def _record_failure(
        self, permit: Permit, resource: str, match: str, error: SourceError, body: bytes | None, now: float
    ) -> None:
        if isinstance(error, SourceChallenged):
            self._record_challenge(resource, error, body)
        kind = kind_of(error)
        if kind in _COUNTED:
            is_alone = bool(match) and not self._failing.has_other(match, now)
            self._failing.note(match, now)
            # Its own breaker pauses it. A probe says something, unless other pages are readable again.
            is_closed = self._breaker.state(now) is BreakerState.CLOSED
            if is_alone and (is_closed or any(each.has_other(match, now) for each in self._readable.values())):
                return
            self._report(self._breaker.fail(permit, now), last=error.reason)
        elif kind not in _NEUTRAL:
            self._report(self._breaker.succeed(permit, now))

    def _report(self, transition: Transition | None, last: str = "") -> None:
        if transition is not None:
            transition.store(self._pauses, PauseKind.SOURCE_CIRCUIT, last)
            report_breaker(self._bus, "source", transition, last=last)

    def _record_unreadable(
        self, resource: str, match: str, error: ParseError, body: bytes | None, now: float, page: str
    ) -> None:
        streak = self._streaks[resource]
        others_are_readable = bool(match) and self._readable[resource].has_other(match, now)
        if others_are_readable and streak.matches[match] >= MAX_OF_ONE_MATCH:
            error.page = streak.page
            return
        streak.matches[match] += 1
        streak.length += 1
        if streak.length == MAX_UNREADABLE + 1 or (streak.length == 1 and now >= self._keep_again_at[resource]):
            self._keep_again_at[resource] = now + KEEP_EVERY_SECONDS
            name = f"{self._source}-{resource}"
            streak.page = self._pages.keep(name, body or b"", self._clock.now()) or streak.page
            if self._request_screenshot is not None and page:
                self._request_screenshot(name, page)
        error.page = streak.page
        if streak.is_broken:
            streak.closed_until = now + self._probe_seconds
            self._pauses.begin(PauseKind.LAYOUT, resource, self._probe_seconds, error.reason)
        if streak.length == MAX_UNREADABLE + 1:
            self._emit_broken(resource, streak, error.reason, self._probe_seconds)

    def _emit_broken(self, resource: str, streak: _UnreadableStreak, reason: str, seconds: float) -> None:
        event = LayoutBroken(
            source=self._source,
            resource=resource,
            failures=streak.length,
            error_message=reason,
            page=streak.page,
            retry_in_seconds=seconds,
        )
        self._bus.emit(event)

    def _record_challenge(self, resource: str, error: SourceChallenged, body: bytes | None) -> None:
        """Report the first challenge at once, with its page: retrying does not solve a CAPTCHA."""
        self._challenges += 1
        if self._challenges == 1:
            self._challenge_page = self._pages.keep(f"{self._source}-challenge", body or b"", self._clock.now())
            self._bus.emit(ChallengeServed(source=self._source, resource=resource, page=self._challenge_page))
        error.page = self._challenge_page

    def _record_readable(self, resource: str, match: str, now: float) -> None:
        self._readable[resource].note(match, now)
        if self._challenges:
            self._bus.emit(ChallengeCleared(source=self._source, challenges=self._challenges))
            self._challenges = 0
        streak = self._streaks[resource]
        if streak.is_broken:
            self._pauses.end(PauseKind.LAYOUT, resource)
            self._bus.emit(LayoutRecovered(source=self._source, resource=resource, failures=streak.length))
        if streak.length:
            self._streaks[resource] = _UnreadableStreak()


def _is_inconclusive(error: BaseException | None) -> bool:
    """Return whether a query ended without information about the page: cancelled, postponed, or unanswered."""
    return error is not None and not (isinstance(error, SourceError) and kind_of(error) not in _NEUTRAL)
