"""The exact-kill sweep: a writing process is killed at its first, second, third … call that reaches the disk.

strace does the killing, so that there is no hook in our code and no call is missed. After each kill the store must open
at once, be intact, contain everything that was acknowledged, and contain nothing incomplete.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import apsw
import msgspec
from msgspec import Struct

from bench.reporting import Report, run, say
from bench.sweep_child import REF
from longstop.errors import LongstopError, UsageError
from longstop.storage.sqlite.matches import SqliteMatchReader, SqliteMatchStore

#: The calls by which SQLite changes a disk.
CALLS = ("fdatasync", "pwrite64", "ftruncate", "unlink")
BALLS = 8
#: Points tried for one call; a run that survives ends the row sooner.
MOST_POINTS = 400
AT_ONCE = 2
RUN_WITHIN = 60.0


class Point(Struct, frozen=True, kw_only=True):
    """One kill, and what was found after it."""

    call: str
    nth: int
    was_killed: bool
    lost: int
    #: Why the file cannot be trusted; `None` when it can.
    fault: str | None


async def kill_at(call: str, nth: int, balls: int = BALLS) -> Point:
    """Kill a writer at the nth such call of a thread, and check what it leaves."""
    with tempfile.TemporaryDirectory(prefix="longstop-sweep-") as home:
        path = Path(home) / "matches.db"
        acknowledged, was_killed = await _write_until_killed(path, call, nth, balls)
        stored, fault = await _examine(path)
    return Point(call=call, nth=nth, was_killed=was_killed, lost=max(0, acknowledged - stored), fault=fault)


async def _write_until_killed(path: Path, call: str, nth: int, balls: int) -> tuple[int, bool]:
    kill = ("-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={nth}")
    child = (sys.executable, "-m", "bench.sweep_child", str(path), str(balls))
    process = await asyncio.create_subprocess_exec(
        "strace", "-f", "-qq", "-o", "/dev/null", *kill, *child, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(RUN_WITHIN):
        said, complaint = await process.communicate()
    numbers = [int(line) for line in said.split()]
    if process.returncode not in (0, 137, -9):
        raise UsageError(f"the writer ended with {process.returncode}: {complaint.decode()[-200:]}")
    return (max(numbers, default=0), process.returncode != 0)


async def _examine(path: Path) -> tuple[int, str | None]:
    """Return the number of stored balls, and what is wrong with the store."""
    try:
        store = await SqliteMatchStore.open(path)
        await store.aclose()
    except LongstopError as error:
        return 0, f"it does not open: {error}"
    if (verdict := apsw.Connection(str(path)).pragma("integrity_check")) != "ok":
        return 0, f"integrity_check says {verdict}"
    return await _count(path)


async def _count(path: Path) -> tuple[int, str | None]:
    async with aclosing(SqliteMatchReader(path)) as reader:
        match = await reader.find(REF)
        if match is None:
            return 0, None
        events = await reader.events_after(match.match_id, 0, 10_000)
        snapshots = await reader.snapshots(match.match_id)
    if [stored.seq for stored in events] != list(range(1, match.seq + 1)):
        return len(events), f"seq is {match.seq} with {len(events)} events"
    shown = msgspec.json.decode(snapshots[0].payload)["balls"] if snapshots else 0
    return len(events), None if shown == len(events) else f"the snapshot has {shown} balls of {len(events)}"


async def sweep(calls: Sequence[str] = CALLS) -> Report:
    """Kill at every point of every call and report."""
    if shutil.which("strace") is None:
        raise UsageError("strace is missing: apt-get install strace")
    points: list[Point] = []
    for call in calls:
        points += await _row(call)
        say(f"{call}: {sum(point.call == call for point in points)} kill points")
    lost = sum(point.lost for point in points)
    wrong = [point for point in points if point.fault]
    return Report(
        suite="sweep",
        is_ok=lost == 0 and not wrong and len(points) > 0,
        figures={"kill_points": len(points), "lost": lost, "corrupt": len(wrong)},
        details=[f"{point.call} {point.nth}: {point.fault}" for point in wrong[:20]],
    )


async def _row(call: str) -> list[Point]:
    """Return the points of one call, up to the first that the writer survives."""
    points: list[Point] = []
    for first in range(1, MOST_POINTS + 1, AT_ONCE):
        group = await asyncio.gather(*(kill_at(call, nth) for nth in range(first, first + AT_ONCE)))
        points += [point for point in group if point.was_killed]
        if not all(point.was_killed for point in group):
            break
    return points


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/sweep", description="Kill a writer at every call that reaches the disk."
    )
    parser.add_argument("calls", nargs="*", default=CALLS, help=f"system calls; by default {', '.join(CALLS)}")
    return run("sweep", sweep(parser.parse_args().calls))


if __name__ == "__main__":
    sys.exit(main())
