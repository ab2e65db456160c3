"""The pauses of all sources: what a restart keeps of them, on every clock and with every disk."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.errors import StorageError
from longstop.model.request_pause import FormerPause, PauseKind, RequestPause
from longstop.telemetry.bus import Bus
from longstop.testing import VirtualClock, run_virtual
from longstop.watching.stored_pauses import (
    FORGET_AFTER_SECONDS,
    READ_WITHIN_SECONDS,
    RETRY_EVERY_SECONDS,
    UNREADABLE,
    StoredPauses,
)
from tests.memory import MemoryPauses, MemorySink
from tests.readers import NOW, ManualClock

REASON = "answered 429"


def pause(kind: PauseKind, seconds: float = 30.0, boot: str | None = "boot 1", source: str = "crex") -> RequestPause:
    """Return a pause that ends this many seconds after `NOW` on both clocks."""
    until = NOW + timedelta(seconds=seconds)
    monotonic = ManualClock().monotonic() + seconds
    return RequestPause(
        source=source, kind=kind, subject="x", until=until, until_monotonic=monotonic, boot=boot, reason=REASON
    )


def former(store: MemoryPauses, clock: ManualClock, boot: str | None = "boot 1") -> list[FormerPause]:
    """Return what a restarted scraper keeps."""

    async def load() -> list[FormerPause]:
        pauses = StoredPauses(store, clock=clock, boot=lambda: boot)
        await pauses.load(Bus())
        return list(pauses.of("crex").former)

    return run_virtual(load())


def seconds_left(store: MemoryPauses, clock: ManualClock, boot: str | None = "boot 1") -> list[float]:
    return [each.seconds for each in former(store, clock, boot)]


# --- what is left after a restart -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PauseKind)
def test_what_is_left_of_a_pause_is_kept(kind: PauseKind) -> None:
    store, clock = MemoryPauses(pause(kind), pause(kind, source="espncricinfo")), ManualClock()
    clock.advance(12)

    assert former(store, clock) == [FormerPause(kind=kind, subject="x", seconds=18.0, reason=REASON)]


def test_retry_after_is_over_when_its_time_is_and_a_circuit_waits_for_probes() -> None:
    store, clock = MemoryPauses(*map(pause, PauseKind)), ManualClock()
    clock.advance(31)

    assert {each.kind: each.seconds for each in former(store, clock)} == {
        PauseKind.TARGET_CIRCUIT: 0.0,
        PauseKind.SOURCE_CIRCUIT: 0.0,
        PauseKind.MATCH_CIRCUIT: 0.0,
        PauseKind.LAYOUT: 0.0,
    }


def test_a_circuit_whose_time_was_over_long_ago_is_forgotten() -> None:
    store, clock = MemoryPauses(*map(pause, PauseKind)), ManualClock()
    clock.advance(30 + FORGET_AFTER_SECONDS)

    assert former(store, clock) == []


@given(leap=st.floats(-1e8, 1e8))
def test_within_one_boot_no_jump_of_the_wall_clock_changes_what_is_left(leap: float) -> None:
    store, clock = MemoryPauses(pause(PauseKind.RETRY_AFTER)), ManualClock()
    clock.advance(10)
    clock.leap(leap)

    assert seconds_left(store, clock) == [pytest.approx(20.0, abs=1e-3)]


@pytest.mark.parametrize(("stored", "current"), [("boot 1", "boot 2"), (None, None), ("boot 1", None)])
@given(leap=st.floats(-1e8, 1e8))
def test_after_a_reboot_the_wall_clock_decides_and_nothing_is_negative(
    stored: str | None, current: str | None, leap: float
) -> None:
    store, clock = MemoryPauses(pause(PauseKind.SOURCE_CIRCUIT, boot=stored)), ManualClock()
    clock.leap(leap)

    for left in seconds_left(store, clock, current):
        assert left == pytest.approx(max(0.0, 30.0 - leap), abs=1e-3)


# --- what is written --------------------------------------------------------------------------------------------------


def test_a_pause_is_written_at_once_cut_short_and_removed() -> None:
    store = MemoryPauses()

    async def run() -> list[list[float]]:
        pauses, seen = StoredPauses(store, clock=VirtualClock(), boot=lambda: "boot 1"), []

        async def written() -> None:
            await asyncio.sleep(0.01)
            seen.append([round(each.until_monotonic, 2) for each in store.pauses])

        async with pauses.writing(Bus()):
            crex = pauses.of("crex")
            crex.begin(PauseKind.SOURCE_CIRCUIT, "crex", 900.0, REASON)
            await written()
            crex.cut_short(PauseKind.SOURCE_CIRCUIT, "crex")
            await written()
            crex.cut_short(PauseKind.SOURCE_CIRCUIT, "crex")
            crex.cut_short(PauseKind.LAYOUT, "list")
            await written()
            crex.end(PauseKind.SOURCE_CIRCUIT, "crex")
            await written()
        return seen

    assert run_virtual(run()) == [[900.0], [0.01], [0.01], []]
    assert store.writes == 3


def test_what_is_over_is_removed_with_the_next_write() -> None:
    store = MemoryPauses()

    async def run() -> None:
        pauses = StoredPauses(store, clock=VirtualClock(), boot=lambda: "boot 1")
        async with pauses.writing(Bus()):
            crex = pauses.of("crex")
            crex.begin(PauseKind.RETRY_AFTER, "crex", 30.0, REASON)
            crex.begin(PauseKind.MATCH_CIRCUIT, "crex_M1", 300.0, REASON)
            await asyncio.sleep(300 + FORGET_AFTER_SECONDS)
            crex.begin(PauseKind.MATCH_CIRCUIT, "crex_M2", 300.0, REASON)

    run_virtual(run())

    assert [each.subject for each in store.pauses] == ["crex_M2"]


def test_an_orderly_stop_writes_what_is_left() -> None:
    store = MemoryPauses()

    async def run() -> None:
        pauses = StoredPauses(store, clock=VirtualClock())
        async with pauses.writing(Bus()):
            pauses.of("crex").begin(PauseKind.RETRY_AFTER, "crex", 30.0, REASON)

    run_virtual(run())

    assert [each.kind for each in store.pauses] == [PauseKind.RETRY_AFTER]


def test_a_disk_that_fails_is_reported_once_and_written_when_it_works_again() -> None:
    store, sink = MemoryPauses(), MemorySink()

    async def run() -> None:
        pauses = StoredPauses(store, clock=VirtualClock())
        async with pauses.writing(Bus([sink])):
            store.failure = StorageError("ops.db: the disk is full")
            pauses.of("crex").begin(PauseKind.RETRY_AFTER, "crex", 30.0, REASON)
            await asyncio.sleep(5 * RETRY_EVERY_SECONDS)
            store.failure = None
            await asyncio.sleep(2 * RETRY_EVERY_SECONDS)

    run_virtual(run())

    assert [event.name for event in sink.events] == ["records.failed"]
    assert len(store.pauses) == 1


# --- what cannot be read ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [StorageError("ops.db: the file is damaged"), ValueError("a bug"), None])
def test_unreadable_pauses_are_reported_and_every_source_starts_with_probes(failure: Exception | None) -> None:
    store, sink = MemoryPauses(pause(PauseKind.RETRY_AFTER)), MemorySink()
    store.failure, store.is_hung = failure, failure is None

    async def load() -> tuple[FormerPause, ...]:
        pauses = StoredPauses(store, clock=VirtualClock())
        async with asyncio.timeout(READ_WITHIN_SECONDS + 1):
            await pauses.load(Bus([sink]))
        return tuple(pauses.of("crex").former)

    [kept] = run_virtual(load())

    assert kept == FormerPause(kind=PauseKind.SOURCE_CIRCUIT, subject="crex", seconds=0.0, reason=UNREADABLE)
    [reported] = sink.named("records.failed")
    assert "probed with a few requests first" in str(reported)


def test_a_damaged_row_is_replaced_when_a_source_answers_again_and_not_before() -> None:
    store = MemoryPauses(pause(PauseKind.RETRY_AFTER))

    async def run() -> tuple[int, int]:
        pauses = StoredPauses(store, clock=VirtualClock())
        store.failure = StorageError("cannot read a stored RequestPause")
        await pauses.load(Bus())
        store.failure = None
        async with pauses.writing(Bus()):
            await asyncio.sleep(1)
            before = len(store.pauses)
            pauses.of("crex").end(PauseKind.SOURCE_CIRCUIT, "crex")
            await asyncio.sleep(1)
        return before, len(store.pauses)

    assert run_virtual(run()) == (1, 0)
