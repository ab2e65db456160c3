"""The witness of a trial: it follows every match all the while, and knows at the end what the API has served.

The judge alone cannot tell whether anything stored was destroyed: before he compares, a fresh scraper has read
everything from the site again. A consumer who goes on from his last sequence number would have noticed.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b
from typing import Any

import msgspec

from longstop.errors import UsageError
from longstop_lab.sample import Askable, all_events, list_matches

LOOK_EVERY = 1.0
DIGEST_BYTES = 8

#: The digest of each version of a match's events, by its sequence number.
Versions = Mapping[int, bytes]
#: The same of each match, by its path in the API.
Seen = Mapping[str, Versions]


class Witness:
    """Keeps a digest of every version that the API has ever served."""

    def __init__(self, stage: Askable) -> None:
        self._stage = stage
        self._seen: dict[str, dict[int, bytes]] = {}

    async def follow(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_EVERY)

    async def look(self) -> None:
        """Ask for what is new in every match; an API between two lives is asked the next time."""
        with suppress(UsageError):
            for entry in await list_matches(self._stage):
                await self._ask(entry["url"])

    def seen(self) -> Seen:
        """Return all that was served until now."""
        return {url: dict(versions) for url, versions in self._seen.items()}

    def begin_anew(self) -> None:
        """Drop everything: a restore takes away what came after its backup, and that was asked for."""
        self._seen.clear()

    async def _ask(self, url: str) -> None:
        last = max(self._seen.get(url, ()), default=0)
        # What has changed meanwhile shows at the end: until then nobody is asked for more than the news.
        news = await all_events(self._stage, url, after=last)
        self._seen.setdefault(url, {}).update((event["seq"], _digest(event)) for event in news)


@asynccontextmanager
async def witnessing(stage: Askable) -> AsyncIterator[Witness]:
    """Let somebody watch what is served from now on; what stands there already has been seen before this begins."""
    witness = Witness(stage)
    await witness.look()
    following = asyncio.create_task(witness.follow(), name="witness")
    try:
        yield witness
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


def forgotten(seen: Seen, served: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return a sentence for every version that was served once and is not there now as it was."""
    return [sentence for url, versions in seen.items() for sentence in _forgotten(url, versions, served.get(url, ()))]


def _forgotten(url: str, versions: Versions, served: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    now = {event["seq"]: _digest(event) for event in served}
    for seq, digest in sorted(versions.items()):
        if seq not in now:
            yield f"{url}: version {seq} was served once, and is gone"
        elif now[seq] != digest:
            yield f"{url}: version {seq} was served once, and reads otherwise now"


def _digest(event: Mapping[str, Any]) -> bytes:
    # All of it: what the next scraper reads again has another time of storing, if nothing else.
    return blake2b(msgspec.json.encode(event, order="deterministic"), digest_size=DIGEST_BYTES).digest()
