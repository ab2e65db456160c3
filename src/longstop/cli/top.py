"""The verb that shows the status continuously: top."""

import asyncio
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from longstop.api.health_documents import StatusSnapshot
from longstop.cli.health_errors_recoveries import StatusReader
from longstop.cli.match_health_and_error_tables import (
    GRADE_STYLES,
    OUTCOME_STYLES,
    WIDE,
    number,
    outcome_text,
    shown_sync,
)
from longstop.cli.options_and_data_access import Data, existing_data
from longstop.cli.output import TextConsole, plain
from longstop.clock import Moment
from longstop.errors import StorageError
from longstop.model.match import IN_PLAY, MatchStatus, Phase
from longstop.model.polling_status import MonitoringRecord
from longstop.model.scraper_report import NodeBeat
from longstop.supervision.health_grade_and_recovery import OLD_SECONDS
from longstop.supervision.health_verdict import is_silent

#: The cells of a row by column.
Row = Mapping[str, Text | str]

REFRESH_SECONDS = 1.0
#: Keys that end it besides Ctrl-C: q, Ctrl-D, end of input.
_END_KEYS = frozenset({b"q", b"Q", b"\x04", b""})
#: Normal with a poll every 2.5 s.
FRESH_SECONDS = 10.0
#: An event loop with more lag than this is blocked by something.
LATE_SECONDS = 0.25
MAX_REASONS, MAX_NOTES, MAX_BREAKERS, MAX_RECOVERIES, MAX_ORDERS = 4, 3, 4, 3, 3
#: Shown even on the smallest terminal.
MIN_MATCHES = 2
_MEGABYTE = 1 << 20
_RANK = {MatchStatus.LIVE: 0, MatchStatus.BREAK: 0, MatchStatus.UPCOMING: 1, MatchStatus.COMPLETED: 2}
#: The columns of free text; on a narrow terminal they wrap, and the others stay complete.
_TEXTS = frozenset({"last error", "why", "of", "circuit open", "by operator", "by"})
_FIGURES = frozenset(
    {"pid", "procs", "rss MB", "pss MB", "peak", "cpu %", "lag ms", "err/min", "polling", "queued"}
    | {"age s", "every s", "fails", "for s", "took s"}
)
#: Left out on a narrow terminal.
_ONLY_WIDE = frozenset({"procs", "pss MB", "peak", "pid", "every s", "pace"})


def top(
    data: Data = None,
    once: Annotated[bool, typer.Option("--once", help="Print the status once and exit, for scripts.")] = False,
) -> None:
    """Show grades, matches by staleness, open circuits, memory and recoveries until q or Ctrl-C."""
    with suppress(KeyboardInterrupt):
        asyncio.run(_top(existing_data(data), once=once))


VERBS = (top,)


async def _top(data: Path, *, once: bool) -> None:
    console = TextConsole()
    async with aclosing(StatusReader(data)) as reader:
        if once or not (sys.stdin.isatty() and console.is_terminal):
            console.print(screen(await reader.read(), console.width, height=10_000))
        else:
            await _show(reader, console)


async def _show(reader: StatusReader, console: TextConsole) -> None:
    with _keys() as keyboard, Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            live.update(await _current(reader, console), refresh=True)
            if _is_ended(keyboard, time.monotonic() + REFRESH_SECONDS):
                return


async def _current(reader: StatusReader, console: TextConsole) -> RenderableType:
    try:
        return screen(await reader.read(), console.width, console.height)
    except StorageError as error:  # often temporary: the next refresh may succeed
        return plain(f"longstop: {error}", "bold red")


def _is_ended(keyboard: int, until: float) -> bool:
    """Wait for the next refresh; return whether an end key was pressed."""
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([keyboard], [], [], left)
        if ready and os.read(keyboard, 1) in _END_KEYS:
            return True
    return False


@contextmanager
def _keys() -> Iterator[int]:
    """Yield the keyboard in a mode without line buffering and echo."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        yield keyboard
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


# --- the screen: pure ---------------------------------------------------------------------------------------------


def screen(snapshot: StatusSnapshot, width: int, height: int) -> RenderableType:
    """Return the whole screen, at most as high as the terminal: matches that do not fit are counted."""
    verdict, blank = snapshot.verdict, Text()
    sentences = (*_some(verdict.reasons, MAX_REASONS, "yellow"), *_some(verdict.notes, MAX_NOTES, ""))
    above: tuple[RenderableType, ...] = (_heading(snapshot), *sentences, blank, _nodes(snapshot, width), blank)
    lists = (_breakers(snapshot), _orders(snapshot), _recoveries(snapshot))
    below: list[RenderableType] = [part for rows in lists if rows for part in (blank, _table(rows, width))]
    # One line stays free for the cursor.
    left = height - 1 - _lines(Group(*above, *below), width)
    return Group(*above, _matches(snapshot, width, left), *below)


def _lines(block: RenderableType, width: int) -> int:
    return len(TextConsole(width=width, file=StringIO()).render_lines(block, pad=False))


def _heading(snapshot: StatusSnapshot) -> Table:
    in_play = sum(record.status in IN_PLAY for record in snapshot.records)
    paused = sum(record.phase is Phase.PAUSED for record in snapshot.records)
    summary = Text.assemble(
        ("longstop  ", "bold"),
        (snapshot.verdict.summary.upper(), f"bold {GRADE_STYLES[snapshot.verdict.summary]}"),
        f"   {len(snapshot.records)} matches, {in_play} in play, {paused} paused",
    )
    line = Table.grid(expand=True, padding=(0, 1, 0, 0))
    line.add_column(ratio=1)
    line.add_column(justify="right", no_wrap=True)
    line.add_row(summary, Text(f"{snapshot.taken_at.wall:%H:%M:%S} UTC", style="dim"))
    return line


def _some(sentences: Sequence[str], most: int, style: str) -> Iterator[Text]:
    for sentence in sentences[:most]:
        yield plain(f"  {sentence}", style)
    if len(sentences) > most:
        yield Text(f"  and {len(sentences) - most} more", "dim")


def _nodes(snapshot: StatusSnapshot, width: int) -> Table:
    rows = [_node(beat, snapshot.taken_at) for beat in snapshot.beats]
    return _table(rows or [{"scraper": Text("no heartbeat", "dim")}], width)


def _node(beat: NodeBeat, now: Moment) -> Row:
    used, lag = beat.resources, beat.loop_lag_seconds
    grade, style = ("silent", "red") if is_silent(beat, now) else (beat.grade, GRADE_STYLES.get(beat.grade, ""))
    return {
        "scraper": plain(beat.node),
        "grade": Text(grade, f"bold {style}"),
        "pid": str(beat.pid),
        "procs": "-" if used is None else str(len(used.pids)),
        "rss MB": _megabytes(used.rss_bytes if used else None),
        "pss MB": _megabytes(used.pss_bytes if used else None),
        "peak": _megabytes(used.peak_rss_bytes if used else None),
        "cpu %": number(used.cpu_percent if used else None),
        "lag ms": "-" if lag is None else Text(f"{lag * 1000:.0f}", "red" if lag > LATE_SECONDS else ""),
        "err/min": str(beat.errors_last_minute),
        "polling": number(beat.looking),
        "queued": number(beat.waiting),
    }


def _matches(snapshot: StatusSnapshot, width: int, most_lines: int) -> Table:
    """Return the matches: those in play first, the stalest at the top."""
    ordered = sorted(snapshot.records, key=lambda record: (_RANK[record.status], -_age(record, snapshot.taken_at)))
    rows = [_match(record, snapshot.taken_at) for record in ordered[: max(MIN_MATCHES, most_lines)]]
    while True:
        hidden = len(ordered) - len(rows)
        more: Row = {"match": Text(f"{hidden} more", "dim")}
        table = _table([*rows, more] if hidden else rows, width)
        if len(rows) <= MIN_MATCHES or _lines(table, width) <= most_lines:
            return table
        rows.pop()


def _match(record: MonitoringRecord, now: Moment) -> Row:
    age, failures = _age(record, now), record.consecutive_failures
    return {
        "match": plain(str(record.ref)),
        "status": record.status.value,
        "state": Text("paused", "yellow") if record.is_paused else shown_sync(record.sync, record.status, age),
        "age s": Text("-" if record.last_poll_at is None else f"{age:.1f}", _age_style(record, age)),
        "every s": number(record.interval_seconds),
        "pace": record.tempo or "-",
        "fails": Text(str(failures), "red" if failures else ""),
        "last error": plain(record.last_error or ""),
    }


def _breakers(snapshot: StatusSnapshot) -> Sequence[Row]:
    notes = [(note, beat.silence_at(snapshot.taken_at)) for beat in snapshot.beats for note in beat.breakers]
    return [
        {
            "circuit open": plain(note.subject),
            "scope": note.scope,
            "state": Text(note.state.replace("_", " "), "red"),
            "for s": number(None if note.left_seconds is None else max(0.0, note.left_seconds - reported_ago)),
            "why": plain(note.reason),
        }
        for note, reported_ago in notes[:MAX_BREAKERS]
    ]


def _orders(snapshot: StatusSnapshot) -> Sequence[Row]:
    return [
        {
            "by operator": plain(order.subject),
            "what": order.kind.value.replace("_", " "),
            "since": f"{order.since:%m-%d %H:%M:%S}",
            "by": plain(order.asked_by),
        }
        for order in snapshot.standing[:MAX_ORDERS]
    ]


def _recoveries(snapshot: StatusSnapshot) -> Sequence[Row]:
    return [
        {
            "recovery": f"{recovery.began_at:%H:%M:%S} {recovery.kind.value}",
            "of": plain(recovery.subject),
            "outcome": Text(outcome_text(recovery.outcome), OUTCOME_STYLES[recovery.outcome]),
            "took s": number(recovery.duration_seconds),
            "why": plain(recovery.trigger),
        }
        for recovery in (snapshot.recoveries or ())[:MAX_RECOVERIES]
    ]


def _table(rows: Sequence[Row], width: int) -> Table:
    """Return a table of these rows, whose first one names the columns."""
    table = Table(box=None, expand=True, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold dim")
    names = [name for name in (rows[0] if rows else ()) if width >= WIDE or name not in _ONLY_WIDE]
    for name in names:
        table.add_column(
            name,
            no_wrap=name not in _TEXTS,
            overflow="fold",
            ratio=1 if name in ("last error", "why") else None,
            justify="right" if name in _FIGURES else "left",
        )
    for row in rows:
        table.add_row(*(row.get(name, "") for name in names))
    return table


def _age(record: MonitoringRecord, now: Moment) -> float:
    """Return the age of the data; infinite before the first poll."""
    age = record.age_at(now)
    return float("inf") if age is None else age


def _age_style(record: MonitoringRecord, age: float) -> str:
    if record.status not in IN_PLAY or record.is_on_hold:
        return "dim"
    return "green" if age <= FRESH_SECONDS else "yellow" if age <= OLD_SECONDS else "bold red"


def _megabytes(count: int | None) -> str:
    return "-" if count is None else f"{count / _MEGABYTE:.0f}"
