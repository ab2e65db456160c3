"""How long to wait before a child or a loop is restarted. Pure."""

from msgspec import Struct

from longstop.supervision.exit_codes import Exit


class RestartBackoff(Struct, frozen=True, kw_only=True):
    """The delay before a restart: none the first time, then 1, 2, 4 … 60 s for a child that keeps failing."""

    #: A child that ran for this many seconds has started well: its next failure counts as the first.
    settled_after: float = 30.0
    #: The delay before the second restart in a row, in seconds; each further one doubles it.
    first_delay: float = 1.0
    longest_delay: float = 60.0
    #: The longest delay while another process locks the data directory: it may release it at any time.
    longest_delay_for_lock: float = 10.0

    def count_failures(self, before: int, ran_seconds: float) -> int:
        """Return the number of failures in a row, including this one."""
        return 1 if ran_seconds >= self.settled_after else before + 1

    def delay_after(self, failures: int, exit_code: int = Exit.FAILED) -> float:
        """Return the seconds until the next start."""
        if exit_code == Exit.SETTINGS:  # only an operator can fix it
            return self.longest_delay
        if exit_code == Exit.LOCKED:  # the owner of the lock needs a moment at least
            return min(self.longest_delay_for_lock, self._doubled(failures - 1))
        return min(self.longest_delay, self._doubled(failures - 2)) if failures > 1 else 0.0

    def _doubled(self, times: int) -> float:
        # Weeks of failures must not overflow a float.
        return self.first_delay * 2.0 ** min(times, 64)
