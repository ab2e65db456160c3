"""When a browser hangs: how it is asked, and when its silence is enough. Pure."""

from msgspec import Struct

#: What a browser that is asked for its version needs at most, on a machine that is not overwhelmed.
PROBE_SECONDS = 5.0


class HangPolicy(Struct, frozen=True, kw_only=True):
    """How a browser is asked whether it is still there."""

    #: Between two questions, and after one that was not answered.
    check_seconds: float = 5.0
    recheck_seconds: float = 1.0
    #: A browser hangs that has been silent for so long, by the time at which that is noticed.
    hung_seconds: float = 30.0

    @property
    def probe_seconds(self) -> float:
        """How long one question waits for its answer."""
        return min(PROBE_SECONDS, self.hung_seconds / 3)

    def is_hung(self, silent_seconds: float) -> bool:
        """Return whether a silence is enough: the next question would bring the verdict too late."""
        return silent_seconds + self.recheck_seconds + self.probe_seconds > self.hung_seconds


def verdict_seconds(policy: HangPolicy) -> float:
    """Return how long after its last answer a browser that has stopped is given up, at the latest."""
    silent = policy.check_seconds + policy.probe_seconds
    while not policy.is_hung(silent):
        silent += policy.recheck_seconds + policy.probe_seconds
    return silent
