"""RecoveryAudit observed from events: what belongs together is one entry, with an outcome that was seen."""

from collections.abc import Collection
from pathlib import Path

import pytest
from msgspec import Struct

from longstop.clock import Clock
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.process import processes
from longstop.storage.sqlite.operations_tables import SqliteAudit
from longstop.supervision.recovery_audit import (
    OBSERVED_WITHIN_SECONDS,
    SWEEP_SECONDS,
    RecoveryAudit,
    RecoveryObserver,
)
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.browsers import BrowserClosed, BrowserFailed, BrowserRecycled, BrowserStarted
from longstop.telemetry.events.matches import PollSucceeded, WatchRestarted
from longstop.telemetry.events.processes import OrphanKilled
from longstop.telemetry.events.sources import ListingRead
from tests.readers import ManualClock

BROWSER = (RecoveryKind.BROWSER_RECYCLE, "crex")
WATCH = (RecoveryKind.WATCH_RESTART, "crex_M1")
READ = PollSucceeded(match_id=1, ref="crex_M1", seconds=0.1)


class RecordedAudit(RecoveryAudit):
    """An audit that is never written, and remembers its entries."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(SqliteAudit(Path("nowhere")), process="scraper", clock=clock)
        self.begun: list[Recovery] = []
        self.ended: list[Recovery] = []
        #: Both, in order.
        self.entries: list[Recovery] = []

    def begin(self, kind: RecoveryKind, *, trigger: str, subject: str, pids_before: Collection[int] = ()) -> Recovery:
        begun = super().begin(kind, trigger=trigger, subject=subject, pids_before=pids_before)
        self.begun.append(begun)
        self.entries.append(begun)
        return begun

    def end(
        self, begun: Recovery, outcome: RecoveryOutcome, *, observed: str, pids_after: Collection[int] | None = None
    ) -> Recovery:
        self.ended.append(super().end(begun, outcome, observed=observed, pids_after=pids_after))
        self.entries.append(self.ended[-1])
        return self.ended[-1]


class Began(Struct, frozen=True, kw_only=True):
    key: tuple[RecoveryKind, str]
    trigger: str
    pids_before: tuple[int, ...] = ()


class Ended(Struct, frozen=True, kw_only=True):
    key: tuple[RecoveryKind, str]
    outcome: RecoveryOutcome
    observed: str
    pids_after: tuple[int, ...] | None = None


def shown(entry: Recovery) -> Began | Ended:
    key = (entry.kind, entry.subject)
    if entry.outcome is RecoveryOutcome.PENDING:
        return Began(key=key, trigger=entry.trigger, pids_before=entry.pids_before)
    return Ended(key=key, outcome=entry.outcome, observed=entry.observed or "", pids_after=entry.pids_after)


def started(generation: int, pid: int, source: str = "crex") -> BrowserStarted:
    return BrowserStarted(source=source, generation=generation, kind="shell", pid=pid, version="1", seconds=0.5)


def recycled(generation: int = 1, reason: str = "pages") -> BrowserRecycled:
    return BrowserRecycled(
        source="crex",
        generation=generation,
        reason=reason,
        pages=9,
        age_seconds=60,
        processes=5,
        rss_bytes=None,
        pss_bytes=None,
    )


def failed(generation: int, pid: int | None, reason: str = "it does not answer") -> BrowserFailed:
    return BrowserFailed(source="crex", generation=generation, pid=pid, reason=reason)


def closed(left: int = 0, generation: int = 1) -> BrowserClosed:
    return BrowserClosed(source="crex", generation=generation, how="closed", seconds=0.1, left=left)


def restarted(reason: str = "stale") -> WatchRestarted:
    return WatchRestarted(match_id=1, ref="crex_M1", reason=reason, age_seconds=300, epoch=2)


def orphan(pid: int) -> OrphanKilled:
    return OrphanKilled(pid=pid, program="chrome", rss_bytes=None)


def observed(*events: Telemetry, after: float = 0.0) -> list[Began | Ended]:
    """Return what these events and the time after them record."""
    clock = ManualClock()
    audit = RecordedAudit(clock)
    observer = RecoveryObserver(audit)
    for event in events:
        observer.take(event)
    clock.advance(after)
    observer.check()
    return [shown(entry) for entry in audit.entries]


@pytest.mark.req("MON-9")
@pytest.mark.parametrize("read", [READ, ListingRead(source="crex", matches=1, changed=0, unreadable=0)])
@pytest.mark.parametrize("gone", [recycled(reason="why"), failed(1, 7, reason="why")])
def test_a_browser_its_successor_and_the_first_poll_are_one_entry(gone: Telemetry, read: Telemetry) -> None:
    begun, ended = observed(started(1, 7), gone, started(2, 8), read, read, after=1000)

    assert begun == Began(key=BROWSER, trigger="why", pids_before=(7,))
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.pids_after) == (RecoveryOutcome.RECOVERED, (8,))


def test_a_poll_before_the_successor_has_started_proves_nothing() -> None:
    entries = observed(started(1, 7), failed(1, 7), READ, after=OBSERVED_WITHIN_SECONDS)

    assert [type(entry) for entry in entries] == [Began, Ended]
    assert entries[1] == Ended(
        key=BROWSER,
        outcome=RecoveryOutcome.NOT_RECOVERED,
        observed="no other browser started within 120 s",
        pids_after=(),
    )


def test_a_poll_of_another_source_proves_nothing() -> None:
    other = PollSucceeded(match_id=2, ref="espn_1", seconds=0.1)

    entries = observed(started(1, 7), failed(1, 7), started(2, 8), other)

    assert [type(entry) for entry in entries] == [Began]


def test_a_successor_that_reads_nothing_has_not_helped() -> None:
    _, ended = observed(started(1, 7), failed(1, 7), started(2, 8), after=OBSERVED_WITHIN_SECONDS)

    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.pids_after) == (RecoveryOutcome.NOT_RECOVERED, (8,))


def test_a_start_that_fails_again_and_again_is_one_entry() -> None:
    entries = observed(started(1, 7), failed(1, 7), *(failed(number, None) for number in range(2, 50)))

    assert [type(entry) for entry in entries] == [Began]


def test_a_successor_that_dies_before_it_read_ends_the_entry_and_begins_the_next() -> None:
    entries = observed(started(1, 7), failed(1, 7), started(2, 8), failed(2, 8))

    assert [type(entry) for entry in entries] == [Began, Ended, Began]
    assert entries[2] == Began(key=BROWSER, trigger="it does not answer", pids_before=(8,))


def test_an_old_browser_that_is_given_up_while_it_drains_is_the_same_action() -> None:
    entries = observed(started(1, 7), recycled(1), started(2, 8), failed(1, 7), READ)

    assert [type(entry) for entry in entries] == [Began, Ended]


def test_the_end_of_an_older_browser_proves_nothing_about_the_failed_one() -> None:
    _, ended = observed(started(2, 8), failed(2, 8), closed(3, 2), closed(0, 1), after=OBSERVED_WITHIN_SECONDS)

    assert isinstance(ended, Ended)
    assert ended.outcome is RecoveryOutcome.NOT_RECOVERED


@pytest.mark.parametrize(
    ("left", "outcome"), [(0, RecoveryOutcome.RECOVERED), (1, RecoveryOutcome.NOT_RECOVERED)], ids=["gone", "left"]
)
def test_if_no_other_browser_is_needed_the_end_of_the_old_one_counts(left: int, outcome: RecoveryOutcome) -> None:
    _, ended = observed(started(1, 7), recycled(), closed(left), after=OBSERVED_WITHIN_SECONDS)

    assert isinstance(ended, Ended)
    assert ended.outcome is outcome


@pytest.mark.parametrize("event", [recycled(reason="asked for by cli"), restarted("asked"), restarted("recycled")])
def test_what_an_operator_or_a_recycle_did_is_no_recovery_of_its_own(event: Telemetry) -> None:
    assert observed(started(1, 7), event, READ, after=1000) == []


@pytest.mark.req("MON-9")
@pytest.mark.parametrize("reason", ["stale", "errors", "lifetime", "cool_down"])
def test_the_outcome_of_a_restarted_watch_is_its_next_poll(reason: str) -> None:
    assert observed(restarted(reason), READ, READ) == [
        Began(key=WATCH, trigger=reason),
        Ended(key=WATCH, outcome=RecoveryOutcome.RECOVERED, observed="crex_M1 was read again"),
    ]


def test_a_watch_that_is_not_read_or_restarts_again_has_not_recovered() -> None:
    unread = observed(restarted(), after=OBSERVED_WITHIN_SECONDS)
    again = observed(restarted(), restarted("errors"))

    assert [entry.outcome for entry in (*unread, *again) if isinstance(entry, Ended)] == [
        RecoveryOutcome.NOT_RECOVERED,
        RecoveryOutcome.NOT_RECOVERED,
    ]
    assert again[2] == Began(key=WATCH, trigger="errors")


@pytest.mark.req("MON-9")
@pytest.mark.parametrize(
    ("left", "outcome"), [((), RecoveryOutcome.RECOVERED), ((9,), RecoveryOutcome.NOT_RECOVERED)], ids=["gone", "left"]
)
def test_a_sweep_is_one_entry_whose_outcome_is_what_still_runs(
    left: tuple[int, ...], outcome: RecoveryOutcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "is_running", lambda pid: pid in left)
    clock = ManualClock()
    audit = RecordedAudit(clock)
    observer = RecoveryObserver(audit)
    for pid in (8, 9):
        observer.take(orphan(pid))
    assert audit.entries == []

    observer.check()
    clock.advance(SWEEP_SECONDS)
    observer.check()

    (begun,), (ended,) = audit.begun, audit.ended
    assert begun.pids_before == (8, 9)
    assert (ended.outcome, ended.pids_after) == (outcome, left)
