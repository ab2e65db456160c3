"""The document of `/health`. Every number is measured; what is not measured is null, never zero."""

from collections.abc import Iterable, Sequence
from typing import Any

from longstop.api.shapes import iso_or_none, match_path, record_age, shown_age
from longstop.clock import Moment, to_iso
from longstop.model.match import IN_PLAY, MonitoringRecord, Phase
from longstop.model.resources import MatchCost
from longstop.storage.base import NodeBeat
from longstop.supervision.grades import Grade, match_grade
from longstop.supervision.verdict import MAX_ERRORS_A_MINUTE, heard, is_silent


def health_facts(
    beats: Sequence[NodeBeat],
    records: Sequence[MonitoringRecord],
    *,
    started: Moment,
    now: Moment,
) -> dict[str, Any]:
    """Return what is known; the verdict on it, and how old it is, are said when it is served."""
    active = heard(beats, now)
    memory = [memory_mb(beat) for beat in active]
    total_memory = added(memory)
    return {
        "timestamp": to_iso(now.wall),
        "uptime_seconds": shown_age(now.monotonic - started.monotonic),
        "active_scraper_count": len(active),
        "total_matches_scraping": sum(record.phase is Phase.ACTIVE for record in records),
        "total_memory_mb": total_memory,
        "scrapers": [_scraper(beat, now) for beat in beats],
        "per_match_status": match_entries(beats, records, now),
        "resources": {
            "total_memory_mb": total_memory,
            "average_memory_mb": mean(memory),
            "peak_memory_mb": added(megabytes(beat.resources.peak_rss_bytes) for beat in active if beat.resources),
            "total_cpu_percent": added(beat.resources.cpu_percent for beat in active if beat.resources),
        },
        "errors": {
            "last_minute": added(beat.errors_last_minute for beat in active),
            "last_hour": added(beat.rates.errors_last_hour for beat in active),
            "circuit_breakers": [
                {"name": f"{note.scope} {note.subject}", "state": note.state.upper()}
                for beat in active
                for note in beat.breakers
            ],
        },
        "performance": {
            "average_latency_ms": mean(beat.rates.average_latency_ms for beat in active),
            "p95_latency_ms": max(_known(beat.rates.p95_latency_ms for beat in active), default=None),
            "updates_per_minute": added(beat.rates.updates_last_minute for beat in active),
            "oldest_in_play_seconds": _oldest_in_play(records, now),
        },
    }


def match_entries(beats: Sequence[NodeBeat], records: Sequence[MonitoringRecord], now: Moment) -> list[dict[str, Any]]:
    """Return how each match is that is not archived, with what it costs its scraper."""
    costs = {match_id: cost for beat in heard(beats, now) for match_id, cost in beat.costs.items()}
    shown = (record for record in records if record.phase is not Phase.ARCHIVED)
    return [_match_entry(record, costs.get(record.match_id, MatchCost()), now) for record in shown]


def _match_entry(record: MonitoringRecord, cost: MatchCost, now: Moment) -> dict[str, Any]:
    return {
        "match_id": str(record.ref),
        # Our own address of the match: the site's may carry a secret.
        "url": match_path(record),
        "last_update_iso8601": iso_or_none(record.last_poll_at),
        "data_age_seconds": record_age(record, now),
        "health_status": match_grade(record, now).value,
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
        "memory_mb": memory_mb(beat),
        "cpu_percent": used.cpu_percent if used else None,
        "loop_lag_seconds": beat.loop_lag_seconds,
        "health_status": scraper_grade(beat, now).value,
        "health_since": iso_or_none(beat.graded_at),
    }


def scraper_grade(beat: NodeBeat, now: Moment) -> Grade:
    """Return how a scraper is: as it says, unless it says nothing, or has too many errors to be believed."""
    if is_silent(beat, now):
        return Grade.FAILING
    is_troubled = beat.errors_last_minute > MAX_ERRORS_A_MINUTE
    return Grade.DEGRADED if is_troubled and beat.grade == Grade.HEALTHY else Grade(beat.grade)


def memory_mb(beat: NodeBeat) -> float | None:
    """Return what a scraper and all that it has started hold; of itself alone before that was measured."""
    return megabytes(beat.resources.rss_bytes if beat.resources else beat.rss_bytes)


def megabytes(count: int | None) -> float | None:
    return None if count is None else round(count / 1024 / 1024, 1)


def added(values: Iterable[float | None]) -> float | None:
    """Return the sum of what is known; `None` when nothing is."""
    known = _known(values)
    return round(sum(known), 1) if known else None


def mean(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return round(sum(known) / len(known), 1) if known else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _oldest_in_play(records: Sequence[MonitoringRecord], now: Moment) -> float | None:
    return max(_known(record_age(record, now) for record in records if record.status in IN_PLAY), default=None)
