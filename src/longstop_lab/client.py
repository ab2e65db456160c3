"""An HTTP client for the API and the simulator of a deployment, and what a consumer of the API measures."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
from curl_cffi import CurlError
from curl_cffi.requests import AsyncSession, Response
from msgspec import Struct

from longstop.api.match_documents import data_path
from longstop.errors import UsageError
from longstop.model.match import IN_PLAY

TIMEOUT_SECONDS = 10.0
OK = 200

#: The sport of each site that does not show cricket.
_SPORTS = {"sofascore": "football"}


class JsonResponse(Struct, frozen=True, kw_only=True):
    body: Any
    seconds: float


class Client:
    """Sends requests to one server and keeps the connection open."""

    def __init__(self, base_url: str, token: str | None = None) -> None:
        self._base_url = base_url
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._session: AsyncSession[Response] = AsyncSession(headers=headers, timeout=TIMEOUT_SECONDS, trust_env=False)

    async def get(self, path: str) -> JsonResponse:
        """Return a response with status 200; any other outcome raises `UsageError`."""
        return await self._request("GET", path)

    async def post(self, path: str, body: bytes | None = None) -> JsonResponse:
        return await self._request("POST", path, body)

    async def delete(self, path: str) -> JsonResponse:
        return await self._request("DELETE", path)

    async def responds(self, path: str) -> bool:
        """Return whether the server is reachable and answers with 200."""
        try:
            return (await self._session.get(self._base_url + path)).status_code == OK
        except CurlError:
            return False

    async def aclose(self) -> None:
        await self._session.close()

    async def _request(self, method: str, path: str, body: bytes | None = None) -> JsonResponse:
        started = time.perf_counter()
        try:
            response = await self._session.request(method, self._base_url + path, data=body)  # type: ignore[arg-type]
        except CurlError as error:
            raise UsageError(f"{self._base_url} does not respond: {error}") from error
        seconds = time.perf_counter() - started
        if response.status_code != OK:
            raise UsageError(f"{self._base_url}{path} returned {response.status_code}: {response.text[:200]}")
        return JsonResponse(body=msgspec.json.decode(response.content), seconds=seconds)


class ReadsApi(Protocol):
    """The part of a deployment that a consumer of the API needs."""

    @property
    def api(self) -> Client: ...

    @property
    def sites(self) -> tuple[str, ...]: ...


def sport_at(site: str) -> str:
    return _SPORTS.get(site, "cricket")


def site_of(entry: Mapping[str, Any]) -> str:
    """Return the site of a match that the API lists."""
    site: str = entry["match_id"].partition("_")[0]
    return site


def sport_of(entry: Mapping[str, Any]) -> str:
    """Return the sport of a match that the API lists."""
    return sport_at(site_of(entry))


def was_read_since(entry: Mapping[str, Any], moment: float, requested_at: float) -> bool:
    """Return whether the last poll of a listed match came after a moment; both moments are monotonic.

    The age decides, not the time of day: the product may run with another wall clock.
    """
    age = entry["data_age_seconds"]
    return age is not None and requested_at - age > moment


async def list_matches(deployment: ReadsApi, timings: list[float] | None = None) -> list[dict[str, Any]]:
    """Return all matches that the API lists, sport by sport; append the response times to `timings`."""
    entries: list[dict[str, Any]] = []
    for sport in sorted({sport_at(site) for site in deployment.sites}):
        after: int | None = 0
        while after is not None:
            response = await deployment.api.get(f"{data_path(sport)}/matches?limit=500&after={after}")
            if timings is not None:
                timings.append(response.seconds)
            entries += response.body["matches"]
            after = response.body["next_after"]
    return entries


async def all_events(deployment: ReadsApi, url: str, *, after: int = 0) -> list[dict[str, Any]]:
    """Return every event version of the match at this path, page by page, as a consumer would read them."""
    events: list[dict[str, Any]] = []
    has_more = True
    while has_more:
        response = await deployment.api.get(f"{url}/events?after={after}")
        events += response.body["events"]
        after, has_more = response.body["next_after"], response.body["has_more"]
    return events


async def current_events(deployment: ReadsApi, url: str) -> list[dict[str, Any]]:
    """Return the latest version of every live event of the match at this path."""
    events: dict[str, dict[str, Any]] = {}
    after, has_more = 0, True
    while has_more:
        response = await deployment.api.get(f"{url}/events?current=true&after={after}")
        for event in response.body["events"]:
            events[event["key"]] = event
        after, has_more = response.body["next_after"], response.body["has_more"]
    return [event for event in events.values() if event["op"] != "void"]


class Samples:
    """Ages, response times and memory, measured from outside."""

    def __init__(self) -> None:
        self.ages: defaultdict[str, list[float]] = defaultdict(list)
        self.api_seconds: list[float] = []
        self.peak_rss_bytes = 0

    def add(self, entries: Sequence[dict[str, Any]], rss_bytes: int) -> None:
        """Record the age of every match in play, and the memory."""
        for entry in entries:
            if entry["status"] in IN_PLAY and entry["data_age_seconds"] is not None:
                self.ages[sport_of(entry)].append(entry["data_age_seconds"])
        self.peak_rss_bytes = max(self.peak_rss_bytes, rss_bytes)


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the value that `share` of the values do not exceed; `None` without values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
