"""From a breaker's moves to telemetry, the same for all three kinds."""

from longstop.resilience.breaker import BreakerState, Transition
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.sources import CircuitClosed, CircuitHalfOpened, CircuitOpened


def tell_breaker(
    bus: Bus, scope: str, subject: str, transition: Transition, *, last: str = "", match_id: int | None = None
) -> None:
    """Report a move; `last` is what came just before it."""
    match transition.to:
        case BreakerState.OPEN:
            reason = f"{transition.reason}, the last: {last}" if last else transition.reason
            seconds = transition.seconds
            bus.emit(CircuitOpened(scope=scope, subject=subject, reason=reason, seconds=seconds, match_id=match_id))
        case BreakerState.HALF_OPEN:
            bus.emit(CircuitHalfOpened(scope=scope, subject=subject, match_id=match_id))
        case BreakerState.CLOSED:
            rejected = transition.rejected
            bus.emit(CircuitClosed(scope=scope, subject=subject, rejected=rejected, match_id=match_id))
