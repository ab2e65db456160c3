"""What an operator has chosen for all watches."""

from msgspec import Struct

from longstop.resilience.breaker import BreakerPolicy, match_policy
from longstop.watching.cadence import Cadence
from longstop.watching.restarts import RestartPolicy

_MATCH_POLICY = match_policy()


class WatchRules(Struct, frozen=True, kw_only=True):
    """How often to look, when to begin anew, when to pause, what to tell."""

    cadence: Cadence = Cadence()
    restarts: RestartPolicy = RestartPolicy()
    breaker: BreakerPolicy = _MATCH_POLICY
    #: Errors of one match within a minute; more than these are told.
    max_errors: int = 10
    #: Words that make a match important when its title has one of them; in lower case.
    important: tuple[str, ...] = ()

    def is_important(self, title: str) -> bool:
        return any(word in title.lower() for word in self.important)
