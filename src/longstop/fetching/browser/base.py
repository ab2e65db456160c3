"""What the parts of the browser engine tell each other."""

from msgspec import Struct


class Usage(Struct, frozen=True, kw_only=True):
    """What a family of processes holds. `None` where the kernel would not say: never a zero in its place."""

    processes: int
    #: Shared pages count once for each process.
    rss_bytes: int | None
    #: Shared pages count once in all: what would be free without the family.
    pss_bytes: int | None
    cpu_seconds: float
