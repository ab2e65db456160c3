"""When a child has taken too much memory, and what is done about it: decided from its size alone."""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

MEGABYTE = 1024 * 1024
#: Told at this share of the soft limit …
HIGH_SHARE = 0.80
#: … and told again only once it was below this one.
CALM_SHARE = 0.70
#: What a child may have of a container that holds us all.
SOFT_SHARE_OF_CONTAINER = 0.70
HARD_SHARE_OF_CONTAINER = 0.85


class MemoryLimits(Struct, frozen=True, kw_only=True):
    """At the soft limit a child is asked to begin anew, at the hard one it is killed."""

    soft_bytes: int
    hard_bytes: int


def effective(limits: MemoryLimits, container_bytes: int | None) -> MemoryLimits:
    """Return the limits that count inside a container, which the kernel would enforce less gently than we do."""
    if container_bytes is None:
        return limits
    return MemoryLimits(
        soft_bytes=min(limits.soft_bytes, int(container_bytes * SOFT_SHARE_OF_CONTAINER)),
        hard_bytes=min(limits.hard_bytes, int(container_bytes * HARD_SHARE_OF_CONTAINER)),
    )


class Appetite(StrEnum):
    """How much a child takes."""

    CALM = "calm"
    #: Above 80 % of the soft limit; told.
    HIGH = "high"
    #: Above the soft limit; asked to begin anew.
    SOFT = "soft"
    #: Above the hard limit; killed.
    HARD = "hard"


class Act(StrEnum):
    """What is done about it."""

    TELL = "tell"
    TELL_END = "tell_end"
    RENEW = "renew"
    KILL = "kill"


#: What each move means; one that is not here means nothing.
MOVES: dict[tuple[Appetite, Appetite], Act] = {
    (Appetite.CALM, Appetite.HIGH): Act.TELL,
    (Appetite.HIGH, Appetite.CALM): Act.TELL_END,
    (Appetite.CALM, Appetite.SOFT): Act.RENEW,
    (Appetite.HIGH, Appetite.SOFT): Act.RENEW,
    (Appetite.CALM, Appetite.HARD): Act.KILL,
    (Appetite.HIGH, Appetite.HARD): Act.KILL,
    (Appetite.SOFT, Appetite.HARD): Act.KILL,
}


class MemoryWatch(Struct, frozen=True, kw_only=True):
    """One child's size, look after look."""

    limits: MemoryLimits
    #: The process that was looked at last: another one begins calm.
    pid: int = 0
    appetite: Appetite = Appetite.CALM

    def look(self, pid: int, size_bytes: int) -> tuple["MemoryWatch", Act | None]:
        """Return the watch after a look, and what is to be done now."""
        if pid != self.pid:
            fresh, act = replace(self, pid=pid, appetite=Appetite.CALM).look(pid, size_bytes)
            # Whoever was told about the old one wants to hear that it is over.
            return fresh, act or (Act.TELL_END if self.appetite is not Appetite.CALM else None)
        after = self._appetite(size_bytes)
        return replace(self, appetite=after), MOVES.get((self.appetite, after))

    def undone(self, pid: int) -> "MemoryWatch":
        """Return the watch when what was to be done about this process was not: the next look decides again."""
        return replace(self, appetite=Appetite.CALM) if pid == self.pid else self

    def _appetite(self, size_bytes: int) -> Appetite:
        if size_bytes >= self.limits.hard_bytes:
            return Appetite.HARD
        # What has been asked to begin anew does, also when it shrinks meanwhile.
        if size_bytes >= self.limits.soft_bytes or self.appetite in (Appetite.SOFT, Appetite.HARD):
            return max(self.appetite, Appetite.SOFT, key=list(Appetite).index)
        told = self.appetite is Appetite.HIGH
        share = CALM_SHARE if told else HIGH_SHARE
        return Appetite.HIGH if size_bytes >= self.limits.soft_bytes * share else Appetite.CALM
