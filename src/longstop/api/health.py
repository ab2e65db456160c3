"""Health: a pure grade and the document around it."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct

from longstop.api.shapes import iso_or_none, match_path
from longstop.api.view import age_seconds
from longstop.clock import to_iso
from longstop.model.match import MatchStatus, MonitoringRecord, Phase, SyncState
from longstop.storage.base import NodeBeat

#: A scraper not heard for this long counts as gone.
SILENT_AFTER = timedelta(seconds=15)
#: A match in play should have been looked at within this long, also in a break.
STALE_AFTER = timedelta(seconds=60)
#: A quiet source is asked for its listing every minute by default; three of them missed are no accident.
UNLISTED_AFTER = timedelta(seconds=180)
#: When nothing in play was read for this long, nobody should be sent here for live data.
UNREAD_AFTER = timedelta(seconds=180)
MAX_ERRORS_A_MINUTE = 10
_TOO_MANY = f"more than {MAX_ERRORS_A_MINUTE} errors a minute"
_NAMED_MATCHES = 5
_IN_PLAY = frozenset({MatchStatus.LIVE, MatchStatus.BREAK})


class HealthStatus(StrEnum):
    """How it goes, over all."""

    HEALTHY = "healthy"
    #: Served, but something in play is old or not compared with its source yet.
    DEGRADED = "degraded"
    #: Nothing new can be expected.
    DOWN = "down"


class Grade(Struct, frozen=True, kw_only=True):
    """A status and the sentences that explain it; none when all is well."""

    status: HealthStatus
    reasons: tuple[str, ...] = ()


def heard(beats: Sequence[NodeBeat], now: datetime) -> list[NodeBeat]:
    """Return the scrapers that gave a sign of life lately."""
    # A beat from the future is of a clock that was set back: it says as little as an old one.
    return [beat for beat in beats if abs(now - beat.beat_at) <= SILENT_AFTER]


def grade(beats: Sequence[NodeBeat], records: Sequence[MonitoringRecord], now: datetime) -> Grade:
    """Return how it goes. A night without a match is healthy: what counts is that someone watches."""
    active = heard(beats, now)
    if not active:
        return _down(f"no scraper has been heard for {SILENT_AFTER.seconds} s")
    is_failing = all(beat.errors_last_minute > MAX_ERRORS_A_MINUTE for beat in active)
    if is_failing and not any(_is_fresh(record, now) for record in records):
        return _down(f"{_TOO_MANY}, and no match was read for {STALE_AFTER.seconds} s")
    in_play = [record for record in records if record.status in _IN_PLAY]
    if _is_all_unread([record for record in in_play if record.phase is not Phase.PAUSED], now):
        return _down(f"no match in play was read for {UNREAD_AFTER.seconds} s", *_unread_listings(active, now))
    failing = [record for record in records if record.consecutive_failures] if is_failing else []
    stale = [record for record in in_play if _is_stale(record, now)]
    unsynced = [record for record in in_play if record.sync is not SyncState.IN_SYNC]
    paused = [record for record in records if record.phase is Phase.PAUSED]
    frozen = [record for record in in_play if record.frozen_since is not None]
    reasons = (
        *_unread_listings(active, now),
        *_complaint(f"{_TOO_MANY}, and failing", failing),
        *_complaint(f"in play and older than {STALE_AFTER.seconds} s", stale),
        *_complaint("in play and not in sync", unsynced),
        *_complaint("paused, since it was refused or could not be read", paused),
        *_complaint("in play, and what the site shows of it stands still", frozen),
    )
    return Grade(status=HealthStatus.DEGRADED if reasons else HealthStatus.HEALTHY, reasons=reasons)


def unreadable() -> Grade:
    return _down("the live view cannot be read")


def _down(*reasons: str) -> Grade:
    return Grade(status=HealthStatus.DOWN, reasons=reasons)


def _is_fresh(record: MonitoringRecord, now: datetime) -> bool:
    return record.last_poll_at is not None and now - record.last_poll_at <= STALE_AFTER


def _unread_listings(beats: Sequence[NodeBeat], now: datetime) -> Iterator[str]:
    """Yield a sentence for each source that nobody has heard of: a listing that fails is not an idle night."""
    for beat in beats:
        for source, listed_at in sorted(beat.listed_at.items()):
            if now - (listed_at or beat.started_at) > UNLISTED_AFTER:
                silent = age_seconds(listed_at or beat.started_at, now)
                yield f"the listing of {source} was not read for {silent:.0f} s"


def _is_stale(record: MonitoringRecord, now: datetime) -> bool:
    return _is_older(record, now, STALE_AFTER)


def _is_all_unread(in_play: Sequence[MonitoringRecord], now: datetime) -> bool:
    """Return whether nothing was read for long; what was never read is only about to be."""
    was_read = any(record.last_poll_at is not None for record in in_play)
    return was_read and all(_is_older(record, now, UNREAD_AFTER) for record in in_play)


def _is_older(record: MonitoringRecord, now: datetime, age: timedelta) -> bool:
    return record.last_poll_at is None or now - record.last_poll_at > age


def _complaint(what: str, records: list[MonitoringRecord]) -> tuple[str, ...]:
    if not records:
        return ()
    named = ", ".join(str(record.ref) for record in records[:_NAMED_MATCHES])
    more = len(records) - _NAMED_MATCHES
    return (f"{what}: {named}" + (f" and {more} more" if more > 0 else ""),)


def health_document(
    graded: Grade,
    beats: Sequence[NodeBeat],
    records: Sequence[MonitoringRecord],
    *,
    started_at: datetime,
    now: datetime,
) -> dict[str, Any]:
    """Return the health as JSON. Every number is measured; what is not measured is null, never zero."""
    active = heard(beats, now)
    memory = [_megabytes(beat.rss_bytes) for beat in active]
    total_memory = round(sum(memory), 1) if memory else None
    return {
        "status": graded.status.value,
        "reasons": graded.reasons,
        "timestamp": to_iso(now),
        "uptime_seconds": age_seconds(started_at, now),
        "active_scraper_count": len(active),
        "total_matches_scraping": sum(record.phase is Phase.ACTIVE for record in records),
        "total_memory_mb": total_memory,
        "scrapers": [_scraper(beat, now) for beat in beats],
        "per_match_status": [_match(record, now) for record in records if record.phase is not Phase.ARCHIVED],
        "resources": {
            "total_memory_mb": total_memory,
            "average_memory_mb": round(sum(memory) / len(memory), 1) if memory else None,
            "peak_memory_mb": None,
            "total_cpu_percent": None,
        },
        "errors": {
            "last_minute": sum(beat.errors_last_minute for beat in active) if active else None,
            "last_hour": None,
        },
        "performance": {"oldest_in_play_seconds": _oldest_in_play(records, now)},
    }


def _scraper(beat: NodeBeat, now: datetime) -> dict[str, Any]:
    return {
        "scraper_id": beat.node,
        "start_time": to_iso(beat.started_at),
        "last_heartbeat": to_iso(beat.beat_at),
        "uptime_seconds": age_seconds(beat.started_at, beat.beat_at),
        "errors_last_minute": beat.errors_last_minute,
        "memory_mb": _megabytes(beat.rss_bytes),
        "health_status": _scraper_status(beat, now),
    }


def _scraper_status(beat: NodeBeat, now: datetime) -> str:
    if now - beat.beat_at > SILENT_AFTER:
        return "failing"
    return "degraded" if beat.errors_last_minute > MAX_ERRORS_A_MINUTE else "healthy"


def _match(record: MonitoringRecord, now: datetime) -> dict[str, Any]:
    polled_at = record.last_poll_at
    return {
        "match_id": str(record.ref),
        # Our own address of the match: the site's may carry a secret.
        "url": match_path(record),
        "last_update_iso8601": iso_or_none(polled_at),
        "data_age_seconds": age_seconds(polled_at, now) if polled_at else None,
        "status": record.status.value,
        "phase": record.phase.value,
        "sync": record.sync.value,
        "last_change_iso8601": iso_or_none(record.changed_at),
        "frozen_since_iso8601": iso_or_none(record.frozen_since),
        "next_try_iso8601": iso_or_none(record.not_before),
        "interval_seconds": record.interval_seconds,
        "pace": record.tempo,
        "is_important": record.is_important,
        "restarts": record.restarts,
        "error_count": record.consecutive_failures,
        "total_errors": record.total_failures,
        "total_polls": record.total_polls,
        "memory_mb": None,
    }


def _oldest_in_play(records: Sequence[MonitoringRecord], now: datetime) -> float | None:
    polls = [record.last_poll_at for record in records if record.status in _IN_PLAY and record.last_poll_at]
    return age_seconds(min(polls), now) if polls else None


def _megabytes(count: int) -> float:
    return round(count / 1024 / 1024, 1)
