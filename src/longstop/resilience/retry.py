"""Whether to ask again, and after how long. Policies by name, and a budget that all requests of a source share."""

from msgspec import Struct

from longstop.errors import FetchError
from longstop.resilience.taxonomy import FailureKind, meaning_of

#: On top of every delay, up to this share of it: those who failed together must not come back together.
JITTER_SHARE = 0.25
#: What a site asks for by Retry-After counts within these bounds, in seconds.
MIN_RETRY_AFTER, MAX_RETRY_AFTER = 1.0, 900.0

_LIVE_ATTEMPTS, _LIVE_SECONDS = 3, 45.0
_CAPTURE_ATTEMPTS = 4


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How often a request is sent, and how the waits between grow."""

    #: How often it is sent in all, the first time included.
    attempts: int
    base_seconds: float = 1.0
    factor: float = 2.0
    max_delay_seconds: float = 16.0
    #: From the first attempt to the end of the last; `None` for any length.
    total_seconds: float | None = None

    def delay(self, tried: int) -> float:
        """Return the stated delay after so many attempts."""
        # The exponent is capped, so that no count overflows a float.
        return min(self.max_delay_seconds, self.base_seconds * self.factor ** min(tried - 1, 64))


class Policies(Struct, frozen=True, kw_only=True):
    """The policies by name."""

    network: RetryPolicy
    live: RetryPolicy
    capture: RetryPolicy


def policies(max_attempts: int = 5, base_seconds: float = 1.0, max_delay_seconds: float = 16.0) -> Policies:
    """Return the three policies that the settings make.

    `max_attempts` counts the *retries*, as FR-002 words it: five delays of 1, 2, 4, 8 and 16 s need six attempts to
    stand between.
    """

    def policy(attempts: int, base: float, total: float | None = None) -> RetryPolicy:
        return RetryPolicy(
            attempts=min(attempts, max_attempts + 1),
            base_seconds=base,
            max_delay_seconds=max_delay_seconds,
            total_seconds=total,
        )

    return Policies(
        network=policy(max_attempts + 1, base_seconds),
        live=policy(_LIVE_ATTEMPTS, base_seconds, _LIVE_SECONDS),
        capture=policy(_CAPTURE_ATTEMPTS, 2 * base_seconds),
    )


def next_delay(policy: RetryPolicy, tried: int, elapsed: float, error: Exception, jitter: float) -> float | None:
    """Return the seconds to wait before a request is sent again, after so many attempts; `None` to give up.

    A refusal is not met with the same request a second later, also when the site has said after how long: then all
    of the source rests, and the next tick goes on. `jitter` lies between 0 and 1 and never shortens the wait.
    """
    if tried >= policy.attempts or not _may_be_asked_again(error):
        return None
    asked = asked_rest(error)
    wait = (policy.delay(tried) if asked is None else asked) * (1.0 + JITTER_SHARE * jitter)
    is_too_late = policy.total_seconds is not None and elapsed + wait >= policy.total_seconds
    return None if is_too_late else wait


def asked_rest(error: Exception) -> float | None:
    """Return for how long an answer asks to be left alone, within bounds; `None` when it does not."""
    if not isinstance(error, FetchError) or error.retry_after_seconds is None:
        return None
    return min(max(error.retry_after_seconds, MIN_RETRY_AFTER), MAX_RETRY_AFTER)


def _may_be_asked_again(error: Exception) -> bool:
    meaning = meaning_of(error)
    match meaning.kind:
        case FailureKind.CONNECTION | FailureKind.CONTENT:
            return meaning.is_soft
        case FailureKind.REFUSAL | FailureKind.GONE | FailureKind.HELD | FailureKind.OURS:
            return False
