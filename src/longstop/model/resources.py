"""What a process and all that it has started take of the machine, as measured."""

from msgspec import Struct


class Resources(Struct, frozen=True, kw_only=True):
    """One measurement. What could not be measured is `None`, never 0."""

    pids: tuple[int, ...]
    rss_bytes: int | None = None
    #: Pages that several processes share count once.
    pss_bytes: int | None = None
    peak_rss_bytes: int | None = None
    #: Of one core, since the measurement before; `None` at the first.
    cpu_percent: float | None = None
    #: Of the process alone, without what it has started.
    own_pss_bytes: int | None = None
    own_cpu_percent: float | None = None


class MatchCost(Struct, frozen=True, kw_only=True):
    """What one match takes: its share of what was measured."""

    pss_bytes: int | None = None
    cpu_percent: float | None = None
