"""Circuit breakers: stop sending what keeps failing, and probe before resuming.

From the bottom up: rules that count failures, one breaker, and the breakers of a source's hosts. Memory does not grow
with traffic. Every `now` is monotonic and passed by the caller.
"""

from collections import deque
from enum import StrEnum

from msgspec import Struct

from longstop.errors import IllegalTransition
from longstop.model.request_pause import PauseKind, SourcePauses

#: Slices of a window in which a share is counted, so that memory does not depend on traffic.
SLICES = 20
#: Limit of concurrent probes, even if it takes more successes to close.
MAX_TARGET_PROBES = 5
#: The reason why a breaker admits probes early when an operator wants to see whether a site works again.
ASKED = "an operator asked for it"


class Consecutive(Struct, frozen=True, kw_only=True):
    """Opens after consecutive failures."""

    threshold: int
    #: The first and the last of them must be within this time; `None` for any time.
    within_seconds: float | None = None

    def counter(self) -> "_Streak":
        return _Streak(self)


class FailureShare(Struct, frozen=True, kw_only=True):
    """Opens when the share of failed attempts in a sliding window is too large."""

    window_seconds: float
    #: Fewer attempts do not open the breaker.
    min_attempts: int
    share: float

    def counter(self) -> "_Slices":
        return _Slices(self)


class _Streak:
    """The state of a rule: `fail` returns the reason to open, or `None`."""

    def __init__(self, rule: Consecutive) -> None:
        self._rule = rule
        self._failed_at: deque[float] = deque(maxlen=rule.threshold)

    def succeed(self, now: float) -> None:
        self._failed_at.clear()

    def fail(self, now: float) -> str | None:
        self._failed_at.append(now)
        threshold, within = self._rule.threshold, self._rule.within_seconds
        if len(self._failed_at) < threshold or (within is not None and now - self._failed_at[0] > within):
            return None
        return f"{threshold} failures in a row"


class _Slice(Struct):
    number: int
    attempts: int = 0
    failures: int = 0


class _Slices:
    def __init__(self, rule: FailureShare) -> None:
        self._rule = rule
        self._slices: deque[_Slice] = deque(maxlen=SLICES)

    def succeed(self, now: float) -> None:
        self._slice(now).attempts += 1

    def fail(self, now: float) -> str | None:
        newest = self._slice(now)
        newest.attempts += 1
        newest.failures += 1
        counted = [each for each in self._slices if each.number > newest.number - SLICES]
        attempts = sum(each.attempts for each in counted)
        failures = sum(each.failures for each in counted)
        if attempts < self._rule.min_attempts or failures < self._rule.share * attempts:
            return None
        return f"{failures} of {attempts} attempts failed within {self._rule.window_seconds:g} s"

    def _slice(self, now: float) -> _Slice:
        number = int(now * SLICES // self._rule.window_seconds)
        if not self._slices or self._slices[-1].number != number:
            self._slices.append(_Slice(number))
        return self._slices[-1]


class BreakerState(StrEnum):
    #: All requests are sent.
    CLOSED = "closed"
    #: No requests are sent.
    OPEN = "open"
    #: A few probes are sent.
    HALF_OPEN = "half_open"


TRANSITIONS: dict[BreakerState, frozenset[BreakerState]] = {
    BreakerState.CLOSED: frozenset({BreakerState.OPEN}),
    BreakerState.OPEN: frozenset({BreakerState.HALF_OPEN}),
    BreakerState.HALF_OPEN: frozenset({BreakerState.OPEN, BreakerState.CLOSED}),
}


class BreakerPolicy(Struct, frozen=True, kw_only=True):
    """When to open, for how long, and what it takes to close."""

    rule: Consecutive | FailureShare
    open_seconds: float
    successes_to_close: int = 1
    #: Concurrent probes while half open.
    max_probes: int = 1
    #: A slower success counts as a failure; `None` for no limit.
    slow_seconds: float | None = None

    def is_slow(self, seconds: float) -> bool:
        return self.slow_seconds is not None and seconds > self.slow_seconds


def target_policy(
    threshold: int = 5, open_seconds: float = 60.0, successes: int = 5, slow_seconds: float | None = 8.0
) -> BreakerPolicy:
    """Return the policy for connections to a host (FR-003)."""
    return BreakerPolicy(
        rule=Consecutive(threshold=threshold),
        open_seconds=open_seconds,
        successes_to_close=successes,
        max_probes=min(successes, MAX_TARGET_PROBES),
        slow_seconds=slow_seconds,
    )


def match_policy(threshold: int = 5, open_seconds: float = 300.0) -> BreakerPolicy:
    """Return the policy for a match whose pages are refused or cannot be parsed (US2.2)."""
    return BreakerPolicy(rule=Consecutive(threshold=threshold, within_seconds=600.0), open_seconds=open_seconds)


def source_policy(open_seconds: float = 900.0) -> BreakerPolicy:
    """Return the policy for a site that refuses or serves unparsable pages too often (CAP-9)."""
    return BreakerPolicy(
        rule=FailureShare(window_seconds=600.0, min_attempts=30, share=0.35),
        open_seconds=open_seconds,
        successes_to_close=3,
        max_probes=3,
    )


class Transition(Struct, frozen=True, kw_only=True):
    #: What the breaker protects: a host, a match or a source.
    subject: str
    to: BreakerState
    reason: str
    #: For `OPEN`: for how long.
    seconds: float = 0.0
    #: For `CLOSED`: requests rejected since it opened.
    rejected: int = 0

    def explained(self, last: str) -> str:
        """Return the reason, with the failure that caused it if that is known."""
        return f"{self.reason}, the last: {last}" if last else self.reason

    def store(self, pauses: SourcePauses, kind: PauseKind, last: str = "") -> None:
        """Store the pause that begins or ends."""
        match self.to:
            case BreakerState.OPEN:
                pauses.begin(kind, self.subject, self.seconds, self.explained(last))
            case BreakerState.HALF_OPEN:
                pauses.cut_short(kind, self.subject)
            case BreakerState.CLOSED:
                pauses.end(kind, self.subject)


class Permit(Struct, frozen=True, kw_only=True):
    """Permission for one attempt. The caller reports its outcome, or releases it."""

    number: int
    #: Set if granting it moved the breaker from open to half open.
    transition: Transition | None = None


class Breaker:
    """One breaker.

    A permit from before the latest transition is ignored, so that a late response can neither close nor open the
    breaker.
    """

    def __init__(self, policy: BreakerPolicy, subject: str) -> None:
        self.policy = policy
        self._subject = subject
        #: Requests ever rejected.
        self.rejected = 0
        self._state = BreakerState.CLOSED
        #: Permits ever granted, and those of them before the latest transition.
        self._permits = 0
        self._old_permits = 0
        self._failures = policy.rule.counter()
        self._open_until = 0.0
        self._rejected_before = 0
        self._probes: set[int] = set()
        self._successes = 0

    def state(self, now: float) -> BreakerState:
        return BreakerState.HALF_OPEN if self._is_due(now) else self._state

    def remaining(self, now: float) -> float:
        """Return the seconds until a probe is admitted; 0 if one is admitted now."""
        return max(0.0, self._open_until - now) if self._state is BreakerState.OPEN else 0.0

    def permit(self, now: float) -> Permit | None:
        """Return a permit, or `None` if the request is rejected."""
        transition = self.half_open("the pause is over") if self._is_due(now) else None
        is_full = self._state is BreakerState.HALF_OPEN and len(self._probes) >= self.policy.max_probes
        if self._state is BreakerState.OPEN or is_full:
            self.rejected += 1
            return None
        self._permits += 1
        if self._state is BreakerState.HALF_OPEN:
            self._probes.add(self._permits)
        return Permit(number=self._permits, transition=transition)

    def succeed(self, permit: Permit, now: float, seconds: float = 0.0) -> Transition | None:
        """Record a success and its duration."""
        if self.policy.is_slow(seconds):
            return self.fail(permit, now)
        if not self._is_current(permit):
            return None
        if self._state is BreakerState.CLOSED:
            self._failures.succeed(now)
            return None
        self._probes.discard(permit.number)
        self._successes += 1
        return self._close() if self._successes >= self.policy.successes_to_close else None

    def fail(self, permit: Permit, now: float) -> Transition | None:
        """Record a failure. While half open, one is enough to open the breaker for the full time."""
        if not self._is_current(permit):
            return None
        if self._state is BreakerState.HALF_OPEN:
            return self._open(now, "a probe failed")
        reason = self._failures.fail(now)
        return None if reason is None else self._open(now, reason)

    def release(self, permit: Permit) -> None:
        """Return a permit without an outcome; does nothing after `succeed` or `fail`."""
        if self._is_current(permit):
            self._probes.discard(permit.number)

    def half_open(self, reason: str) -> Transition | None:
        """Admit probes early."""
        return self._change(BreakerState.HALF_OPEN, reason) if self._state is BreakerState.OPEN else None

    def reopen(self, now: float, seconds: float, reason: str) -> Transition:
        """Open a new breaker for what is left of an earlier run's pause, at most for the full time."""
        left = min(max(0.0, seconds), self.policy.open_seconds)
        self._open_until = now + left
        return self._change(BreakerState.OPEN, reason, seconds=left)

    def _is_due(self, now: float) -> bool:
        return self._state is BreakerState.OPEN and now >= self._open_until

    def _is_current(self, permit: Permit) -> bool:
        is_newest = permit.number > self._old_permits
        return is_newest and (self._state is BreakerState.CLOSED or permit.number in self._probes)

    def _open(self, now: float, reason: str) -> Transition:
        if self._state is BreakerState.CLOSED:
            self._rejected_before = self.rejected
        self._open_until = now + self.policy.open_seconds
        return self._change(BreakerState.OPEN, reason, seconds=self.policy.open_seconds)

    def _close(self) -> Transition:
        self._failures = self.policy.rule.counter()
        reason = f"{self.policy.successes_to_close} successful probes"
        return self._change(BreakerState.CLOSED, reason, rejected=self.rejected - self._rejected_before)

    def _change(self, to: BreakerState, reason: str, seconds: float = 0.0, rejected: int = 0) -> Transition:
        if to not in TRANSITIONS[self._state]:
            raise IllegalTransition(f"a breaker cannot go from {self._state} to {to}")
        self._state = to
        self._old_permits = self._permits
        self._probes.clear()
        self._successes = 0
        return Transition(subject=self._subject, to=to, reason=reason, seconds=seconds, rejected=rejected)


class HostPermit(Struct, frozen=True, kw_only=True):
    """Permission for one request to a host, and the transitions that granting it caused."""

    host: str
    #: `None` for the canary, which is sent although the circuit is open.
    permit: Permit | None = None
    transitions: tuple[Transition, ...] = ()
    #: Whether it is a canary or a probe: its failure is expected and proves nothing new.
    is_trial: bool = False


class HostBreakers:
    """The breakers of a source's hosts.

    While circuits are open, one request every `canary_seconds` is sent anyway. If this canary succeeds, the network
    is back: the circuits of all hosts become half open, not only that of its own host.
    """

    def __init__(self, policy: BreakerPolicy, canary_seconds: float) -> None:
        self._policy = policy
        self._canary_seconds = canary_seconds
        self._breakers: dict[str, Breaker] = {}
        self._canary_due_at = 0.0
        self._canary: HostPermit | None = None

    def open_hosts(self, now: float) -> tuple[str, ...]:
        return tuple(host for host, each in self._breakers.items() if each.state(now) is BreakerState.OPEN)

    def remaining(self, host: str, now: float) -> float:
        """Return the seconds until a probe to the host is admitted; 0 if one is admitted now."""
        return self._breakers[host].remaining(now) if host in self._breakers else 0.0

    def enter(self, host: str, now: float) -> HostPermit | None:
        """Return a permit, or `None` if the request is rejected."""
        breaker = self._breakers.get(host) or self._breakers.setdefault(host, Breaker(self._policy, host))
        if breaker.state(now) is BreakerState.OPEN and self._canary is None and now >= self._canary_due_at:
            self._canary_due_at = now + self._canary_seconds
            self._canary = HostPermit(host=host, is_trial=True)
            return self._canary
        permit = breaker.permit(now)
        if permit is None:
            return None
        is_trial = breaker.state(now) is not BreakerState.CLOSED
        transitions = self._changed(permit.transition, now)
        return HostPermit(host=host, permit=permit, transitions=transitions, is_trial=is_trial)

    def succeed(self, permit: HostPermit, now: float, seconds: float) -> tuple[Transition, ...]:
        """Record a response; return the transitions it caused."""
        if permit.permit is not None:
            return self._changed(self._breakers[permit.host].succeed(permit.permit, now, seconds), now)
        self.release(permit)
        return () if self._policy.is_slow(seconds) else self._half_open_all(permit.host, now, seconds)

    def fail(self, permit: HostPermit, now: float) -> tuple[Transition, ...]:
        """Record a failure; return the transitions it caused. That of a canary causes none."""
        if permit.permit is not None:
            return self._changed(self._breakers[permit.host].fail(permit.permit, now), now)
        self.release(permit)
        return ()

    def reopen(self, host: str, now: float, seconds: float, reason: str) -> tuple[Transition, ...]:
        """Open the circuit of a host for what is left of an earlier run's pause."""
        breaker = self._breakers[host] = Breaker(self._policy, host)
        return self._changed(breaker.reopen(now, seconds, reason), now)

    def release(self, permit: HostPermit) -> None:
        """Return a permit without an outcome; does nothing after `succeed` or `fail`."""
        if permit.permit is not None:
            self._breakers[permit.host].release(permit.permit)
        elif permit is self._canary:
            self._canary = None

    def _half_open_all(self, canary_host: str, now: float, seconds: float) -> tuple[Transition, ...]:
        """Admit probes to all hosts; for its own host the canary counts as the first successful one."""
        transitions: list[Transition] = []
        for host, breaker in self._breakers.items():
            changed = self._changed(breaker.half_open("a canary succeeded"), now)
            transitions += changed
            permit = breaker.permit(now) if changed and host == canary_host else None
            if permit is not None:
                transitions += self._changed(breaker.succeed(permit, now, seconds), now)
        return tuple(transitions)

    def _changed(self, transition: Transition | None, now: float) -> tuple[Transition, ...]:
        if transition is None:
            return ()
        if transition.to is BreakerState.OPEN and now >= self._canary_due_at:
            self._canary_due_at = now + self._canary_seconds
        return (transition,)
