"""When the watch of a match is begun anew. Pure: what is computed here is acted on by the scheduler, always."""

from enum import StrEnum

from msgspec import Struct

#: More failed looks in a row than these.
MAX_FAILURES = 10
#: A restart waits for a quiet moment, but not longer than this share of the lifetime.
PATIENCE = 0.1


class RestartReason(StrEnum):
    STALE = "stale"
    ERRORS = "errors"
    LIFETIME = "lifetime"
    #: A pause is over: what comes next begins afresh.
    COOL_DOWN = "cool_down"
    #: Somebody wants it to go on.
    ASKED = "asked"
    #: The scraper fails, and makes everything afresh.
    RECYCLED = "recycled"


class RestartPolicy(Struct, frozen=True, kw_only=True):
    lifetime_seconds: float = 6 * 3600.0
    stale_seconds: float = 300.0


class Life(Struct, frozen=True, kw_only=True):
    """What a restart is decided on; moments are monotonic."""

    began: float
    #: The last accepted poll, or the last answer within a look that is under way.
    good_at: float
    #: Failed looks in a row since the watch began.
    failures: int
    is_in_play: bool
    is_quiet: bool
    #: Whether nobody could be asked last time: then beginning anew would help nobody.
    is_held: bool = False
    #: Whether it was never begun anew.
    is_first: bool = True

    def is_stale(self, now: float, policy: RestartPolicy) -> bool:
        """Return whether a match in play was not read for too long."""
        return self.is_in_play and now - self.good_at > policy.stale_seconds


def restart_reason(life: Life, now: float, policy: RestartPolicy) -> RestartReason | None:
    """Return why the watch should be begun anew; `None` while it should not."""
    if life.is_held:
        return None
    age = now - life.began
    if life.is_stale(now, policy) and age > policy.stale_seconds:
        return RestartReason.STALE
    # A watch that was begun anew in vain is not begun anew at every eleventh failure.
    if life.failures > MAX_FAILURES and (life.is_first or age > policy.stale_seconds):
        return RestartReason.ERRORS
    if age > policy.lifetime_seconds * (1 if life.is_quiet else 1 + PATIENCE):
        return RestartReason.LIFETIME
    return None
