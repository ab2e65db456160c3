import json
from datetime import timedelta

import msgspec
import pytest

from longstop.api.health import HealthStatus, grade, health_document
from longstop.model.match import MatchStatus, MonitoringRecord, Phase, SyncState
from longstop.storage.base import NodeBeat
from tests.readers import NOW, a_beat, a_record

RECOVERING = SyncState.RECOVERING


def failing(number: int) -> MonitoringRecord:
    return msgspec.structs.replace(a_record(number, polled=600), consecutive_failures=9, status=MatchStatus.UPCOMING)


def unlisted(since: float | None) -> NodeBeat:
    listed_at = None if since is None else NOW - timedelta(seconds=since)
    beat = msgspec.structs.replace(a_beat(), started_at=NOW - timedelta(hours=1))
    return msgspec.structs.replace(beat, listed_at={"crex": listed_at})


def resting(number: int) -> MonitoringRecord:
    return msgspec.structs.replace(a_record(number, polled=600), phase=Phase.PAUSED)


@pytest.mark.req("FR-012")
@pytest.mark.parametrize(
    ("beats", "records", "status"),
    [
        # An idle night: someone watches, nothing is on.
        ([a_beat()], [], "healthy"),
        ([a_beat()], [a_record(polled=3000, status=MatchStatus.UPCOMING)], "healthy"),
        ([a_beat()], [a_record(polled=3000, status=MatchStatus.COMPLETED, sync=RECOVERING)], "healthy"),
        ([a_beat()], [a_record(polled=60)], "healthy"),
        ([a_beat()], [a_record(polled=60.001)], "degraded"),
        ([a_beat()], [a_record(polled=61, status=MatchStatus.BREAK)], "degraded"),
        ([a_beat()], [a_record(polled=None)], "degraded"),
        ([a_beat()], [a_record(1), a_record(2, sync=RECOVERING)], "degraded"),
        # Nothing in play is read any more, whoever is to blame; one that rests does not count.
        ([a_beat()], [a_record(1, polled=181), a_record(2, polled=None)], "down"),
        ([a_beat()], [a_record(1, polled=181), a_record(2, polled=170)], "degraded"),
        ([a_beat()], [resting(1)], "degraded"),
        ([], [a_record()], "down"),
        ([a_beat(ago=15)], [a_record()], "healthy"),
        ([a_beat(ago=15.001)], [a_record()], "down"),
        # A scraper's clock may be ahead of ours.
        ([a_beat(ago=-3)], [a_record()], "healthy"),
        ([a_beat(errors=10)], [], "healthy"),
        ([a_beat(errors=11)], [], "down"),
        # One match fails again and again; the others are read as ever.
        ([a_beat(errors=24)], [a_record(1), failing(2)], "degraded"),
        ([a_beat(errors=24)], [a_record(1, polled=61), failing(2)], "down"),
        # A clock that was set back: the beat is of an hour to come.
        ([a_beat(ago=-3600)], [a_record()], "down"),
        # Nobody has read the list for minutes: that is no idle night.
        ([unlisted(since=179)], [], "healthy"),
        ([unlisted(since=181)], [], "degraded"),
        ([unlisted(since=None)], [], "degraded"),
        ([a_beat("a", errors=11), a_beat("b")], [], "healthy"),
        # The quiet scraper that spoke for the others is gone itself.
        ([a_beat("a", errors=11), a_beat("b", ago=20)], [], "down"),
    ],
)
def test_the_grade_follows_the_table(beats: list[NodeBeat], records: list[MonitoringRecord], status: str) -> None:
    graded = grade(beats, records, NOW)

    assert graded.status == status
    assert bool(graded.reasons) == (graded.status is not HealthStatus.HEALTHY)


def test_the_reasons_name_the_first_matches_and_count_the_rest() -> None:
    records = [a_record(number, polled=90) for number in range(1, 8)]

    graded = grade([a_beat()], records, NOW)

    assert graded.reasons == ("in play and older than 60 s: crex_M1, crex_M2, crex_M3, crex_M4, crex_M5 and 2 more",)


@pytest.mark.req("FR-012")
def test_the_document_has_the_measured_numbers() -> None:
    beats = [a_beat("a", errors=2), a_beat("b", errors=1), a_beat("gone", ago=100, errors=50)]
    records = [a_record(1, polled=4), a_record(2, polled=9, phase=Phase.PAUSED), a_record(3, phase=Phase.ARCHIVED)]

    document = health_document(grade(beats, records, NOW), beats, records, started_at=NOW, now=NOW)

    assert document["active_scraper_count"] == 2
    assert document["total_matches_scraping"] == 1
    assert document["total_memory_mb"] == 128.0
    assert document["resources"]["average_memory_mb"] == 64.0
    assert document["errors"]["last_minute"] == 3
    assert document["performance"]["oldest_in_play_seconds"] == 9.0
    assert [scraper["health_status"] for scraper in document["scrapers"]] == ["healthy", "healthy", "failing"]
    assert [match["match_id"] for match in document["per_match_status"]] == ["crex_M1", "crex_M2"]
    assert document["per_match_status"][0]["last_update_iso8601"] == "2026-11-15T11:59:56.000Z"


@pytest.mark.req("FLD-10")
def test_what_is_not_measured_is_null_and_never_zero() -> None:
    document = health_document(grade([], [], NOW), [], [a_record(polled=None)], started_at=NOW, now=NOW)

    assert document["total_memory_mb"] is None
    assert set(document["resources"].values()) == {None}
    assert set(document["errors"].values()) == {None}
    assert set(document["performance"].values()) == {None}
    assert document["per_match_status"][0]["memory_mb"] is None
    assert document["per_match_status"][0]["data_age_seconds"] is None


def test_the_sites_own_words_stay_inside() -> None:
    record = msgspec.structs.replace(a_record(), last_error="GET https://site/?key=canary failed")

    document = health_document(grade([], [record], NOW), [], [record], started_at=NOW, now=NOW)

    assert "canary" not in json.dumps(document)
