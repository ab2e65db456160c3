"""A pause of requests that a site asked for or that a breaker began. It outlives the scraper."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from longstop.clock import Moment


class PauseKind(StrEnum):
    #: The site postponed all requests.
    RETRY_AFTER = "retry_after"
    #: The circuit of a host is open.
    TARGET_CIRCUIT = "target_circuit"
    #: The circuit of the whole source is open.
    SOURCE_CIRCUIT = "source_circuit"
    #: The circuit of a match is open.
    MATCH_CIRCUIT = "match_circuit"
    #: One kind of page cannot be parsed.
    LAYOUT = "layout"


class RequestPause(Struct, frozen=True, kw_only=True):
    """A pause as it is stored. One of a circuit is stored until the circuit closes, also after its end."""

    source: str
    kind: PauseKind
    #: What is paused: a source, a host, a match or a resource.
    subject: str
    #: The end on both clocks; the monotonic one is valid within its boot only.
    until: datetime
    until_monotonic: float
    boot: str | None
    reason: str

    def seconds_left(self, now: Moment, boot: str | None) -> float:
        """Return the seconds until the end; negative afterwards.

        Within one boot a jump of the wall clock changes nothing. After a reboot only the wall clock is left: the owner
        of the pause limits what it says.
        """
        is_one_boot = boot is not None and boot == self.boot
        return self.until_monotonic - now.monotonic if is_one_boot else (self.until - now.wall).total_seconds()


class FormerPause(Struct, frozen=True, kw_only=True):
    """What is left of a stored pause, for a breaker that is new."""

    kind: PauseKind
    subject: str
    #: 0 for a circuit whose time is over and that has not closed: the next requests are probes.
    seconds: float
    reason: str

    def explained(self) -> str:
        return f"{self.reason}; kept over a restart"


class SourcePauses(Protocol):
    """The pauses of one source: what an earlier run left, and where new ones are stored. No call waits for a disk."""

    @property
    def former(self) -> Sequence[FormerPause]:
        """Return what is left of the stored pauses now."""

    def begin(self, kind: PauseKind, subject: str, seconds: float, reason: str) -> None:
        """Store a pause; it replaces that of the same subject."""

    def cut_short(self, kind: PauseKind, subject: str) -> None:
        """Store that a pause is over, but not its cause: probes decide."""

    def end(self, kind: PauseKind, subject: str) -> None:
        """Remove a pause whose cause is gone."""


class NoStoredPauses:
    """Stores nothing: for single reads and tests."""

    former: Sequence[FormerPause] = ()

    def begin(self, kind: PauseKind, subject: str, seconds: float, reason: str) -> None:
        pass

    def cut_short(self, kind: PauseKind, subject: str) -> None:
        pass

    def end(self, kind: PauseKind, subject: str) -> None:
        pass
