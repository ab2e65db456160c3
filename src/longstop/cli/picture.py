"""How it goes, read from a data directory: what `health` and `top` show, judged as the API judges it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from longstop.clock import Clock, Moment
from longstop.model.command import StandingOrder
from longstop.model.match import MonitoringRecord
from longstop.model.recovery import Recovery
from longstop.storage.base import NodeBeat
from longstop.supervision.health_verdict import HealthStatus, HealthVerdict, api_start_failure


class Picture(Struct, frozen=True, kw_only=True):
    """Everything that is known at one moment."""

    judged: HealthVerdict
    beats: Sequence[NodeBeat]
    records: Sequence[MonitoringRecord]
    #: The newest first; `None` when they could not be read.
    recoveries: Sequence[Recovery] | None
    standing: Sequence[StandingOrder] = ()
    taken_at: Moment

    def document(self) -> dict[str, Any]:
        """Return it as `/status` tells it."""
        from longstop.api.health_documents import status_document

        return status_document(self.judged, self.beats, self.records, self.recoveries, config={}, now=self.taken_at)


def _with_api(judged: HealthVerdict, recoveries: Sequence[Recovery], now: Moment) -> HealthVerdict:
    """Add that the API does not come up: whoever asks here may never hear it from the API itself."""
    trouble = api_start_failure(recoveries, now.wall)
    if trouble is None:
        return judged
    status = HealthStatus.DEGRADED if judged.status is HealthStatus.HEALTHY else judged.status
    return replace(judged, status=status, reasons=(*judged.reasons, trouble))


class Camera:
    """Takes pictures of a data directory; it keeps its files open, and writes nothing."""

    def __init__(self, data: Path, clock: Clock) -> None:
        from longstop.storage.sqlite.hot import SqliteHotReader
        from longstop.storage.sqlite.ops import SqliteAudit, SqliteStandingOrders

        self._clock = clock
        self._hot = SqliteHotReader(data / "hot.db")
        self._audit = SqliteAudit(data / "ops.db")
        self._orders = SqliteStandingOrders(data / "ops.db")

    async def take(self) -> Picture:
        """Return how it goes now; raise `StorageError` when the live view cannot be read."""
        from longstop.supervision.health_verdict import assess_health

        beats, records = await self._hot.beats(), await self._hot.records()
        now = Moment.of(self._clock)
        recoveries, standing = await self._from_ops()
        return Picture(
            judged=_with_api(assess_health(beats, records, now), recoveries or (), now),
            beats=beats,
            records=records,
            recoveries=recoveries,
            standing=standing,
            taken_at=now,
        )

    async def aclose(self) -> None:
        for file in (self._hot, self._audit, self._orders):
            await file.aclose()

    async def _from_ops(self) -> tuple[Sequence[Recovery] | None, Sequence[StandingOrder]]:
        from longstop.errors import StorageError

        try:
            return await self._audit.recent(), await self._orders.standing()
        except StorageError:  # what was done before says nothing about how it goes
            return None, ()
