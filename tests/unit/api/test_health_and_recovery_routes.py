from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

import httpx
import pytest
from msgspec.structs import replace

from longstop.api.health_cache_and_pollers import (
    BLIND_AFTER_SECONDS,
    HANGING_AFTER_SECONDS,
    OLD_AFTER_SECONDS,
    HealthCache,
)
from longstop.clock import Moment
from longstop.errors import StorageError, StoreDamaged
from longstop.model.match import Phase
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.model.scraper_report import BreakerNote, NodeBeat
from tests.readers import (
    MOMENT,
    NOW,
    ManualClock,
    MemoryHot,
    MemoryReader,
    MemoryRecoveries,
    a_beat,
    a_hot_row,
    a_record,
)

LOST = StorageError("disk I/O error at /secret/path")


def a_recovery(name: str = "r1") -> Recovery:
    return Recovery(
        id=name,
        kind=RecoveryKind.RECYCLE,
        trigger="nothing in play was read for 92 s",
        subject="node-1",
        process="scraper",
        began_at=NOW,
        pids_before=(7,),
        pids_after=(8,),
        duration_seconds=4.2,
        outcome=RecoveryOutcome.RECOVERED,
        observed="crex_M1 was read again",
    )


@contextmanager
def hanging(hot: MemoryHot, health_cache: HealthCache) -> Iterator[None]:
    """Keep the health cache waiting for the live view, in its thread."""
    is_asked, may_answer = Event(), Event()

    async def beats() -> list[NodeBeat]:
        is_asked.set()
        assert may_answer.wait(30)
        return hot.heard

    hot.beats = beats  # type: ignore[method-assign]
    with health_cache.polling():
        assert is_asked.wait(30)
        yield
        may_answer.set()


@pytest.mark.req("FR-012")
async def test_health_needs_no_token_and_is_never_cached(stranger: httpx.AsyncClient) -> None:
    answer = await stranger.get("/health")

    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    assert (answer.json()["status"], answer.json()["grade"]) == ("healthy", "healthy")
    assert answer.json()["uptime_seconds"] == 300.0


async def test_health_is_what_was_last_seen_with_its_age(
    stranger: httpx.AsyncClient, hot: MemoryHot, clock: ManualClock, health_cache: HealthCache
) -> None:
    hot.heard.clear()
    clock.advance(2.5)

    kept = await stranger.get("/health")
    await health_cache.poll()
    seen = await stranger.get("/health")

    assert (kept.status_code, kept.json()["timestamp"]) == (200, "2026-11-15T12:00:00.000Z")
    assert kept.json()["snapshot_age_seconds"] == 2.5
    assert (seen.status_code, seen.json()["status"], seen.json()["snapshot_age_seconds"]) == (503, "down", 0.0)


@pytest.mark.req("NFR-006")
async def test_health_ages_until_the_live_view_counts_as_unreadable(
    stranger: httpx.AsyncClient, hot: MemoryHot, clock: ManualClock, health_cache: HealthCache
) -> None:
    hot.broken = LOST

    clock.advance(OLD_AFTER_SECONDS)
    await health_cache.poll()
    kept = await stranger.get("/health")
    clock.advance(2)
    old = await stranger.get("/health")
    clock.advance(BLIND_AFTER_SECONDS - OLD_AFTER_SECONDS - 1.9)
    blind = await stranger.get("/health")

    assert (kept.status_code, kept.json()["status"], kept.json()["reasons"]) == (200, "healthy", [])
    assert (old.status_code, old.json()["status"], old.json()["grade"]) == (200, "degraded", "healthy")
    assert old.json()["reasons"] == ["live data is 7 s old"]
    assert (blind.status_code, blind.json()["status"], blind.json()["grade"]) == (503, "down", None)
    assert blind.json()["reasons"] == ["the live view could not be read for 10 s"]
    # The last known facts are still reported, with their time.
    assert blind.json()["per_match_status"][0]["match_id"] == "crex_M1"
    assert "secret" not in blind.text


async def test_health_before_the_first_read_reports_that() -> None:
    hot, clock = MemoryHot(beats=[a_beat()]), ManualClock()
    hot.broken = LOST
    health_cache = HealthCache(reader=MemoryReader(), hot=hot, audit=MemoryRecoveries(), clock=clock, started=MOMENT)
    await health_cache.poll()

    status, document = health_cache.health()

    assert status == 503
    assert list(document["reasons"]) == ["the live view cannot be read"]
    assert document["snapshot_age_seconds"] is None


@pytest.mark.req("FR-012")
async def test_health_is_not_called_healthy_while_no_data_can_be_served(
    stranger: httpx.AsyncClient, reader: MemoryReader, hot: MemoryHot, clock: ManualClock, health_cache: HealthCache
) -> None:
    reader.broken = LOST

    clock.advance(BLIND_AFTER_SECONDS)
    hot.heard = [a_beat()]
    await health_cache.poll()
    kept = await stranger.get("/health")
    clock.advance(2)
    unread = await stranger.get("/health")
    reader.broken = None
    await health_cache.poll()
    recovered = await stranger.get("/health")

    assert (kept.json()["status"], kept.json()["reasons"]) == ("healthy", [])
    assert (unread.status_code, unread.json()["status"], unread.json()["grade"]) == (503, "down", "healthy")
    assert unread.json()["reasons"] == ["the store could not be read for 12 s"]
    assert recovered.json()["status"] == "healthy"


async def test_a_store_that_was_never_read_is_given_the_same_time_from_the_start() -> None:
    reader, clock = MemoryReader(), ManualClock()
    reader.broken = LOST
    hot = MemoryHot(beats=[a_beat()])
    health_cache = HealthCache(reader=reader, hot=hot, audit=MemoryRecoveries(), clock=clock, started=Moment.of(clock))

    await health_cache.poll()
    early = health_cache.status()
    clock.advance(BLIND_AFTER_SECONDS + 1)
    await health_cache.poll()
    late = health_cache.status()

    assert (early["status"], early["reasons"]) == ("healthy", ())
    assert (late["status"], late["reasons"]) == ("down", ("the store could not be read for 11 s",))


async def test_whatever_else_is_wrong_an_unread_store_is_named_beside_it(
    stranger: httpx.AsyncClient, reader: MemoryReader, hot: MemoryHot, clock: ManualClock, health_cache: HealthCache
) -> None:
    reader.broken = hot.broken = LOST
    clock.advance(BLIND_AFTER_SECONDS + 1)
    await health_cache.poll()

    answer = await stranger.get("/health")

    assert (answer.status_code, answer.json()["status"]) == (503, "down")
    assert answer.json()["reasons"] == [
        "the live view could not be read for 11 s",
        "the store could not be read for 11 s",
    ]


async def test_live_answers_whatever_is_lost_with_the_lag_of_the_loop(
    stranger: httpx.AsyncClient, hot: MemoryHot, reader: MemoryReader
) -> None:
    hot.broken = reader.broken = LOST

    answer = await stranger.get("/live")

    assert (answer.status_code, answer.json()) == (200, {"status": "alive", "loop_lag_seconds": 0.25})


async def test_ready_when_the_store_is_readable_and_a_scraper_is_alive(stranger: httpx.AsyncClient) -> None:
    answer = await stranger.get("/ready")

    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


async def test_not_ready_without_store_and_scraper_and_it_says_so(
    stranger: httpx.AsyncClient, hot: MemoryHot, reader: MemoryReader, clock: ManualClock, health_cache: HealthCache
) -> None:
    reader.broken = LOST
    hot.heard.clear()
    clock.advance(BLIND_AFTER_SECONDS + 1)
    await health_cache.poll()

    answer = await stranger.get("/ready")

    assert answer.status_code == 503
    assert answer.json()["reasons"] == ["the store cannot be read", "no scraper has run here yet"]
    assert answer.json()["error"] == "Not ready: the store cannot be read; no scraper has run here yet."


async def test_not_ready_when_the_live_view_is_lost(
    stranger: httpx.AsyncClient, hot: MemoryHot, clock: ManualClock, health_cache: HealthCache
) -> None:
    hot.broken = LOST
    clock.advance(BLIND_AFTER_SECONDS + 1)
    await health_cache.poll()

    answer = await stranger.get("/ready")

    assert (answer.status_code, answer.json()["reasons"]) == (503, ["the live view cannot be read"])


async def test_a_silent_scraper_makes_unready_even_without_a_new_poll(
    stranger: httpx.AsyncClient, hot: MemoryHot, clock: ManualClock, health_cache: HealthCache
) -> None:
    hot.heard = [a_beat(ago=10)]
    await health_cache.poll()

    clock.advance(6)
    answer = await stranger.get("/ready")

    assert answer.json()["reasons"] == ["no heartbeat from a scraper for 16 s"]


@pytest.mark.parametrize("path", ["/status", "/recoveries"])
async def test_full_status_needs_a_token(stranger: httpx.AsyncClient, path: str) -> None:
    answer = await stranger.get(path)

    assert answer.status_code == 401


@pytest.mark.req("MON-10")
async def test_status_has_everything(
    client: httpx.AsyncClient, recoveries: MemoryRecoveries, health_cache: HealthCache
) -> None:
    recoveries.held = [a_recovery(f"r{number}") for number in range(12)]
    await health_cache.poll()

    document = (await client.get("/status")).json()

    assert (document["grade"], document["status"], document["reasons"]) == ("healthy", "healthy", [])
    assert document["freshness"] == {"median": 1.5, "p50": 1.5, "p95": 1.5, "max": 1.5, "count": 1}
    assert document["config_snapshot"]["failing_seconds"] == 120.0
    assert [match["match_id"] for match in document["matches"]] == ["crex_M1"]
    assert [entry["id"] for entry in document["audit_entries"]] == [f"r{number}" for number in range(10)]
    assert document["processes"][0]["pid"] == 4711
    assert (document["snapshot_age_seconds"], document["api_loop_lag_seconds"]) == (0.0, 0.25)


@pytest.mark.req("FLD-10")
async def test_status_knows_nothing_rather_than_zero(client: httpx.AsyncClient) -> None:
    document = (await client.get("/status")).json()

    unknown = {name: document[name] for name in ("queue_depth", "active_tasks", "failure_ratio", "last_success_at")}
    assert set(unknown.values()) == {None}
    assert {document["processes"][0][name] for name in ("rss_mb", "pss_mb", "peak_rss_mb", "cpu_percent")} == {None}


@pytest.mark.req("MON-9")
async def test_recoveries_are_listed_with_what_came_of_them(
    client: httpx.AsyncClient, recoveries: MemoryRecoveries, health_cache: HealthCache
) -> None:
    recoveries.held = [a_recovery("r2"), a_recovery("r1")]
    await health_cache.poll()

    document = (await client.get("/recoveries", params={"limit": 1})).json()

    assert document["snapshot_age_seconds"] == 0.0
    assert document["recoveries"] == [
        {
            "id": "r2",
            "kind": "recycle",
            "trigger": "nothing in play was read for 92 s",
            "subject": "node-1",
            "process": "scraper",
            "began_at": "2026-11-15T12:00:00.000Z",
            "duration_seconds": 4.2,
            "pids_before": [7],
            "pids_after": [8],
            "outcome": "recovered",
            "observed": "crex_M1 was read again",
            "count": 1,
        }
    ]


async def test_an_audit_that_was_never_read_is_no_empty_one() -> None:
    recoveries = MemoryRecoveries()
    recoveries.broken = LOST
    health_cache = HealthCache(
        reader=MemoryReader(), hot=MemoryHot(), audit=recoveries, clock=ManualClock(), started=MOMENT
    )
    await health_cache.poll()

    assert health_cache.recoveries() is None
    assert health_cache.status()["audit_entries"] is None


async def test_while_a_file_hangs_no_request_reads_it(
    client: httpx.AsyncClient, hot: MemoryHot, health_cache: HealthCache, clock: ManualClock
) -> None:
    before = await client.get("/cricket-data/matches")
    with hanging(hot, health_cache):
        clock.advance(HANGING_AFTER_SECONDS + 0.1)
        during = await client.get("/cricket-data/matches")
        health = await client.get("/health")

    assert before.status_code == 200
    assert (during.status_code, during.headers["Retry-After"]) == (503, "5")
    assert health.status_code == 200


@pytest.mark.req("MON-8", "FR-012")
async def test_health_is_503_while_nothing_in_play_is_polled(
    stranger: httpx.AsyncClient, hot: MemoryHot, health_cache: HealthCache
) -> None:
    hot.held = {1: a_hot_row(a_record(polled=181))}
    await health_cache.poll()

    answer = await stranger.get("/health")

    assert answer.status_code == 503
    assert (answer.json()["status"], answer.json()["grade"]) == ("degraded", "failing")


@pytest.mark.req("FR-012")
async def test_a_rate_limited_site_is_reported(
    stranger: httpx.AsyncClient, hot: MemoryHot, health_cache: HealthCache
) -> None:
    rest = BreakerNote(scope="rest", subject="crex", state="open", since=NOW, left_seconds=43.0)
    hot.heard = [replace(a_beat(), breakers=(rest,))]
    await health_cache.poll()

    answer = await stranger.get("/health")

    assert (answer.json()["status"], answer.json()["reasons"]) == ("healthy", [])
    assert answer.json()["notes"] == ["crex is rate-limited for another 42 s (Retry-After)"]


async def test_what_an_operator_paused_is_a_note_and_not_a_problem(
    stranger: httpx.AsyncClient, hot: MemoryHot, health_cache: HealthCache
) -> None:
    hot.held = {1: a_hot_row(replace(a_record(phase=Phase.PAUSED), is_on_hold=True))}
    await health_cache.poll()

    answer = await stranger.get("/health")

    assert (answer.status_code, answer.json()["status"], answer.json()["reasons"]) == (200, "healthy", [])
    assert answer.json()["notes"] == ["paused by an operator: crex_M1"]


async def test_a_damaged_store_is_red_at_once_without_its_path(
    stranger: httpx.AsyncClient, reader: MemoryReader, health_cache: HealthCache
) -> None:
    reader.broken = StoreDamaged(
        "/secret/path/matches.db: the file is missing", cause="matches.db: the file is missing"
    )
    await health_cache.poll()

    health, ready = await stranger.get("/health"), await stranger.get("/ready")

    assert (health.status_code, health.json()["status"], ready.status_code) == (503, "down", 503)
    assert health.json()["reasons"] == ["the store cannot be read: matches.db: the file is missing"]
    assert "secret" not in health.text + ready.text


async def test_a_scraper_whose_store_was_replaced_stops_all_reads_of_it(
    stranger: httpx.AsyncClient, hot: MemoryHot, health_cache: HealthCache
) -> None:
    hot.heard = [replace(a_beat(), store_problem="matches.db: matches.db was replaced", is_store_lost=True)]
    await health_cache.poll()

    health, ready = await stranger.get("/health"), await stranger.get("/ready")

    assert (health.status_code, ready.status_code) == (503, 503)
    assert health.json()["reasons"] == ["node-1 cannot store anything: matches.db: matches.db was replaced"]
    assert ready.json()["reasons"] == ["matches.db: matches.db was replaced"]
    assert health_cache.is_store_unusable()


async def test_a_full_disk_is_down_but_what_is_stored_is_still_served(clock: ManualClock) -> None:
    hot = MemoryHot(beats=[a_beat()])
    cache = HealthCache(
        reader=MemoryReader(),
        hot=hot,
        audit=MemoryRecoveries(),
        clock=clock,
        started=MOMENT,
        is_disk_full=lambda: True,
    )
    await cache.poll()

    status, document = cache.health()

    assert (status, document["status"]) == (503, "down")
    assert [*document["reasons"]] == ["the disk of the data directory is full: nothing is stored until there is room"]
    assert cache.unready_reasons() == []
    assert not cache.is_store_unusable()


async def test_damaged_operations_tables_degrade_the_health(clock: ManualClock) -> None:
    audit = MemoryRecoveries()
    audit.broken = StoreDamaged("/secret/ops.db: the file is missing", cause="ops.db: the file is missing")
    cache = HealthCache(
        reader=MemoryReader(), hot=MemoryHot(beats=[a_beat()]), audit=audit, clock=clock, started=MOMENT
    )
    await cache.poll()

    status, document = cache.health()

    assert (status, document["status"]) == (200, "degraded")
    assert [*document["reasons"]] == ["the operations tables cannot be read: ops.db: the file is missing"]
