"""Whether and when to retry a request."""

from msgspec import Struct

from longstop.errors import FetchError
from longstop.resilience.taxonomy import FailureKind, meaning_of

#: Up to this share is added to every delay, so that requests that failed together are not retried together.
JITTER_SHARE = 0.25
#: Bounds of Retry-After, in seconds.
MIN_RETRY_AFTER, MAX_RETRY_AFTER = 1.0, 900.0

_LIVE_ATTEMPTS, _LIVE_SECONDS = 3, 45.0
_CAPTURE_ATTEMPTS = 4


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How often a request is sent, with exponential back-off."""

    #: Attempts in total, including the first.
    attempts: int
    base_seconds: float = 1.0
    factor: float = 2.0
    max_delay_seconds: float = 16.0
    #: From the start of the first attempt to the end of the last; `None` for no limit.
    total_seconds: float | None = None

    def delay(self, tried: int) -> float:
        """Return the delay after `tried` attempts, without jitter."""
        # The exponent is capped, so that it cannot overflow a float.
        return min(self.max_delay_seconds, self.base_seconds * self.factor ** min(tried - 1, 64))


class Policies(Struct, frozen=True, kw_only=True):
    network: RetryPolicy
    live: RetryPolicy
    capture: RetryPolicy


def policies(max_attempts: int = 5, base_seconds: float = 1.0, max_delay_seconds: float = 16.0) -> Policies:
    """Return the policies for the given settings.

    `max_attempts` counts the *retries*, as in FR-002: five delays of 1, 2, 4, 8 and 16 s lie between six attempts.
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
    """Return the seconds to wait before the next attempt; `None` to give up.

    A refusal is never retried, even with Retry-After: then the whole source is paused, and the next poll goes on.
    `jitter` is between 0 and 1 and never shortens the wait.
    """
    if tried >= policy.attempts or not _is_retryable(error):
        return None
    requested = requested_wait(error)
    wait = (policy.delay(tried) if requested is None else requested) * (1.0 + JITTER_SHARE * jitter)
    is_too_late = policy.total_seconds is not None and elapsed + wait >= policy.total_seconds
    return None if is_too_late else wait


def requested_wait(error: Exception) -> float | None:
    """Return the Retry-After of a response, within bounds; `None` if it has none."""
    if not isinstance(error, FetchError) or error.retry_after_seconds is None:
        return None
    return min(max(error.retry_after_seconds, MIN_RETRY_AFTER), MAX_RETRY_AFTER)


def _is_retryable(error: Exception) -> bool:
    meaning = meaning_of(error)
    match meaning.kind:
        case FailureKind.CONNECTION | FailureKind.CONTENT:
            return meaning.is_soft
        case _:
            return False
