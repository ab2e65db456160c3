"""What a demo reports."""

from msgspec import Struct


class SportReport(Struct, frozen=True, kw_only=True):
    """What was found of one sport."""

    sport: str
    matches: int
    events_truth: int
    events_stored: int
    lost: int
    duplicated: int
    ghost: int
    freshness_p50_s: float | None
    freshness_p99_s: float | None


class DemoReport(Struct, frozen=True, kw_only=True):
    """What a demo measured, through the public API and the truth log alone."""

    matches: int
    #: The same by site: what two sites show counts at both.
    sites: dict[str, int]
    events_truth: int
    events_stored: int
    lost: int
    duplicated: int
    ghost: int
    #: Deliveries that a source no longer showed when we came, and of which that is on record.
    declared: int
    #: Innings totals that are served otherwise than they were published.
    wrong: int
    freshness_p50_s: float | None
    freshness_p99_s: float | None
    rss_mb: float
    api_p95_ms: float | None
    #: The same by sport.
    sports: tuple[SportReport, ...] = ()
    details: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.duplicated or self.ghost or self.wrong)
