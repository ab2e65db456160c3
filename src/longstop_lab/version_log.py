"""A log of every event version that the API has served during a run.

The comparison with the truth log cannot show whether a stored version was destroyed: before it, a new scraper has read
everything from the site again. A consumer that continues from its last sequence number would notice, and so does this.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b
from typing import Any

import msgspec

from longstop.errors import UsageError
from longstop_lab.client import ReadsApi, all_events, list_matches

POLL_SECONDS = 1.0
DIGEST_BYTES = 8

#: The digest of each version of a match's events, by its sequence number.
Versions = Mapping[int, bytes]
#: The versions of each match, by its path in the API.
Seen = Mapping[str, Versions]


class VersionLog:
    """Keeps a digest of every version that the API has served."""

    def __init__(self, deployment: ReadsApi) -> None:
        self._deployment = deployment
        self._seen: dict[str, dict[int, bytes]] = {}

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            await self.poll()
            await asyncio.sleep(POLL_SECONDS)

    async def poll(self) -> None:
        """Read the new versions of every match; an API that is down is read at the next poll."""
        with suppress(UsageError):
            for entry in await list_matches(self._deployment):
                await self._read_new(entry["url"])

    def seen(self) -> Seen:
        """Return everything that was served until now."""
        return {url: dict(versions) for url, versions in self._seen.items()}

    def clear(self) -> None:
        """Drop everything, as a restore removes what came after its backup."""
        self._seen.clear()

    async def _read_new(self, url: str) -> None:
        last = max(self._seen.get(url, ()), default=0)
        # Only new versions: the check at the end finds those that have changed.
        versions = await all_events(self._deployment, url, after=last)
        self._seen.setdefault(url, {}).update((event["seq"], _digest(event)) for event in versions)


@asynccontextmanager
async def logging_versions(deployment: ReadsApi) -> AsyncIterator[VersionLog]:
    """Log versions while the block runs; what is served already is logged before it starts."""
    version_log = VersionLog(deployment)
    await version_log.poll()
    polling = asyncio.create_task(version_log.run(), name="version log")
    try:
        yield version_log
    finally:
        polling.cancel()
        with suppress(asyncio.CancelledError):
            await polling


def missing_versions(seen: Seen, served: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return a sentence for every version that was served once and is not served unchanged now."""
    return [sentence for url, versions in seen.items() for sentence in _missing(url, versions, served.get(url, ()))]


def _missing(url: str, versions: Versions, served: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    now = {event["seq"]: _digest(event) for event in served}
    for seq, digest in sorted(versions.items()):
        if seq not in now:
            yield f"{url}: version {seq} was served before and is missing now"
        elif now[seq] != digest:
            yield f"{url}: version {seq} was served before with other content"


def _digest(event: Mapping[str, Any]) -> bytes:
    # All fields: an event that was deleted and read again has at least another storage time.
    return blake2b(msgspec.json.encode(event, order="deterministic"), digest_size=DIGEST_BYTES).digest()
