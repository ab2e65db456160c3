import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from longstop.api.health_documents import StatusSnapshot, health_facts, scraper_grade
from longstop.model.match import Phase
from longstop.model.polling_status import MonitoringRecord
from longstop.model.scraper_report import BreakerNote, MatchCost, NodeBeat, ProcessResources, Rates
from longstop.supervision.health_grade_and_recovery import Grade
from longstop.supervision.health_verdict import assess_health
from tests.readers import MOMENT, NOW, a_beat, a_record

MEGABYTE = 1024 * 1024


def measured(node: str = "node-1", *, rss_mb: int = 100, cpu: float | None = 5.0) -> NodeBeat:
    resources = ProcessResources(
        pids=(1, 2), rss_bytes=rss_mb * MEGABYTE, peak_rss_bytes=2 * rss_mb * MEGABYTE, cpu_percent=cpu
    )
    return msgspec.structs.replace(a_beat(node), resources=resources)


def facts(beats: Sequence[NodeBeat], records: Sequence[MonitoringRecord]) -> dict[str, Any]:
    verdict = assess_health(beats, records, MOMENT)
    snapshot = StatusSnapshot(verdict=verdict, beats=beats, records=records, taken_at=MOMENT)
    return health_facts(snapshot, started=MOMENT)


@pytest.mark.req("FR-012", "US3.1")
def test_the_document_has_the_measured_numbers() -> None:
    beats = [a_beat("a", errors=2), a_beat("b", errors=1), a_beat("gone", ago=100, errors=50)]
    records = [a_record(1, polled=4), a_record(2, polled=9, phase=Phase.PAUSED), a_record(3, phase=Phase.ARCHIVED)]

    document = facts(beats, records)

    assert document["active_scraper_count"] == 2
    assert document["total_matches_scraping"] == 1
    assert document["total_memory_mb"] == 128.0
    assert document["resources"]["average_memory_mb"] == 64.0
    assert document["errors"]["last_minute"] == 3
    assert document["performance"]["oldest_in_play_seconds"] == 9.0
    assert [scraper["health_status"] for scraper in document["scrapers"]] == ["healthy", "healthy", "failing"]
    assert [match["match_id"] for match in document["per_match_status"]] == ["crex_M1", "crex_M2"]
    assert [match["health_status"] for match in document["per_match_status"]] == ["healthy", "degraded"]
    assert document["per_match_status"][0]["last_update_iso8601"] == "2026-11-15T11:59:56.000Z"


@pytest.mark.parametrize(
    ("beat", "grade"),
    [
        (a_beat(), "healthy"),
        (a_beat(ago=74), "degraded"),
        (msgspec.structs.replace(a_beat(), is_over=True), "degraded"),
    ],
)
def test_a_match_that_no_scraper_polls_any_more_is_not_healthy(beat: NodeBeat, grade: str) -> None:
    document = facts([beat], [a_record(polled=74)])

    assert [match["health_status"] for match in document["per_match_status"]] == [grade]


def test_memory_is_that_of_a_scraper_with_all_that_it_has_started() -> None:
    beats = [measured("a"), measured("b", rss_mb=50, cpu=None)]

    document = facts(beats, [])

    assert document["resources"] == {
        "total_memory_mb": 150.0,
        "average_memory_mb": 75.0,
        "peak_memory_mb": 300.0,
        "total_cpu_percent": 5.0,
    }


def test_recent_work_is_reported() -> None:
    note = BreakerNote(scope="target", subject="crex.example", state="open", since=NOW, reason="canary secret")
    rates = Rates(errors_last_hour=7, updates_last_minute=24, average_latency_ms=12.5, p95_latency_ms=40.0)
    beat = msgspec.structs.replace(a_beat(), rates=rates, breakers=(note,))

    document = facts([beat], [])

    assert document["errors"]["last_hour"] == 7
    assert document["errors"]["circuit_breakers"] == [{"name": "target crex.example", "state": "OPEN"}]
    assert document["performance"]["average_latency_ms"] == 12.5
    assert document["performance"]["p95_latency_ms"] == 40.0
    assert document["performance"]["updates_per_minute"] == 24


@pytest.mark.req("FLD-10")
def test_what_is_not_measured_is_null_and_never_zero() -> None:
    document = facts([], [a_record(polled=None)])

    assert document["total_memory_mb"] is None
    assert set(document["resources"].values()) == {None}
    assert (document["errors"]["last_minute"], document["errors"]["last_hour"]) == (None, None)
    assert set(document["performance"].values()) == {None}
    assert document["per_match_status"][0]["memory_mb"] is None
    assert document["per_match_status"][0]["data_age_seconds"] is None


@pytest.mark.req("FLD-10")
def test_before_the_first_measurement_peak_and_cpu_are_unknown() -> None:
    document = facts([a_beat()], [])

    assert document["resources"]["peak_memory_mb"] is None
    assert document["resources"]["total_cpu_percent"] is None
    assert document["scrapers"][0]["cpu_percent"] is None
    assert document["scrapers"][0]["loop_lag_seconds"] is None


@pytest.mark.parametrize(
    ("beat", "grade"),
    [
        (a_beat(), Grade.HEALTHY),
        (a_beat(errors=11), Grade.DEGRADED),
        (a_beat(ago=16), Grade.FAILING),
        # A beat of an hour to come says as little as an old one.
        (a_beat(ago=-3600), Grade.FAILING),
        (msgspec.structs.replace(a_beat(errors=11), grade="recovering"), Grade.RECOVERING),
    ],
)
def test_a_scraper_is_as_it_says_unless_it_is_silent(beat: NodeBeat, grade: Grade) -> None:
    assert scraper_grade(beat, MOMENT) is grade


def test_since_when_a_scraper_is_as_it_is_stands_beside_it() -> None:
    beat = msgspec.structs.replace(a_beat(), graded_at=NOW - timedelta(minutes=1))

    document = facts([beat], [])

    assert document["scrapers"][0]["health_since"] == "2026-11-15T11:59:00.000Z"


def test_texts_of_a_site_are_not_exposed() -> None:
    record = msgspec.structs.replace(a_record(), last_error="GET https://site/?key=canary failed")
    note = BreakerNote(scope="target", subject="crex.example", state="open", since=NOW, reason="canary")

    document = facts([msgspec.structs.replace(a_beat(), breakers=(note,))], [record])

    assert "canary" not in json.dumps(document)


@pytest.mark.req("US4.1")
def test_a_match_shows_its_cost_while_its_scraper_is_alive() -> None:
    costs = {1: MatchCost(pss_bytes=31 * MEGABYTE, cpu_percent=0.6)}
    heard, gone = (msgspec.structs.replace(a_beat(ago=ago), costs=costs) for ago in (1, 100))

    known = facts([heard], [a_record(1), a_record(2)])["per_match_status"]
    unknown = facts([gone], [a_record(1)])["per_match_status"]

    assert [(each["memory_mb"], each["cpu_percent"]) for each in known] == [(31.0, 0.6), (None, None)]
    assert (unknown[0]["memory_mb"], unknown[0]["cpu_percent"]) == (None, None)
