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


class RestartPolicy(Struct, frozen=True, kw_only=True):
    lifetime_seconds: float = 6 * 3600.0
    stale_seconds: float = 300.0


class Life(Struct, frozen=True, kw_only=True):
    """What a restart is decided on; moments are monotonic."""

    began: float
    #: The last sign of progress: an accepted poll, or an answer within the look that is under way.
    progress_at: float
    #: Failed looks in a row since the watch began.
    failures: int
    is_in_play: bool
    is_quiet: bool


def restart_reason(life: Life, now: float, policy: RestartPolicy) -> RestartReason | None:
    """Return why the watch should be begun anew; `None` while it should not."""
    if life.is_in_play and now - max(life.progress_at, life.began) > policy.stale_seconds:
        return RestartReason.STALE
    if life.failures > MAX_FAILURES:
        return RestartReason.ERRORS
    age = now - life.began
    if age > policy.lifetime_seconds * (1 if life.is_quiet else 1 + PATIENCE):
        return RestartReason.LIFETIME
    return None
