"""The health log: a row for the node each minute, and one for each match whose grade changed."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime

from longstop.clock import Clock, Moment
from longstop.model.polling_status import MonitoringRecord
from longstop.model.scraper_report import MatchCost, NodeBeat, megabytes
from longstop.storage.base import HealthLogStore, HealthRow
from longstop.supervision.health_grade_and_recovery import Grade, match_grade
from longstop.telemetry.bus import Bus
from longstop.telemetry.periodic_flush import PeriodicFlush

NODE_EVERY_SECONDS = 60.0
PRUNE_EVERY_SECONDS = 3600.0
#: Rows that wait while the disk fails; beyond that the oldest are dropped.
MAX_WAITING = 10_000


class HealthLog:
    """Collects rows without waiting for a disk. A task writes them while `writing` lasts."""

    def __init__(self, store: HealthLogStore, *, clock: Clock) -> None:
        self._clock = clock
        self._store = store
        self._waiting: deque[HealthRow] = deque(maxlen=MAX_WAITING)
        self._grades: dict[int, Grade] = {}
        self._node_at = clock.monotonic()
        self._prune_at = clock.monotonic()
        self._background = PeriodicFlush("health log", self._flush, every_seconds=5.0)

    def note(self, beat: NodeBeat, records: Iterable[MonitoringRecord]) -> None:
        """Add rows for the node's heartbeat and for the matches whose grade has changed."""
        now = Moment.of(self._clock)
        self._waiting.extend(self._changed(beat.node, records, beat.costs, now))
        if self._clock.monotonic() >= self._node_at:
            self._node_at = self._clock.monotonic() + NODE_EVERY_SECONDS
            self._waiting.append(node_row(beat, now.wall))

    def writing(self, bus: Bus) -> AbstractAsyncContextManager[None]:
        return self._background.running(bus)

    def _changed(
        self, node: str, records: Iterable[MonitoringRecord], costs: Mapping[int, MatchCost], now: Moment
    ) -> Iterator[HealthRow]:
        before, self._grades = self._grades, {}
        for record in records:
            grade = self._grades[record.match_id] = match_grade(record, now)
            # A new match counts as healthy, so its first row is its first problem.
            if grade is not before.get(record.match_id, Grade.HEALTHY):
                yield match_row(node, record, grade, now, costs.get(record.match_id, MatchCost()))

    async def _flush(self) -> bool:
        rows, self._waiting = self._waiting, deque(maxlen=self._waiting.maxlen)
        try:
            if rows:
                await self._store.write(list(rows))
        except BaseException:
            self._waiting = deque([*rows, *self._waiting], maxlen=self._waiting.maxlen)
            raise
        if self._clock.monotonic() >= self._prune_at:
            self._prune_at = self._clock.monotonic() + PRUNE_EVERY_SECONDS
            await self._store.prune(self._clock.now())
        return bool(rows)


def node_row(beat: NodeBeat, now: datetime) -> HealthRow:
    used, latency = beat.resources, beat.rates.average_latency_ms
    return HealthRow(
        scraper_id=beat.node,
        timestamp=now,
        health_status=beat.grade,
        error_count=beat.errors_last_minute,
        memory_mb=megabytes(used.rss_bytes if used else None),
        cpu_percent=used.cpu_percent if used else None,
        update_latency_ms=None if latency is None else round(latency),
        uptime_seconds=round(beat.uptime_seconds, 1),
        last_update_age_seconds=_rounded(beat.rates.last_success_seconds),
    )


def match_row(node: str, record: MonitoringRecord, grade: Grade, now: Moment, cost: MatchCost) -> HealthRow:
    return HealthRow(
        scraper_id=node,
        match_id=record.match_id,
        ref=str(record.ref),
        timestamp=now.wall,
        health_status=grade.value,
        error_count=record.consecutive_failures,
        memory_mb=megabytes(cost.pss_bytes),
        cpu_percent=cost.cpu_percent,
        polling_interval_seconds=record.interval_seconds,
        last_update_age_seconds=_rounded(record.age_at(now)),
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
