"""The care for one source: what its requests share, and the guards that share it, in order."""

from collections.abc import Callable
from functools import partial
from random import Random

from longstop.clock import Clock
from longstop.fetching.base import Fetcher
from longstop.fetching.circuit import Resting, TargetCircuit, host_of
from longstop.fetching.guards import Deadline, FetchPolicy, ListedHosts, NamedErrors, SomeBody
from longstop.fetching.retrying import Retrying
from longstop.resilience.breaker import BreakerPolicy, Rest, Targets, target_policy
from longstop.resilience.retry import RetryBudget, RetryPolicy, policies
from longstop.resilience.timeouts import AdaptiveTimeouts, Timeouts
from longstop.telemetry.bus import Bus

Guard = Callable[[Fetcher], Fetcher]


class SourceCare:
    """What all requests to one source share: its time-outs, retries, breakers and rest."""

    def __init__(
        self,
        policy: FetchPolicy,
        *,
        clock: Clock,
        bus: Bus,
        retry: RetryPolicy | None = None,
        breaker: BreakerPolicy | None = None,
        canary_seconds: float = 2.5,
        timeouts: Timeouts | None = None,
        random: Random | None = None,
    ) -> None:
        self.policy = policy
        self.clock = clock
        self.bus = bus
        self.retry = retry or policies().live
        self.random = random or Random()
        self.budget = RetryBudget()
        self.targets = Targets(breaker or target_policy(), canary_seconds)
        self.rest = Rest()
        self.adaptive = AdaptiveTimeouts(timeouts or Timeouts(fetch=policy.deadline_seconds))

    @property
    def timeouts(self) -> Timeouts:
        """The time-outs as they are now."""
        return self.adaptive.now

    @property
    def rejected(self) -> int:
        """How many requests were held back."""
        return self.targets.rejected + self.rest.rejected

    @property
    def retries(self) -> int:
        """How many requests were sent again."""
        return self.budget.spent

    def open_targets(self) -> tuple[str, ...]:
        """Return the hosts that are left alone now."""
        return self.targets.open_hosts(self.clock.monotonic())

    def rest_seconds(self) -> float:
        """Return for how long the site has asked to be left alone; 0 when it may be asked."""
        return self.rest.remaining(self.clock.monotonic())

    def is_open(self, host: str) -> bool:
        """Return whether a host is left alone now."""
        return host in self.open_targets()


def guarded(fetcher: Fetcher, care: SourceCare) -> Fetcher:
    """Return the fetcher behind its guards. The order is the design: what stands first sees all that follows."""
    clock, bus, dice = care.clock, care.bus, care.random.random
    guards: tuple[Guard, ...] = (
        NamedErrors,
        # What may not be asked costs no retry and no breaker.
        partial(ListedHosts, policy_now=lambda: care.policy),
        # One deadline over all attempts, too.
        partial(
            Retrying,
            policy=care.retry,
            budget=care.budget,
            is_hopeless=lambda request: care.is_open(host_of(request)),
            dice=dice,
            clock=clock,
            bus=bus,
        ),
        partial(Resting, rest=care.rest, dice=dice, clock=clock, bus=bus),
        partial(TargetCircuit, targets=care.targets, timeouts=care.adaptive, clock=clock, bus=bus),
        # One deadline for each attempt, which follows how fast the site is.
        partial(Deadline, timeouts=care.adaptive, clock=clock, bus=bus),
        SomeBody,
    )
    for guard in reversed(guards):
        fetcher = guard(fetcher)
    return fetcher
