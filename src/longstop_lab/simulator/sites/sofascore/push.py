"""The push channel: changed fields as dotted paths, sent once, over a connection that drops now and then."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from longstop_lab.simulator.football.world import FootballWorld
from longstop_lab.simulator.sites.sofascore.event import single_event
from longstop_lab.simulator.websocket import answer_until_closed, text_frame

#: Where the channel of a match is, before its key.
PUSH = "/push/"
#: The interval between two checks for changes, in real seconds.
_BEAT_SECONDS = 0.1
#: Fields that change while nothing happens; the channel does not speak of them.
_SILENT = ("userCount", "fieldTranslations")

_Event = dict[str, Any]


def flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every field that is no object, under its dotted path."""
    for name, part in value.items():
        if name in _SILENT:
            continue
        if isinstance(part, Mapping):
            yield from flat(part, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", part


def changed_fields(before: _Event, after: _Event) -> _Event:
    """Return the changed fields with their new values; removed fields are not reported."""
    known = dict(flat(before))
    return {path: value for path, value in flat(after) if known.get(path, flat) != value}


class PushChannel:
    """Sends the changes of one match to a page until the connection drops."""

    def __init__(self, world: FootballWorld, key: str, *, life_seconds: float) -> None:
        self._world = world
        self._key = key
        self._life_seconds = life_seconds

    async def run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send until the page closes or the connection drops; changes before the next connection are never sent."""
        listening = asyncio.create_task(answer_until_closed(reader, writer))
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._life_seconds):
                    await self._tell(writer, listening)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _tell(self, writer: asyncio.StreamWriter, listening: asyncio.Task[None]) -> None:
        board = self._world.boards[self._key]
        version, before = board.version, single_event(self._world, self._key)
        while not listening.done():
            await asyncio.sleep(_BEAT_SECONDS)
            if board.version == version:
                continue
            version, after = board.version, single_event(self._world, self._key)
            fields = changed_fields(before, after)
            before = after
            writer.write(text_frame(msgspec.json.encode({**fields, "id": int(self._key)})))
            await writer.drain()
