"""What is measured while a trial runs: ages and response times, as a consumer of the API sees them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from longstop.api.serialisers import data_path
from longstop.model.match import IN_PLAY
from longstop_lab.client import Client
from longstop_lab.stage import Stage

#: What is played on the sites that do not show cricket.
_SPORTS = {"sofascore": "football"}


class Askable(Protocol):
    """As much of a stage as a consumer needs."""

    @property
    def api(self) -> Client: ...

    @property
    def sites(self) -> tuple[str, ...]: ...


def sport_at(site: str) -> str:
    return _SPORTS.get(site, "cricket")


def site_of(entry: Mapping[str, Any]) -> str:
    """Return where a match was read, as the API lists it."""
    site: str = entry["match_id"].partition("_")[0]
    return site


def sport_of(entry: Mapping[str, Any]) -> str:
    """Return what is played in a match as the API lists it."""
    return sport_at(site_of(entry))


def was_read_since(entry: Mapping[str, Any], moment: float, asked: float) -> bool:
    """Return whether a match was last read after a moment, as the API lists it when it is asked; both monotonic.

    Its age tells, not its time of day: the product's wall clock may be another one than ours.
    """
    age = entry["data_age_seconds"]
    return age is not None and asked - age > moment


class Samples:
    """Collects measurements; a percentile of nothing is `None`, not zero."""

    def __init__(self) -> None:
        self.ages: defaultdict[str, list[float]] = defaultdict(list)
        self.api_seconds: list[float] = []
        self.peak_rss_bytes = 0

    async def take(self, stage: Stage, entries: Sequence[dict[str, Any]]) -> None:
        """Measure once: the age of every match in play, the time of some answers, the memory."""
        for entry in entries:
            if entry["status"] in IN_PLAY and entry["data_age_seconds"] is not None:
                self.ages[sport_of(entry)].append(entry["data_age_seconds"])
        self.peak_rss_bytes = max(self.peak_rss_bytes, stage.rss_bytes())


async def list_matches(stage: Askable, samples: Samples | None = None) -> list[dict[str, Any]]:
    """Return all matches as the API lists them, sport by sport."""
    entries: list[dict[str, Any]] = []
    for sport in sorted({sport_at(site) for site in stage.sites}):
        after: int | None = 0
        while after is not None:
            answer = await stage.api.get(f"{data_path(sport)}/matches?limit=500&after={after}")
            if samples:
                samples.api_seconds.append(answer.seconds)
            entries += answer.body["matches"]
            after = answer.body["next_after"]
    return entries


async def all_events(stage: Askable, url: str, *, after: int = 0) -> list[dict[str, Any]]:
    """Return every event version of the match at this path, page by page, as a consumer would follow them."""
    events: list[dict[str, Any]] = []
    has_more = True
    while has_more:
        answer = await stage.api.get(f"{url}/events?after={after}")
        events += answer.body["events"]
        after, has_more = answer.body["next_after"], answer.body["has_more"]
    return events


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the value that `share` of the values do not exceed."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
