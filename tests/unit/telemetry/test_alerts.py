"""Which events are alerts, under which key, in which words."""

import pytest
from msgspec.structs import replace

from longstop.telemetry import alerts
from longstop.telemetry.alerts import MAX_TEXT_CHARACTERS, Alert, AlertFilter, alert_of
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
    HotViewRebuilt,
    LoopResumed,
    LoopStalled,
    MemoryExceeded,
    MemoryHigh,
    MemoryRecovered,
    RecordsFailed,
    RecoveryFailed,
    StoreFailed,
    StoreRecovered,
    StoreUnusable,
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
        (HotViewRebuilt(error_message="hot.db was deleted", moved_to=""), "hot_view.rebuilt", Severity.WARN),
        (StoreUnusable(error_message="the disk is full"), "store.unusable", Severity.CRITICAL),
        (StoreFailed(ref="crex_11HD", error_type="X", error_message="x"), "store.failed crex_11HD", Severity.ERROR),
        (RecordsFailed(records="errors", error_message="x"), "records.failed errors", Severity.ERROR),
        (ChildDied(process="api", pid=7, exit_code=-9, restart_in_seconds=1.0), "process.died api", Severity.ERROR),
        (ChildUnresponsive(process="api", pid=7, silent_seconds=30.5), "process.unresponsive api", Severity.ERROR),
        (LARGE, "memory.high scraper", Severity.WARN),
        (TOO_LARGE, "memory.exceeded scraper soft", Severity.ERROR),
        (TaskEnded(task="watch memory"), "task.ended watch memory", Severity.CRITICAL),
    ],
    ids=lambda value: value.name if isinstance(value, Telemetry) else "",
)
def test_a_problem_is_an_alert_whose_key_names_the_condition(event: Telemetry, key: str, severity: Severity) -> None:
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
        (StoreRecovered(), StoreUnusable(error_message="the disk is full")),
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
def test_routine_events_and_undelivered_alerts_are_no_alerts(event: Telemetry) -> None:
    assert alert_of(event) is None


def test_title_and_text_say_what_happened() -> None:
    rate = alert(ErrorRateHigh(match_id=1, ref="crex_11HD", errors=12, types={"A": 2, "FetchTimeout": 10}))

    assert alert(STALE).title == "Data of crex_11HD is 312 s old"
    assert rate.text == "10 FetchTimeout, 2 A."
    assert "storage/error_pages/x.html" in alert(BROKEN).text


def test_an_alert_carries_the_events_fields_but_no_trace() -> None:
    failed = alert(TaskFailed(task="metrics", error_type="KeyError", error_message="'x'", stack_trace="a secret path"))

    assert failed.fields == {"task": "metrics", "error_type": "KeyError", "error_message": "'x'"}
    assert alert(STALLED).fields == {"seconds": 5.2}


def test_foreign_text_is_cut_and_cleaned() -> None:
    found = alert(HotViewFailed(error_message="\ud800" + "x" * 10_000))

    assert len(found.text) == MAX_TEXT_CHARACTERS
    assert found.text.startswith("?x")
    assert found.fields["error_message"] == found.text


def problem(key: str = "circuit_opened crex", title: str = "problem") -> Alert:
    return Alert(key=key, severity=Severity.WARN, title=title, text="", fields={})


def resolved(key: str = "circuit_opened crex") -> Alert:
    return Alert(key=key, severity=Severity.INFO, title="recovered", text="", fields={}, is_resolved=True)


def test_a_condition_is_sent_again_after_ten_minutes_with_the_number_suppressed() -> None:
    known = AlertFilter()

    assert known.admit(problem(), 0.0) == [problem()]
    assert known.admit(problem(), 1.0) == []
    assert known.admit(problem(), 599.9) == []
    assert known.admit(problem(), 600.0) == [replace(problem(), suppressed=2)]
    assert known.admit(problem(), 600.1) == []


def test_conditions_do_not_silence_each_other() -> None:
    known = AlertFilter()
    known.admit(problem("a"), 0.0)

    assert known.admit(problem("b"), 0.0) == [problem("b")]


def test_a_crowd_of_conditions_is_sent_as_one() -> None:
    known = AlertFilter()

    sent = [known.admit(problem(f"match.stale crex_{number}"), float(number)) for number in range(50)]

    assert [each.key for alerts in sent for each in alerts] == [
        *(f"match.stale crex_{number}" for number in range(10)),
        "match.stale (many)",
    ]
    assert known.admit(problem("circuit_opened crex"), 50.0) == [problem("circuit_opened crex")]


def crowd(known: AlertFilter, size: int = 13) -> None:
    """Open this many breakers at once: ten alerts are sent, the eleventh stands for the rest."""
    for number in range(size):
        known.admit(problem(f"circuit_opened {number}", f"{number} paused"), float(number))


def test_an_alert_for_many_ends_with_the_last_of_them() -> None:
    known = AlertFilter()
    crowd(known)

    sent = [known.admit(resolved(f"circuit_opened {number}"), 100.0) for number in range(13)]

    ends = [(each.key, each.title) for alerts in sent for each in alerts]
    assert ends[:-1] == [(f"circuit_opened {number}", "recovered") for number in range(10)]
    assert ends[-1] == ("circuit_opened (many)", "recovered, and all like it")
    assert sent[10:12] == [[], []]
    assert known.overdue(610.0) == []


def test_an_alert_for_many_is_sent_again_while_one_of_them_is_active() -> None:
    known = AlertFilter()
    crowd(known)
    known.admit(resolved("circuit_opened 11"), 100.0)

    [again] = known.overdue(610.0)

    assert (again.title, again.suppressed) == ("12 paused, and more like it", 1)


def test_an_alert_for_many_names_one_that_is_still_active() -> None:
    known = AlertFilter()
    crowd(known)
    known.admit(resolved("circuit_opened 12"), 100.0)

    [again] = known.overdue(610.0)

    assert again.title == "11 paused, and more like it"


def test_the_end_of_an_undelivered_crowd_is_not_sent() -> None:
    known = AlertFilter()
    crowd(known, 11)
    known.forget("circuit_opened (many)")

    assert known.admit(resolved("circuit_opened 10"), 100.0) == []


def test_one_of_many_that_was_later_sent_alone_ends_twice() -> None:
    known = AlertFilter()
    crowd(known, 11)
    known.admit(problem("circuit_opened 10"), 200.0)

    own, of_all = known.admit(resolved("circuit_opened 10"), 300.0)

    assert own == resolved("circuit_opened 10")
    assert (of_all.key, of_all.is_resolved) == ("circuit_opened (many)", True)


def test_conditions_behind_one_alert_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "MAX_CONDITIONS", 12)
    known = AlertFilter()
    crowd(known, 24)

    ends = [known.admit(resolved(f"circuit_opened {number}"), 100.0) for number in range(12, 24)]

    assert [each.key for alerts in ends for each in alerts] == ["circuit_opened (many)"]


def test_conditions_that_come_one_by_one_are_no_crowd() -> None:
    known = AlertFilter()

    sent = [known.admit(problem(f"match.stale crex_{number}"), number * 7.0) for number in range(50)]

    assert all(sent)


def test_the_end_is_sent_once_and_only_after_the_beginning() -> None:
    known = AlertFilter()

    assert known.admit(resolved(), 0.0) == []
    known.admit(problem(), 1.0)
    assert known.admit(resolved(), 2.0) == [resolved()]
    assert known.admit(resolved(), 3.0) == []


def test_a_flapping_condition_is_sent_once_a_minute() -> None:
    known = AlertFilter()
    known.admit(problem(), 0.0)
    known.admit(resolved(), 1.0)

    sent = [known.admit(alert, now) for now in range(10, 310, 20) for alert in (problem(), resolved())]

    assert [each.is_resolved for alerts in sent for each in alerts] == [False, True] * 4


def test_a_problem_that_returns_after_its_end_is_sent_again_soon() -> None:
    known = AlertFilter()
    known.admit(problem(), 0.0)
    known.admit(resolved(), 30.0)

    assert known.admit(problem(), 89.9) == []
    assert known.overdue(90.0) == [problem()]


def test_a_delayed_alert_is_sent_after_the_quiet_time() -> None:
    known = AlertFilter()
    known.admit(problem(), 0.0)
    known.admit(problem(title="second"), 100.0)
    known.admit(problem(title="third"), 200.0)

    assert known.overdue(599.0) == []
    assert known.overdue(600.0) == [replace(problem(title="third"), suppressed=1)]
    assert known.overdue(601.0) == []
    assert known.admit(problem(), 700.0) == []  # sent at 600, so quiet until 1,200


def test_an_undelivered_problem_is_sent_again_at_once() -> None:
    known = AlertFilter()
    known.admit(problem(), 0.0)

    known.forget(problem().key)

    assert known.admit(resolved(), 1.0) == []
    assert known.admit(problem(), 2.0) == [problem()]


def test_remembered_conditions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "MAX_CONDITIONS", 3)
    known = AlertFilter()

    for name in "abcd":
        known.admit(problem(name), 0.0)

    assert known.admit(problem("d"), 1.0) == []
    assert known.admit(problem("a"), 1.0) == [problem("a")]
