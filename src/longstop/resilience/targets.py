"""The hosts of one source: a breaker for each, one canary for all, and the rest that the site has asked for."""

from msgspec import Struct

from longstop.resilience.breaker import Breaker, BreakerPolicy, BreakerState, Permit, Transition


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
        breaker = self._breakers.setdefault(host, Breaker(self._policy))
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
