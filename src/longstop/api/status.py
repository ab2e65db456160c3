"""The document of `/status`: the whole picture, for those who run it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from longstop.api.health import added, match_entries, megabytes
from longstop.api.shapes import iso_or_none, record_age, shown_age
from longstop.clock import Moment, to_iso
from longstop.model.match import IN_PLAY, MonitoringRecord, Phase
from longstop.model.recovery import Recovery
from longstop.storage.base import NodeBeat
from longstop.supervision import grades
from longstop.supervision.grades import percentile
from longstop.supervision.verdict import Verdict, heard

#: Of the audit, so many of the newest.
SHOWN_RECOVERIES = 10

#: By what the grades are decided, beside what is set.
THRESHOLDS = {
    "evaluated_every_seconds": grades.EVALUATED_EVERY_SECONDS,
    "degraded_seconds": grades.OLD_SECONDS,
    "failing_seconds": grades.TOO_OLD_SECONDS,
    "good_intervals": grades.GOOD_INTERVALS,
}


def status_document(
    judged: Verdict,
    beats: Sequence[NodeBeat],
    records: Sequence[MonitoringRecord],
    recoveries: Sequence[Recovery] | None,
    *,
    config: Mapping[str, Any],
    now: Moment,
) -> dict[str, Any]:
    """Return everything that is known at one moment; `None` for what could not be read."""
    active = heard(beats, now)
    shown = None if recoveries is None else [recovery_entry(each) for each in recoveries[:SHOWN_RECOVERIES]]
    return {
        "grade": judged.grade,
        "since": iso_or_none(min((beat.graded_at for beat in active if beat.graded_at), default=None)),
        "status": judged.status.value,
        "reasons": judged.reasons,
        "notes": judged.notes,
        "generated_at": to_iso(now.wall),
        "freshness": _freshness(records, now),
        "queue_depth": added(beat.waiting for beat in active),
        "active_tasks": added(beat.looking for beat in active),
        "failure_ratio": max(
            (ratio for beat in active if (ratio := beat.rates.failure_ratio) is not None), default=None
        ),
        "paused_matches": [str(record.ref) for record in records if record.phase is Phase.PAUSED],
        "last_success_at": iso_or_none(max(_successes(active), default=None)),
        "config_snapshot": THRESHOLDS | dict(config),
        "matches": match_entries(beats, records, now),
        "breakers": [msgspec.to_builtins(note) for beat in active for note in beat.breakers],
        "processes": [_process(beat, now) for beat in beats],
        "audit_entries": shown,
    }


def recovery_entry(recovery: Recovery) -> dict[str, Any]:
    """Return one entry of the audit."""
    return {
        "id": recovery.id,
        "kind": recovery.kind.value,
        "trigger": recovery.trigger,
        "subject": recovery.subject,
        "process": recovery.process,
        "began_at": to_iso(recovery.began_at),
        "duration_seconds": recovery.duration_seconds,
        "pids_before": recovery.pids_before,
        "pids_after": recovery.pids_after,
        "outcome": recovery.outcome.value,
        "observed": recovery.observed,
        "count": recovery.count,
    }


def _freshness(records: Sequence[MonitoringRecord], now: Moment) -> dict[str, Any]:
    """Return how old the matches in play are that do not rest."""
    ages = [
        age
        for record in records
        if record.status in IN_PLAY
        and record.phase is not Phase.PAUSED
        and (age := record_age(record, now)) is not None
    ]
    median = percentile(ages, 0.5)
    return {
        "median": median,
        "p50": median,
        "p95": percentile(ages, 0.95),
        "max": max(ages, default=None),
        "count": len(ages),
    }


def _successes(beats: Sequence[NodeBeat]) -> list[datetime]:
    return [beat.rates.last_success_at for beat in beats if beat.rates.last_success_at is not None]


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
