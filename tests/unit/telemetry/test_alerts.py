"""Which events are alerts, under which key, in which words."""

import pytest

from longstop.telemetry.alerts import MAX_TEXT_CHARACTERS, Alert, alert_of
from longstop.telemetry.events import Severity, Telemetry
from longstop.telemetry.events.matches import (
    ErrorRateHigh,
    MatchGone,
    MatchStale,
    PollFailed,
    PollSucceeded,
    SourceFrozen,
    SourceResumed,
    WatchRestarted,
)
from longstop.telemetry.events.processes import (
    AlertUndelivered,
    ChildDied,
    ChildUnresponsive,
    HealthDegraded,
    HealthFailing,
    HealthRecovered,
    HotViewFailed,
    LoopResumed,
    LoopStalled,
    MemoryExceeded,
    MemoryHigh,
    MemoryRecovered,
    RecordsFailed,
    RecoveryFailed,
    StoreFailed,
    TaskEnded,
    TaskFailed,
)
from longstop.telemetry.events.sources import (
    CircuitClosed,
    CircuitHalfOpened,
    CircuitOpened,
    LayoutBroken,
    LayoutRecovered,
)

STALE = MatchStale(match_id=1, ref="crex_11HD", age_seconds=312.4, last_update="2026-11-15T12:00:00.000Z")
OPENED = CircuitOpened(scope="target", subject="crex.example", reason="5 failures in a row", seconds=60.0)
BROKEN = LayoutBroken(
    source="crex",
    resource="live",
    failures=11,
    error_message="a field is missing",
    page="storage/error_pages/x.html",
    retry_in_seconds=300.0,
)
LARGE = MemoryHigh(
    process="scraper", rss_bytes=1300 << 20, pss_bytes=900 << 20, processes=12, soft_limit_bytes=1536 << 20
)
TOO_LARGE = MemoryExceeded(
    process="scraper", limit="soft", limit_bytes=1536 << 20, rss_bytes=1600 << 20, pss_bytes=None, processes=12
)
FAILING = HealthFailing(before="degraded", reason="nothing in play was read for 92 s")
STALLED = LoopStalled(seconds=5.2, stacks="/secret/path")
FROZEN = SourceFrozen(match_id=1, ref="crex_11HD", frozen="match", witness="list", seconds=90.0)


def restarted(reason: str) -> WatchRestarted:
    return WatchRestarted(match_id=1, ref="crex_11HD", reason=reason, age_seconds=60.0, epoch=2)


def alert(event: Telemetry) -> Alert:
    found = alert_of(event)
    assert found is not None
    return found


@pytest.mark.req("FR-016")
@pytest.mark.parametrize(
    ("event", "key", "severity"),
    [
        (STALE, "match.stale crex_11HD", Severity.WARN),
        (
            ErrorRateHigh(match_id=1, ref="crex_11HD", errors=11, types={"FetchTimeout": 11}),
            "errors.rate_high crex_11HD",
            Severity.ERROR,
        ),
        (OPENED, "circuit_opened target crex.example", Severity.WARN),
        (FAILING, "health.failing", Severity.CRITICAL),
        (STALLED, "loop.stalled", Severity.ERROR),
        (
            RecoveryFailed(id="1", kind="recycle", subject="node-1", observed="nothing", duration_seconds=120.0),
            "recovery.failed node-1",
            Severity.ERROR,
        ),
        (BROKEN, "layout.broken crex live", Severity.CRITICAL),
        (FROZEN, "source.frozen crex_11HD", Severity.WARN),
        (MatchGone(match_id=1, ref="crex_11HD", confirmations=3), "match.gone crex_11HD", Severity.WARN),
        (restarted("errors"), "watch.restarted crex_11HD", Severity.WARN),
        (TaskFailed.by(KeyError("x"), task="metrics"), "task.failed metrics KeyError", Severity.CRITICAL),
        (HotViewFailed(error_message="the disk is full"), "hot_view.failed", Severity.ERROR),
        (StoreFailed(ref="crex_11HD", error_type="X", error_message="x"), "store.failed crex_11HD", Severity.ERROR),
        (RecordsFailed(records="errors", error_message="x"), "records.failed errors", Severity.ERROR),
        (ChildDied(process="api", pid=7, exit_code=-9, restart_in_seconds=1.0), "process.died api", Severity.ERROR),
        (ChildUnresponsive(process="api", pid=7, silent_seconds=30.5), "process.unresponsive api", Severity.ERROR),
        (LARGE, "memory.high scraper", Severity.WARN),
        (TOO_LARGE, "memory.exceeded scraper soft", Severity.ERROR),
        (TaskEnded(task="weigh processes"), "task.ended weigh processes", Severity.CRITICAL),
    ],
    ids=lambda value: value.name if isinstance(value, Telemetry) else "",
)
def test_trouble_is_an_alert_whose_key_names_the_condition(event: Telemetry, key: str, severity: Severity) -> None:
    found = alert(event)

    assert (found.key, found.severity, found.is_resolved) == (key, severity, False)
    assert found.title
    assert found.text


@pytest.mark.parametrize(
    ("end", "beginning"),
    [
        (PollSucceeded(match_id=1, ref="crex_11HD", seconds=0.2), STALE),
        (CircuitClosed(scope="target", subject="crex.example", rejected=7), OPENED),
        (LayoutRecovered(source="crex", resource="live", failures=12), BROKEN),
        (SourceResumed(match_id=1, ref="crex_11HD", seconds=95.0), FROZEN),
        (MemoryRecovered(process="scraper", held_bytes=100 << 20), LARGE),
        (HealthRecovered(before="recovering"), FAILING),
        (HealthDegraded(before="failing", reason="older than 60 s: crex_11HD"), FAILING),
        (LoopResumed(seconds=7.0), STALLED),
    ],
    ids=lambda event: event.name,
)
def test_the_end_of_a_condition_carries_its_key(end: Telemetry, beginning: Telemetry) -> None:
    found = alert(end)

    assert found.is_resolved
    assert found.key == alert(beginning).key


@pytest.mark.parametrize(
    "event",
    [
        PollFailed(match_id=1, ref="crex_11HD", error_type="FetchTimeout", error_message="late"),
        restarted("stale"),
        restarted("lifetime"),
        restarted("cool_down"),
        CircuitHalfOpened(scope="target", subject="crex.example"),
        AlertUndelivered(alert="match.stale crex_11HD", attempts=6, reason="no answer"),
        ChildDied(process="scraper", pid=7, exit_code=0, restart_in_seconds=0.0),
    ],
    ids=lambda event: event.name,
)
def test_what_is_routine_or_about_alerts_themselves_is_none(event: Telemetry) -> None:
    assert alert_of(event) is None


def test_the_words_say_what_happened_to_whom() -> None:
    rate = alert(ErrorRateHigh(match_id=1, ref="crex_11HD", errors=12, types={"A": 2, "FetchTimeout": 10}))

    assert alert(STALE).title == "crex_11HD has not been read for 312 s"
    assert rate.text == "10 FetchTimeout, 2 A."
    assert "storage/error_pages/x.html" in alert(BROKEN).text


def test_an_alert_carries_the_events_fields_but_no_trace() -> None:
    failed = alert(TaskFailed(task="metrics", error_type="KeyError", error_message="'x'", stack_trace="a secret path"))

    assert failed.fields == {"task": "metrics", "error_type": "KeyError", "error_message": "'x'"}
    assert alert(STALLED).fields == {"seconds": 5.2}


def test_a_sites_words_are_cut_and_cleaned() -> None:
    found = alert(HotViewFailed(error_message="\ud800" + "x" * 10_000))

    assert len(found.text) == MAX_TEXT_CHARACTERS
    assert found.text.startswith("?x")
    assert found.fields["error_message"] == found.text
