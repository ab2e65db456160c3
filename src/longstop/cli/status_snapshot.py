"""The status of a data directory at one moment, for `health` and `top`. The verdict is that of the API."""

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
from longstop.supervision.health_verdict import NEVER_RAN, HealthStatus, HealthVerdict, start_failure


class StatusSnapshot(Struct, frozen=True, kw_only=True):
    """Everything that is known at one moment."""

    verdict: HealthVerdict
    beats: Sequence[NodeBeat]
    records: Sequence[MonitoringRecord]
    #: Newest first; `None` when they could not be read.
    recoveries: Sequence[Recovery] | None
    standing: Sequence[StandingOrder] = ()
    taken_at: Moment

    def document(self) -> dict[str, Any]:
        """Return the snapshot as `/status` shows it."""
        from longstop.api.health_documents import status_document

        return status_document(self.verdict, self.beats, self.records, self.recoveries, config={}, now=self.taken_at)


class StatusReader:
    """Reads snapshots from a data directory. Keeps its files open, and writes nothing."""

    def __init__(self, data: Path, clock: Clock) -> None:
        from longstop.storage.sqlite.hot import SqliteHotReader
        from longstop.storage.sqlite.ops import SqliteAudit, SqliteStandingOrders

        self._clock = clock
        self._hot = SqliteHotReader(data / "hot.db")
        self._audit = SqliteAudit(data / "ops.db")
        self._orders = SqliteStandingOrders(data / "ops.db")

    async def read(self) -> StatusSnapshot:
        """Return the current status; raise `StorageError` when the live view cannot be read."""
        from longstop.supervision.health_verdict import assess_health

        beats, records = await self._hot.beats(), await self._hot.records()
        now = Moment.of(self._clock)
        recoveries, standing = await self._read_ops()
        return StatusSnapshot(
            verdict=_with_restarts(assess_health(beats, records, now), recoveries or (), now),
            beats=beats,
            records=records,
            recoveries=recoveries,
            standing=standing,
            taken_at=now,
        )

    async def aclose(self) -> None:
        for file in (self._hot, self._audit, self._orders):
            await file.aclose()

    async def _read_ops(self) -> tuple[Sequence[Recovery] | None, Sequence[StandingOrder]]:
        from longstop.errors import StorageError

        try:
            return await self._audit.recent(), await self._orders.standing()
        except StorageError:  # the verdict does not depend on it
            return None, ()


def _with_restarts(verdict: HealthVerdict, recoveries: Sequence[Recovery], now: Moment) -> HealthVerdict:
    """Add the processes that keep failing at start: an API that does could not report it itself."""
    problems = [problem for name in ("scraper", "api") if (problem := start_failure(name, recoveries, now.wall))]
    if not problems:
        return verdict
    status = HealthStatus.DEGRADED if verdict.status is HealthStatus.HEALTHY else verdict.status
    # That no scraper has run yet would contradict this.
    others = tuple(each for each in verdict.reasons if each != NEVER_RAN)
    return replace(verdict, status=status, reasons=(*problems, *others))
