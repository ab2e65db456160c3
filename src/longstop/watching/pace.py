"""How errors slow a match down, and when it may hurry again. Pure.

Five errors within a minute begin a bad spell. In it the pace falls with every few errors more, and it ends once errors
have been rare for some minutes. Rare is a share of the looks, not a number a minute: whoever looks every 20 seconds
never has five errors a minute, and would hurry again while everything still fails.
"""

import msgspec
from msgspec import Struct

MINUTE = 60.0
#: From so many errors on, looks are so many times further apart: 5, 10 and 20 s at the usual 2.5 s.
STEPS: tuple[tuple[int, float], ...] = ((20, 8.0), (10, 4.0), (5, 2.0))
FIRST_STEP, LAST_STEP = STEPS[-1][0], STEPS[0][0]
#: An error with at least so many good looks before it is an accident. One in seven looks of 2 s is still five a minute:
#: what begins a spell must not count as rare within it, or the pace would swing to and fro.
GOOD_BETWEEN_ACCIDENTS = 7


class Pace(Struct, frozen=True, kw_only=True):
    """The errors of a match as far as they matter for its pace."""

    #: The moments of the errors within the last minute, as many as matter.
    recent: tuple[float, ...] = ()
    #: Errors of the bad spell; 0 when there is none.
    errors: int = 0
    #: When the spell was last seen to be bad.
    bad_at: float = 0.0
    #: Good looks since the last error.
    good: int = 0

    def after(self, now: float, *, errors: int, calm_after: float) -> "Pace":
        """Return the pace after a look that met so many errors, be it good in the end or not."""
        if not errors:
            calmed = self.calmed(now, calm_after)
            return msgspec.structs.replace(calmed, good=self.good + 1)
        latest = (*self.recent, *[now] * min(errors, LAST_STEP))
        recent = tuple(at for at in latest if now - at < MINUTE)[-LAST_STEP:]
        if not self.errors:
            total, bad_at = (len(recent) if len(recent) >= FIRST_STEP else 0), now
        elif self.good >= GOOD_BETWEEN_ACCIDENTS:
            total, bad_at = self.errors, self.bad_at
        else:
            total, bad_at = self.errors + errors, now
        return Pace(recent=recent, errors=total, bad_at=bad_at)

    def calmed(self, now: float, calm_after: float) -> "Pace":
        """Return the pace with a bad spell ended, if it has been calm for long enough."""
        if self.errors and now - self.bad_at >= calm_after:
            return Pace(good=self.good)
        return self

    @property
    def factor(self) -> float:
        """Return how many times further apart the looks are than usual."""
        return next((factor for errors, factor in STEPS if self.errors >= errors), 1.0)
