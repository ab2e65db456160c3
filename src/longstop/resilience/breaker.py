"""Breakers stop asking what keeps failing, and try it again with care.

From the bottom up: when failures are too many, the breaker of one thing, and the breakers of one source's hosts with
the rest that the site has asked for. Nothing here grows with the traffic, and every moment is monotonic and comes from
the caller.
"""

from collections import deque
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from longstop.errors import IllegalTransition

#: A share is counted in this many slices of its window, so that a busy site costs no more memory than a quiet one.
SLICES = 20
#: However many good answers it takes to close, no more than these are awaited at one time.
MAX_TARGET_PROBES = 5


class Count(Protocol):
    """What a rule remembers of what happened."""

    def succeed(self, now: float) -> None: ...

    def fail(self, now: float) -> str | None:
        """Count a failure; return why that is one too many, or `None`."""
        ...


class Consecutive(Struct, frozen=True, kw_only=True):
    """So many failures with no success between them."""

    threshold: int
    #: How far the first and the last of them may lie apart; `None` for any distance.
    within_seconds: float | None = None

    def count(self) -> Count:
        return _Streak(self)


class Share(Struct, frozen=True, kw_only=True):
    """Too large a share of all attempts within a window that moves along."""

    window_seconds: float
    #: Fewer than these say nothing.
    min_attempts: int
    share: float

    def count(self) -> Count:
        return _Slices(self)


class _Streak:
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


class _Slice:
    def __init__(self, number: int) -> None:
        self.number = number
        self.attempts = 0
        self.failures = 0


class _Slices:
    def __init__(self, rule: Share) -> None:
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


class Move(Struct, frozen=True, kw_only=True):
    """What became of the breaker of one host."""

    host: str
    transition: Transition


class Pass(Struct, frozen=True, kw_only=True):
    """Leave to ask a host once, and what asking for it moved."""

    host: str
    #: `None` for the canary, which goes where nobody else may.
    permit: Permit | None = None
    moves: tuple[Move, ...] = ()
    #: Whether it is a canary's or a probe's: then a failure says only what is known.
    is_trial: bool = False


class Targets:
    """Decides whether a host may be asked. Every moment is monotonic and comes from the caller.

    While a host is left alone, the next request that comes along after `canary_seconds` goes to it all the same. When
    it comes back well, the way to the site is open again: all hosts are tried, not only this one.
    """

    def __init__(self, policy: BreakerPolicy, canary_seconds: float) -> None:
        self._policy = policy
        self._canary_seconds = canary_seconds
        self._breakers: dict[str, Breaker] = {}
        self._canary_due_at = 0.0
        self._canary: Pass | None = None

    @property
    def rejected(self) -> int:
        """How many requests were ever turned away."""
        return sum(breaker.rejected for breaker in self._breakers.values())

    def open_hosts(self, now: float) -> tuple[str, ...]:
        return tuple(host for host, each in self._breakers.items() if each.state(now) is BreakerState.OPEN)

    def remaining(self, host: str, now: float) -> float:
        """Return the seconds until a host may be tried again; 0 when that is now."""
        return self._breakers[host].remaining(now) if host in self._breakers else 0.0

    def enter(self, host: str, now: float) -> Pass | None:
        """Return leave to ask, or `None`: turned away, and counted."""
        breaker = self._breakers.get(host) or self._breakers.setdefault(host, Breaker(self._policy))
        if breaker.state(now) is BreakerState.OPEN and self._canary is None and now >= self._canary_due_at:
            self._canary_due_at = now + self._canary_seconds
            self._canary = Pass(host=host, is_trial=True)
            return self._canary
        permit = breaker.permit(now)
        if permit is None:
            return None
        is_trial = breaker.state(now) is not BreakerState.CLOSED
        return Pass(host=host, permit=permit, moves=self._moved(host, permit.transition, now), is_trial=is_trial)

    def succeed(self, leave: Pass, now: float, seconds: float) -> tuple[Move, ...]:
        """Take note of an answer; return what that moved."""
        if leave.permit is not None:
            return self._moved(leave.host, self._breakers[leave.host].succeed(leave.permit, now, seconds), now)
        self.release(leave, now)
        return () if self._policy.is_slow(seconds) else self._wake(leave.host, now, seconds)

    def fail(self, leave: Pass, now: float) -> tuple[Move, ...]:
        """Take note of a failure; return what that moved. A canary's says only what is known."""
        if leave.permit is not None:
            return self._moved(leave.host, self._breakers[leave.host].fail(leave.permit, now), now)
        self.release(leave, now)
        return ()

    def release(self, leave: Pass, now: float) -> None:
        """Give back leave of which there is nothing to say; after `succeed` or `fail` this does nothing."""
        if leave.permit is not None:
            self._breakers[leave.host].release(leave.permit, now)
        elif leave is self._canary:
            self._canary = None

    def _wake(self, canarys_host: str, now: float, seconds: float) -> tuple[Move, ...]:
        """Let all hosts be tried; to its own the canary was the first good answer."""
        moves: list[Move] = []
        for host, breaker in self._breakers.items():
            woken = self._moved(host, breaker.half_open(now), now)
            moves += woken
            permit = breaker.permit(now) if woken and host == canarys_host else None
            if permit is not None:
                moves += self._moved(host, breaker.succeed(permit, now, seconds), now)
        return tuple(moves)

    def _moved(self, host: str, transition: Transition | None, now: float) -> tuple[Move, ...]:
        if transition is None:
            return ()
        if transition.to is BreakerState.OPEN and now >= self._canary_due_at:
            self._canary_due_at = now + self._canary_seconds
        return (Move(host=host, transition=transition),)


class Rest:
    """For how long the site has asked to be left alone; the longest wish counts, for all."""

    def __init__(self) -> None:
        self._until = 0.0
        #: How many requests were ever turned away.
        self.rejected = 0

    def ask(self, seconds: float, now: float) -> None:
        """Take note of a wish."""
        self._until = max(self._until, now + seconds)

    def hold(self, now: float) -> float:
        """Return for how long one who comes now is held back, and count it; 0 when the site may be asked."""
        self.rejected += now < self._until
        return self.remaining(now)

    def remaining(self, now: float) -> float:
        return max(0.0, self._until - now)
