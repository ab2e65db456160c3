"""How long a dead child stays dead: decided from its history alone."""

from msgspec import Struct

from longstop.supervision.exits import Exit


class RestartPolicy(Struct, frozen=True, kw_only=True):
    """The first restart is immediate; a child that keeps dying young waits 1, 2, 4 … 60 s before the next one."""

    #: A child that lived this many seconds has come up well: its next death counts as the first.
    settled_after: float = 30.0
    #: The wait before the second restart in a row, in seconds; each further one doubles it.
    first_wait: float = 1.0
    longest_wait: float = 60.0
    #: The longest wait for whoever holds the data directory: it may let go at any time.
    longest_wait_for_lock: float = 10.0

    def deaths_in_a_row(self, before: int, lived_seconds: float) -> int:
        """Return the count with this death included."""
        return 1 if lived_seconds >= self.settled_after else before + 1

    def wait_after(self, deaths: int, exit_code: int = Exit.FAILED) -> float:
        """Return the seconds until the next start, after this many deaths in a row."""
        if exit_code == Exit.SETTINGS:  # nothing but a person can mend it
            return self.longest_wait
        if exit_code == Exit.LOCKED:  # whoever holds it needs a moment at least
            return min(self.longest_wait_for_lock, self._doubled(deaths - 1))
        return min(self.longest_wait, self._doubled(deaths - 2)) if deaths > 1 else 0.0

    def _doubled(self, times: int) -> float:
        # The exponent is capped too: a child that dies for weeks must not overflow a float.
        return self.first_wait * 2.0 ** min(times, 64)


def time_to_stop(left_seconds: float, behind: int, whole_seconds: float) -> float:
    """Return how long a child may take to stop, when so many behind it have to stop within the same whole.

    A tenth of the whole is kept for each of them, so that a stubborn one cannot take all of their time.
    """
    return max(0.0, left_seconds - behind * whole_seconds / 10)
