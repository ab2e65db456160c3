"""How long a dead child stays dead: decided from its history alone."""

from msgspec import Struct


class RestartPolicy(Struct, frozen=True, kw_only=True):
    """The first restart is immediate; a child that keeps dying young waits 1, 2, 4 … 60 s before the next one."""

    #: A child that lived this many seconds has come up well: its next death counts as the first.
    settled_after: float = 30.0
    #: The wait before the second restart in a row, in seconds; each further one doubles it.
    first_wait: float = 1.0
    longest_wait: float = 60.0

    def deaths_in_a_row(self, before: int, lived_seconds: float) -> int:
        """Return the count with this death included."""
        return 1 if lived_seconds >= self.settled_after else before + 1

    def wait_after(self, deaths: int) -> float:
        """Return the seconds until the next start, after this many deaths in a row."""
        if deaths <= 1:
            return 0.0
        # The exponent is capped too: a child that dies for weeks must not overflow a float.
        return min(self.longest_wait, self.first_wait * 2.0 ** min(deaths - 2, 64))
