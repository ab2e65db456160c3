"""A breaker leaves alone what keeps failing, and tries it again with care. One engine; policies make its instances."""

from enum import StrEnum

from msgspec import Struct

from longstop.errors import IllegalTransition
from longstop.resilience.counting import Consecutive, Share

#: However many good answers it takes to close, no more than these are awaited at one time.
MAX_TARGET_PROBES = 5


class BreakerState(StrEnum):
    #: All may pass.
    CLOSED = "closed"
    #: Nobody may pass.
    OPEN = "open"
    #: A few may try.
    HALF_OPEN = "half_open"


TRANSITIONS: dict[BreakerState, frozenset[BreakerState]] = {
    BreakerState.CLOSED: frozenset({BreakerState.OPEN}),
    BreakerState.OPEN: frozenset({BreakerState.HALF_OPEN}),
    BreakerState.HALF_OPEN: frozenset({BreakerState.OPEN, BreakerState.CLOSED}),
}


class BreakerPolicy(Struct, frozen=True, kw_only=True):
    """When to open, for how long, and what it takes to close."""

    rule: Consecutive | Share
    open_seconds: float
    successes_to_close: int = 1
    #: How many may try at one time while half open.
    max_probes: int = 1
    #: A success that took longer counts as a failure; `None` for any length.
    slow_seconds: float | None = None

    def is_slow(self, seconds: float) -> bool:
        return self.slow_seconds is not None and seconds > self.slow_seconds


def target_policy(
    threshold: int = 5, open_seconds: float = 60.0, successes: int = 5, slow_seconds: float | None = 8.0
) -> BreakerPolicy:
    """Return the policy for a host to which connections fail (FR-003)."""
    return BreakerPolicy(
        rule=Consecutive(threshold=threshold),
        open_seconds=open_seconds,
        successes_to_close=successes,
        max_probes=min(successes, MAX_TARGET_PROBES),
        slow_seconds=slow_seconds,
    )


def match_policy(threshold: int = 5, open_seconds: float = 300.0) -> BreakerPolicy:
    """Return the policy for a match that is refused or cannot be read (US2.2)."""
    return BreakerPolicy(rule=Consecutive(threshold=threshold, within_seconds=600.0), open_seconds=open_seconds)


def source_policy(open_seconds: float = 900.0) -> BreakerPolicy:
    """Return the policy for a site that refuses, or cannot be read, too often (CAP-9)."""
    return BreakerPolicy(
        rule=Share(window_seconds=600.0, min_attempts=30, share=0.35),
        open_seconds=open_seconds,
        successes_to_close=3,
        max_probes=3,
    )


class Transition(Struct, frozen=True, kw_only=True):
    """A move of a breaker, for telling."""

    to: BreakerState
    reason: str
    #: For `OPEN`: how long it stays so.
    seconds: float = 0.0
    #: For `CLOSED`: how many were turned away since it opened first.
    rejected: int = 0


class Permit(Struct, frozen=True, kw_only=True):
    """Leave to try once; whoever has it says how it went, or gives it back."""

    generation: int
    number: int
    #: The move that asking for this permit caused: from open to half open, when its time was over.
    transition: Transition | None = None


class Breaker:
    """The engine. Every call takes the moment, which is monotonic, whether or not this one needs it.

    Each move begins a new generation; a permit of an older one changes nothing, so that a late answer from before
    can neither close nor open it.
    """

    def __init__(self, policy: BreakerPolicy) -> None:
        self.policy = policy
        #: How many were ever turned away.
        self.rejected = 0
        self._state = BreakerState.CLOSED
        self._generation = 0
        self._permits = 0
        self._count = policy.rule.count()
        self._opens_until = 0.0
        self._rejected_before = 0
        self._probes: set[int] = set()
        self._successes = 0

    def state(self, now: float) -> BreakerState:
        return BreakerState.HALF_OPEN if self._is_rested(now) else self._state

    def remaining(self, now: float) -> float:
        """Return the seconds until somebody may try again; 0 when that is now."""
        return max(0.0, self._opens_until - now) if self._state is BreakerState.OPEN else 0.0

    def permit(self, now: float) -> Permit | None:
        """Return leave to try, or `None`: turned away, and counted."""
        transition = self._half_open("its time is over") if self._is_rested(now) else None
        is_full = self._state is BreakerState.HALF_OPEN and len(self._probes) >= self.policy.max_probes
        if self._state is BreakerState.OPEN or is_full:
            self.rejected += 1
            return None
        self._permits += 1
        if self._state is BreakerState.HALF_OPEN:
            self._probes.add(self._permits)
        return Permit(generation=self._generation, number=self._permits, transition=transition)

    def succeed(self, permit: Permit, now: float, seconds: float = 0.0) -> Transition | None:
        """Take note of a good answer, and of how long it took."""
        if self.policy.is_slow(seconds):
            return self.fail(permit, now)
        if not self._is_current(permit):
            return None
        if self._state is BreakerState.CLOSED:
            self._count.succeed(now)
            return None
        self._probes.discard(permit.number)
        self._successes += 1
        return self._close() if self._successes >= self.policy.successes_to_close else None

    def fail(self, permit: Permit, now: float) -> Transition | None:
        """Take note of a failure; a single one while half open opens it again for the whole time."""
        if not self._is_current(permit):
            return None
        if self._state is BreakerState.HALF_OPEN:
            return self._open(now, "a probe failed")
        reason = self._count.fail(now)
        return None if reason is None else self._open(now, reason)

    def release(self, permit: Permit, now: float) -> None:
        """Give a permit back of which there is nothing to say; after `succeed` or `fail` this does nothing."""
        if self._is_current(permit):
            self._probes.discard(permit.number)

    def half_open(self, now: float) -> Transition | None:
        """Let a few try before the time is over, since there is good news from elsewhere."""
        return self._half_open("a canary came through") if self._state is BreakerState.OPEN else None

    def _is_rested(self, now: float) -> bool:
        return self._state is BreakerState.OPEN and now >= self._opens_until

    def _is_current(self, permit: Permit) -> bool:
        is_of_now = permit.generation == self._generation
        return is_of_now and (self._state is BreakerState.CLOSED or permit.number in self._probes)

    def _open(self, now: float, reason: str) -> Transition:
        if self._state is BreakerState.CLOSED:
            self._rejected_before = self.rejected
        self._move(BreakerState.OPEN)
        self._opens_until = now + self.policy.open_seconds
        return Transition(to=BreakerState.OPEN, reason=reason, seconds=self.policy.open_seconds)

    def _half_open(self, reason: str) -> Transition:
        self._move(BreakerState.HALF_OPEN)
        return Transition(to=BreakerState.HALF_OPEN, reason=reason)

    def _close(self) -> Transition:
        self._move(BreakerState.CLOSED)
        self._count = self.policy.rule.count()
        rejected = self.rejected - self._rejected_before
        return Transition(to=BreakerState.CLOSED, reason=f"{self.policy.successes_to_close} good", rejected=rejected)

    def _move(self, to: BreakerState) -> None:
        if to not in TRANSITIONS[self._state]:
            raise IllegalTransition(f"a breaker cannot go from {self._state} to {to}")
        self._state = to
        self._generation += 1
        self._probes.clear()
        self._successes = 0
