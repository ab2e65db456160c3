"""When a child stands still. Pure: whether it has beaten, and the moment of the look, come in.

What counts is that beats come, by the monotonic time of whoever looks. A look that comes late says more about the
looker than about the child: a machine or container that was frozen must not cost everybody their life when it thaws.
"""

from typing import Self

from msgspec import Struct

LOOK_SECONDS = 1.0
#: A child that has not beaten yet is still coming up: on a slow disk that takes its time.
FIRST_PATIENCE_SECONDS = 60.0
#: So much of the time between two looks counts as the child's silence at most.
COUNTED_SECONDS = 2 * LOOK_SECONDS


class BeatWatch(Struct, frozen=True, kw_only=True):
    """What was heard of one child's present life."""

    #: Seconds of silence after which it stands still.
    patience: float
    pid: int | None = None
    has_beaten: bool = False
    silent_seconds: float = 0.0
    looked_at: float = 0.0

    @property
    def stands_still(self) -> bool:
        return self.silent_seconds >= (self.patience if self.has_beaten else max(self.patience, FIRST_PATIENCE_SECONDS))

    def look(self, pid: int, now: float, *, has_beaten: bool) -> Self:
        """Return what is known after a look; another pid is another life, and so is one that was given up."""
        if pid != self.pid or self.stands_still:
            return self._after(pid, now, has_beaten=has_beaten, silent_seconds=0.0)
        silent = 0.0 if has_beaten else self.silent_seconds + min(now - self.looked_at, COUNTED_SECONDS)
        return self._after(pid, now, has_beaten=self.has_beaten or has_beaten, silent_seconds=silent)

    def _after(self, pid: int, now: float, *, has_beaten: bool, silent_seconds: float) -> Self:
        return type(self)(
            patience=self.patience, pid=pid, has_beaten=has_beaten, silent_seconds=silent_seconds, looked_at=now
        )
