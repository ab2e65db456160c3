"""The documents of `/health` and `/status`. Every number is measured; what was not measured is null, never zero.

The verbs `health` and `top` show the same: they read a data directory as the API does.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from longstop.api.match_documents import match_path, record_age, shown_age
from longstop.clock import Clock, Moment, iso_or_none, to_iso
from longstop.model.command_and_standing_order import StandingOrder
from longstop.model.match import IN_PLAY, Phase
from longstop.model.polling_status import MonitoringRecord
from longstop.model.recovery import Recovery
from longstop.model.scraper_report import MatchCost, NodeBeat, megabytes
from longstop.storage.base import HealthRow, HotReader
from longstop.supervision import health_grade_and_recovery
from longstop.supervision.health_grade_and_recovery import Grade, match_grade, percentile
from longstop.supervision.health_verdict import MAX_ERRORS_A_MINUTE, HealthVerdict, assess_health, is_silent, live_beats

#: How many of the newest recoveries `/status` shows.
SHOWN_RECOVERIES = 10

#: The fixed thresholds of the grades; those that can be set are added to them.
THRESHOLDS = {
    "evaluated_every_seconds": health_grade_and_recovery.EVALUATED_EVERY_SECONDS,
    "degraded_seconds": health_grade_and_recovery.OLD_SECONDS,
    "failing_seconds": health_grade_and_recovery.TOO_OLD_SECONDS,
    "good_intervals": health_grade_and_recovery.GOOD_INTERVALS,
}


class StatusSnapshot(Struct, frozen=True, kw_only=True):
    """What was known at one moment, with the verdict on it."""

    verdict: HealthVerdict
    beats: Sequence[NodeBeat] = ()
    records: Sequence[MonitoringRecord] = ()
    #: Newest first; `None` when they could not be read.
    recoveries: Sequence[Recovery] | None = None
    standing: Sequence[StandingOrder] = ()
    taken_at: Moment


async def read_live_view(hot: HotReader, clock: Clock) -> StatusSnapshot:
    """Return what the live view shows; raise `StorageError` when it cannot be read."""
    beats, records = await hot.beats(), await hot.records()
    now = Moment.of(clock)
    return StatusSnapshot(verdict=assess_health(beats, records, now), beats=beats, records=records, taken_at=now)


def health_facts(snapshot: StatusSnapshot, started: Moment) -> dict[str, Any]:
    """Return the measured part of `/health`. The verdict and the age of the snapshot are added when it is served."""
    beats, records, now = snapshot.beats, snapshot.records, snapshot.taken_at
    active = live_beats(beats, now)
    memory = [_memory_mb(beat) for beat in active]
    total_memory = _total(memory)
    return {
        "timestamp": to_iso(now.wall),
        "uptime_seconds": shown_age(now.monotonic - started.monotonic),
        "active_scraper_count": len(active),
        "total_matches_scraping": sum(record.phase is Phase.ACTIVE for record in records),
        "total_memory_mb": total_memory,
        "scrapers": [_scraper(beat, now) for beat in beats],
        "per_match_status": _match_entries(beats, records, now),
        "resources": {
            "total_memory_mb": total_memory,
            "average_memory_mb": _mean(memory),
            "peak_memory_mb": _total(megabytes(beat.resources.peak_rss_bytes) for beat in active if beat.resources),
            "total_cpu_percent": _total(beat.resources.cpu_percent for beat in active if beat.resources),
        },
        "errors": {
            "last_minute": _total(beat.errors_last_minute for beat in active),
            "last_hour": _total(beat.rates.errors_last_hour for beat in active),
            "circuit_breakers": [
                {"name": f"{note.scope} {note.subject}", "state": note.state.upper()}
                for beat in active
                for note in beat.breakers
            ],
        },
        "performance": {
            "average_latency_ms": _mean(beat.rates.average_latency_ms for beat in active),
            "p95_latency_ms": max(_known(beat.rates.p95_latency_ms for beat in active), default=None),
            "updates_per_minute": _total(beat.rates.updates_last_minute for beat in active),
            "oldest_in_play_seconds": max(
                _known(record_age(record, now) for record in records if record.status in IN_PLAY), default=None
            ),
        },
    }


def status_document(snapshot: StatusSnapshot, config: Mapping[str, Any]) -> dict[str, Any]:
    verdict, beats, records, now = snapshot.verdict, snapshot.beats, snapshot.records, snapshot.taken_at
    recoveries = snapshot.recoveries
    active = live_beats(beats, now)
    shown = None if recoveries is None else [recovery_entry(each) for each in recoveries[:SHOWN_RECOVERIES]]
    successes = (beat.rates.last_success_at for beat in active)
    return {
        "grade": verdict.grade,
        "since": iso_or_none(min((beat.graded_at for beat in active if beat.graded_at), default=None)),
        "status": verdict.status.value,
        "reasons": verdict.reasons,
        "notes": verdict.notes,
        "generated_at": to_iso(now.wall),
        "freshness": _freshness(records, now),
        "queue_depth": _total(beat.waiting for beat in active),
        "active_tasks": _total(beat.looking for beat in active),
        "failure_ratio": max(_known(beat.rates.failure_ratio for beat in active), default=None),
        "paused_matches": [str(record.ref) for record in records if record.phase is Phase.PAUSED],
        "last_success_at": iso_or_none(max((at for at in successes if at is not None), default=None)),
        "config_snapshot": {**THRESHOLDS, **config},
        "matches": _match_entries(beats, records, now),
        "breakers": [msgspec.to_builtins(note) for beat in active for note in beat.breakers],
        "processes": [_process(beat, now) for beat in beats],
        "audit_entries": shown,
    }


def recovery_entry(recovery: Recovery) -> dict[str, Any]:
    return msgspec.structs.asdict(recovery) | {"began_at": to_iso(recovery.began_at)}


def health_log_entry(row: HealthRow) -> dict[str, Any]:
    """Return one row of the health log. Rows of a node have no match."""
    entry = msgspec.structs.asdict(row)
    number, ref = entry.pop("match_id"), entry.pop("ref")
    return entry | {"timestamp": to_iso(row.timestamp), "matchId": number, "match_id": ref}


def scraper_grade(beat: NodeBeat, now: Moment) -> Grade:
    """Return a scraper's own grade, lowered when it is silent or has too many errors."""
    if is_silent(beat, now):
        return Grade.FAILING
    has_errors = beat.errors_last_minute > MAX_ERRORS_A_MINUTE
    return Grade.DEGRADED if has_errors and beat.grade == Grade.HEALTHY else Grade(beat.grade)


def _match_entries(beats: Sequence[NodeBeat], records: Sequence[MonitoringRecord], now: Moment) -> list[dict[str, Any]]:
    """Return every match that is not archived, with its cost in memory and CPU."""
    active = live_beats(beats, now)
    costs = {match_id: cost for beat in active for match_id, cost in beat.costs.items()}
    shown = (record for record in records if record.phase is not Phase.ARCHIVED)
    return [
        _match_entry(
            record, costs.get(record.match_id, MatchCost()), match_grade(record, now, is_running=bool(active)), now
        )
        for record in shown
    ]


def _match_entry(record: MonitoringRecord, cost: MatchCost, grade: Grade, now: Moment) -> dict[str, Any]:
    return {
        "match_id": str(record.ref),
        # Our own path of the match: the site's URL may contain a secret.
        "url": match_path(record),
        "last_update_iso8601": iso_or_none(record.last_poll_at),
        "data_age_seconds": record_age(record, now),
        "health_status": grade.value,
        "status": record.status.value,
        "phase": record.phase.value,
        "sync": record.sync.value,
        "last_change_iso8601": iso_or_none(record.changed_at),
        "frozen_since_iso8601": iso_or_none(record.frozen_since),
        "next_try_iso8601": iso_or_none(record.not_before),
        "interval_seconds": record.interval_seconds,
        "pace": record.tempo,
        "is_important": record.is_important,
        "is_on_hold": record.is_on_hold,
        "is_held": record.is_held,
        "restarts": record.restarts,
        "error_count": record.consecutive_failures,
        "total_errors": record.total_failures,
        "total_polls": record.total_polls,
        "memory_mb": megabytes(cost.pss_bytes),
        "cpu_percent": cost.cpu_percent,
    }


def _scraper(beat: NodeBeat, now: Moment) -> dict[str, Any]:
    used = beat.resources
    return {
        "scraper_id": beat.node,
        "start_time": to_iso(beat.started_at),
        "last_heartbeat": to_iso(beat.beat_at),
        "uptime_seconds": beat.uptime_seconds,
        "errors_last_minute": beat.errors_last_minute,
        "memory_mb": _memory_mb(beat),
        "cpu_percent": used.cpu_percent if used else None,
        "loop_lag_seconds": beat.loop_lag_seconds,
        "health_status": scraper_grade(beat, now).value,
        "health_since": iso_or_none(beat.graded_at),
    }


def _process(beat: NodeBeat, now: Moment) -> dict[str, Any]:
    used = beat.resources
    return {
        "scraper_id": beat.node,
        "pid": beat.pid,
        "grade": beat.grade,
        "grade_since": iso_or_none(beat.graded_at),
        "grade_reason": beat.grade_reason or None,
        "beat_age_seconds": shown_age(beat.silence_at(now)),
        "uptime_seconds": beat.uptime_seconds,
        "pids": used.pids if used else None,
        "rss_mb": megabytes(used.rss_bytes if used else None),
        "pss_mb": megabytes(used.pss_bytes if used else None),
        "peak_rss_mb": megabytes(used.peak_rss_bytes if used else None),
        "own_rss_mb": megabytes(beat.rss_bytes),
        "cpu_percent": used.cpu_percent if used else None,
        "loop_lag_seconds": beat.loop_lag_seconds,
        "listings": {source: iso_or_none(at) for source, at in beat.listed_at.items()},
    }


def _freshness(records: Sequence[MonitoringRecord], now: Moment) -> dict[str, Any]:
    """Return the distribution of the ages of all matches in play that are not paused."""
    ages = _known(
        record_age(record, now) for record in records if record.status in IN_PLAY and record.phase is not Phase.PAUSED
    )
    median = percentile(ages, 0.5)
    return {
        "median": median,
        "p50": median,
        "p95": percentile(ages, 0.95),
        "max": max(ages, default=None),
        "count": len(ages),
    }


def _memory_mb(beat: NodeBeat) -> float | None:
    """Return the memory of a scraper with its children; of itself alone until the whole tree was measured."""
    return megabytes(beat.resources.rss_bytes if beat.resources else beat.rss_bytes)


def _total(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return round(sum(known), 1) if known else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return round(sum(known) / len(known), 1) if known else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
