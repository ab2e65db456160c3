"""The report of a demo."""

from msgspec import Struct


class SportReport(Struct, frozen=True, kw_only=True):
    """The results of one sport."""

    sport: str
    matches: int
    events_truth: int
    events_stored: int
    lost: int
    duplicated: int
    ghost: int
    freshness_p50_s: float | None
    freshness_p99_s: float | None
    #: Events that the source no longer showed when polling started, and that the product declares as gaps.
    declared: int = 0


class DemoReport(Struct, frozen=True, kw_only=True):
    """What a demo measured, from the public API and the truth log alone."""

    #: As the API lists them: a match that two sites show counts twice.
    matches: int
    #: The same by site.
    sites: dict[str, int]
    events_truth: int
    events_stored: int
    lost: int
    duplicated: int
    ghost: int
    #: Events that the source no longer showed when polling started, and that the product declares as gaps.
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
