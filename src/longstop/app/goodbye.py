"""The last word of `up`: no scraper follows the one that has just stopped."""

from contextlib import aclosing, suppress

from msgspec.structs import replace

from longstop.errors import DataDirectoryInUse, StorageError
from longstop.storage.base import NodeBeat
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.hot import SqliteHotReader, SqliteHotWriter
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.processes import HotViewFailed


async def close_beat(directory: DataDirectory, bus: Bus) -> None:
    """Mark the scraper's last beat as its end: it could not know whether it was going to be started again."""

    def complain(error: StorageError) -> None:
        bus.emit(HotViewFailed(error_message=str(error)))

    try:
        # Whoever holds it already is a scraper that was started by hand, and beats for itself.
        with suppress(DataDirectoryInUse), directory.lock():
            for beat in await _own_beats(directory):
                async with aclosing(SqliteHotWriter(directory.hot_db, on_failure=complain)) as hot:
                    hot.beat(replace(beat, is_over=True))
    except StorageError as error:
        complain(error)


async def _own_beats(directory: DataDirectory) -> list[NodeBeat]:
    async with aclosing(SqliteHotReader(directory.hot_db)) as reader:
        return [beat for beat in await reader.beats() if beat.node == directory.node_id]
