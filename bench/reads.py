"""`reads`: what a read costs the API on its own loop, and what it costs with the hop to a daemon thread.

The reads are those of the API's routes. Where the hop costs more than the read, SQLite answers on the loop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from msgspec import Struct

from bench.reporting import Report, say
from longstop.errors import StorageError
from longstop.model.event import Event, EventKey, Op
from longstop.model.match import MatchRef, MatchStatus, Phase
from longstop.model.polling_status import MonitoringRecord, SyncState
from longstop.model.snapshot import SNAPSHOTS_KEPT, canonical, checksum
from longstop.sports.cricket.model import CricketKind, Delivery, Overs, Runs
from longstop.storage.base import HotReader, HotRow, MatchFilter, MatchReader, MatchStore, MatchUpdate, SnapshotDraft
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader, SqliteHotWriter
from longstop.storage.sqlite.matches import SqliteMatchReader, SqliteMatchStore

NOW = datetime(2026, 3, 7, 14, tzinfo=UTC)
#: The whole first innings of a T20, and what a match page weighs.
EVENTS = 120
PAYLOAD = {"balls": [{"number": number, "text": "one run to deep square leg"} for number in range(600)]}
#: Point reads: one row, or the few of one match. For these the hop must cost more than the read.
POINTS = ("hot_row", "match", "findings", "snapshots")

Read = Callable[[], Awaitable[object]]


class Trial(Struct, frozen=True, kw_only=True):
    matches: int
    times: int


async def reads(*, is_quick: bool) -> Report:
    return await measured(Trial(matches=100, times=300) if is_quick else Trial(matches=300, times=2_000))


async def measured(trial: Trial) -> Report:
    with TemporaryDirectory(prefix="longstop-bench-") as home:
        folder = Path(home)
        say(f"storing {trial.matches} matches")
        await _fill(folder, trial.matches)
        figures: dict[str, Any] = {"matches": trial.matches, "times": trial.times}
        for name in ("inline", "thread"):
            inline_ms = 50 if name == "inline" else None
            async with (
                aclosing(SqliteMatchReader(folder / "matches.db", inline_ms)) as reader,
                aclosing(SqliteHotReader(folder / "hot.db", inline_ms)) as hot,
            ):
                for what, read in _reads(reader, hot).items():
                    figures.setdefault(what, {})[name] = _microseconds(await _timed(read, trial.times))
            say(f"measured: {name}")
    slower = better_in_a_thread(figures)
    return Report(suite="reads", is_ok=not slower, figures=figures, details=slower)


def better_in_a_thread(figures: Mapping[str, Any]) -> list[str]:
    """Return what speaks against answering point reads on the loop."""
    return [
        f"{what} is faster in a thread"
        for what in POINTS
        if figures[what]["inline"]["p50_us"] > figures[what]["thread"]["p50_us"]
    ]


def _reads(reader: MatchReader, hot: HotReader) -> dict[str, Read]:
    return {
        "hot_row": lambda: hot.row(1),
        "match": lambda: reader.match(1),
        "findings": lambda: reader.findings(1),
        "snapshots": lambda: reader.snapshots(1),
        "matches_100": lambda: reader.matches(MatchFilter(limit=100)),
        "records_100": lambda: hot.records(1, 100),
        "events_120": lambda: reader.events_after(1, 0, 500),
    }


async def _timed(read: Read, times: int) -> list[float]:
    await read()  # the first one opens the file
    taken = []
    for _ in range(times):
        began = perf_counter()
        await read()
        taken.append(perf_counter() - began)
    return taken


def _microseconds(seconds: Sequence[float]) -> dict[str, int]:
    ordered = sorted(seconds)
    return {"p50_us": round(ordered[len(ordered) // 2] * 1e6), "p99_us": round(ordered[len(ordered) * 99 // 100] * 1e6)}


async def _fill(folder: Path, matches: int) -> None:
    async with aclosing(await SqliteMatchStore.open(folder / "matches.db")) as store:
        ids = await asyncio.gather(*(_stored(store, number) for number in range(matches)))
    hot = SqliteHotWriter(folder / "hot.db", on_failure=_raise)
    for match_id in ids:
        hot.put(_hot_row(match_id))
    await hot.aclose()


async def _stored(store: MatchStore, number: int) -> int:
    match = await store.register(MatchRef("crex", f"M{number}"), "Red v Blue", NOW, NOW, sport="cricket")
    await store.claim(match.match_id, "bench")
    for version in range(SNAPSHOTS_KEPT):
        events = tuple(_ball(each) for each in range(EVENTS)) if version == 0 else ()
        await store.save_update(_update(match.match_id, events, canonical({"version": version, **PAYLOAD})))
    return match.match_id


def _ball(number: int) -> Event:
    over, nth = divmod(number, 6)
    return Event(
        key=EventKey(CricketKind.DELIVERY, (1, over, nth + 1)),
        rev=1,
        op=Op.INSERT,
        content=Delivery(label=Overs(over, nth + 1), runs=Runs(batter=1), batter="p1", bowler="p2"),
        source_event_id=str(number),
        position=number + 1,
    )


def _update(match_id: int, events: tuple[Event, ...], payload: bytes) -> MatchUpdate:
    return MatchUpdate(
        match_id=match_id,
        epoch=1,
        scraper_id="bench",
        captured_at=NOW,
        phase=Phase.ACTIVE,
        status=MatchStatus.LIVE,
        title="Red v Blue",
        start_at=NOW,
        events=events,
        snapshot=SnapshotDraft(checksum=checksum(payload), payload=payload, provenance={}, update_latency_ms=1),
        findings=(),
        players={},
        teams={},
    )


def _hot_row(match_id: int) -> HotRow:
    record = MonitoringRecord(
        match_id=match_id,
        ref=MatchRef("crex", f"M{match_id}"),
        phase=Phase.ACTIVE,
        status=MatchStatus.LIVE,
        sync=SyncState.IN_SYNC,
        sport="cricket",
        last_poll_at=NOW,
    )
    payload = canonical(PAYLOAD)
    return HotRow(
        record=record,
        sequence=1,
        checksum=checksum(payload),
        payload=payload,
        captured_at=NOW,
        scraper_id="bench",
    )


def _raise(error: StorageError) -> None:
    raise error
