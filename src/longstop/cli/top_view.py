"""The screen of `longstop top`. Pure: takes a snapshot and the size of the terminal, returns a renderable."""

from collections.abc import Collection, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from longstop.cli.health_tables import OUTCOME_STYLES, outcome_text, printable
from longstop.cli.status_snapshot import StatusSnapshot
from longstop.clock import Moment
from longstop.model.match import IN_PLAY, MatchStatus, MonitoringRecord, Phase
from longstop.storage.base import NodeBeat
from longstop.supervision.health_verdict import is_silent

#: Normal with a poll every 2.5 s; above the second limit an operator should investigate.
FRESH_SECONDS, OLD_SECONDS = 10.0, 60.0
#: An event loop with more lag than this is blocked by something.
LATE_SECONDS = 0.25
MAX_REASONS, MAX_NOTES, MAX_BREAKERS, MAX_RECOVERIES, MAX_ORDERS = 4, 3, 4, 3, 3
#: Shown even on the smallest terminal.
MIN_MATCHES = 3
#: Narrower terminals get fewer columns.
WIDE = 100
_ONLY_WIDE = frozenset({"pss MB", "peak", "pid", "every s", "pace"})
_NODE_COLUMNS = (
    *("scraper", "grade", "pid", "procs", "rss MB", "pss MB", "peak"),
    *("cpu %", "lag ms", "err/min", "polling", "queued"),
)
#: Columns that are shortened on a narrow terminal; their cells never wrap.
_SHRINKABLE = frozenset({"last error", "why", "of", "circuit open", "by operator", "by"})
_MATCH_COLUMNS = ("match", "status", "phase", "sync", "age s", "every s", "pace", "fails", "last error")
_PHASES = {Phase.PAUSED: "yellow"}
_MEGABYTE = 1 << 20
_GRADES = {"healthy": "bold green", "degraded": "bold yellow", "recovering": "bold cyan", "failing": "bold red"}
_RANK = {MatchStatus.LIVE: 0, MatchStatus.BREAK: 0, MatchStatus.UPCOMING: 1, MatchStatus.COMPLETED: 2}


def screen(snapshot: StatusSnapshot, width: int, height: int) -> RenderableType:
    """Return the whole screen, at most as high as the terminal."""
    hidden = _ONLY_WIDE if width < WIDE else frozenset()
    sentences = _sentences(snapshot)
    parts = [_heading(snapshot, width), *sentences, Text(), _nodes(snapshot.beats, snapshot.taken_at, hidden)]
    used = 5 + len(snapshot.beats) + len(sentences)
    below: list[RenderableType] = []
    for block, lines in (_breakers(snapshot), _orders(snapshot), _recoveries(snapshot)):
        if lines:
            below += [Text(), block]
            used += lines + 2
    rows = max(MIN_MATCHES, height - used - 3)
    return Group(*parts, Text(), _matches(snapshot, rows, hidden), *below)


def _heading(snapshot: StatusSnapshot, width: int) -> RenderableType:
    verdict = snapshot.verdict
    in_play = [record for record in snapshot.records if record.status in IN_PLAY]
    paused = sum(record.phase is Phase.PAUSED for record in snapshot.records)
    summary = Text.assemble(
        ("longstop  ", "bold"),
        (verdict.status.value.upper(), _GRADES.get(verdict.status.value, "bold red")),
        verdict.aside if width >= WIDE else "",
        f"   {len(snapshot.records)} matches, {len(in_play)} in play, {paused} paused",
    )
    time = f"{snapshot.taken_at.wall:%H:%M:%S} UTC"
    line = Table.grid(expand=True, padding=(0, 1, 0, 0))
    line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    # A fixed width: Rich would shorten the time, too, if the text is too long.
    line.add_column(justify="right", no_wrap=True, width=len(time))
    line.add_row(summary, Text(time, style="dim"))
    return line


def _sentences(snapshot: StatusSnapshot) -> list[RenderableType]:
    """Return the reasons of the verdict, and further notes."""
    verdict = snapshot.verdict
    return [*_some(verdict.reasons, MAX_REASONS, "yellow"), *_some(verdict.notes, MAX_NOTES, "")]


def _some(sentences: Sequence[str], most: int, style: str) -> list[RenderableType]:
    shown: list[RenderableType] = [_line(f"  {sentence}", style) for sentence in sentences[:most]]
    more = len(sentences) - most
    return [*shown, _line(f"  and {more} more", "dim")] if more > 0 else shown


def _nodes(beats: Sequence[NodeBeat], now: Moment, hidden: Collection[str]) -> Table:
    table = _table(*(name for name in _NODE_COLUMNS if name not in hidden))
    for beat in beats:
        cells = dict(zip(_NODE_COLUMNS, _node(beat, now), strict=True))
        table.add_row(*(cell for name, cell in cells.items() if name not in hidden))
    if not beats:
        table.add_row(Text("no scraper has run here yet", "dim"))
    return table


def _node(beat: NodeBeat, now: Moment) -> tuple[Text | str, ...]:
    used = beat.resources
    return (
        _plain(beat.node),
        Text("silent", "bold red") if is_silent(beat, now) else Text(beat.grade, _GRADES.get(beat.grade, "")),
        str(beat.pid),
        "-" if used is None else str(len(used.pids)),
        _megabytes(used.rss_bytes if used else None),
        _megabytes(used.pss_bytes if used else None),
        _megabytes(used.peak_rss_bytes if used else None),
        _number(used.cpu_percent if used else None),
        _lag(beat.loop_lag_seconds),
        str(beat.errors_last_minute),
        _number(beat.looking),
        _number(beat.waiting),
    )


def _matches(snapshot: StatusSnapshot, rows: int, hidden: Collection[str]) -> Table:
    """Return the matches: those in play first, the stalest at the top."""
    table = _table(*(name for name in _MATCH_COLUMNS if name not in hidden))
    ordered = sorted(snapshot.records, key=lambda record: (_RANK[record.status], -_age(record, snapshot.taken_at)))
    is_cut = len(ordered) > rows
    for record in ordered[: rows - 1 if is_cut else rows]:
        cells = dict(zip(_MATCH_COLUMNS, _match(record, snapshot.taken_at), strict=True))
        table.add_row(*(cell for name, cell in cells.items() if name not in hidden))
    if is_cut:
        table.add_row(Text(f"{len(ordered) - rows + 1} more", "dim"))
    return table


def _match(record: MonitoringRecord, now: Moment) -> tuple[Text | str, ...]:
    age = _age(record, now)
    return (
        _plain(str(record.ref)),
        record.status.value,
        Text("paused" if record.is_on_hold else record.phase.value, _PHASES.get(record.phase, "")),
        record.sync.value,
        Text("-" if record.last_poll_at is None else f"{age:.1f}", _age_style(record, age)),
        _number(record.interval_seconds),
        record.tempo or "-",
        Text(str(record.consecutive_failures), "red" if record.consecutive_failures else ""),
        _plain(record.last_error or ""),
    )


def _breakers(snapshot: StatusSnapshot) -> tuple[RenderableType, int]:
    notes = [(note, beat.silence_at(snapshot.taken_at)) for beat in snapshot.beats for note in beat.breakers]
    table = _table("circuit open", "scope", "state", "for s", "why")
    for note, reported_ago in notes[:MAX_BREAKERS]:
        left = None if note.left_seconds is None else max(0.0, note.left_seconds - reported_ago)
        table.add_row(
            _plain(note.subject),
            note.scope,
            Text(note.state.replace("_", " "), "red"),
            _number(left),
            _plain(note.reason),
        )
    return table, min(len(notes), MAX_BREAKERS)


def _orders(snapshot: StatusSnapshot) -> tuple[RenderableType, int]:
    table = _table("by operator", "what", "since", "by")
    for order in snapshot.standing[:MAX_ORDERS]:
        table.add_row(
            _plain(order.subject),
            order.kind.value.replace("_", " "),
            f"{order.since:%m-%d %H:%M:%S}",
            _plain(order.asked_by),
        )
    return table, min(len(snapshot.standing), MAX_ORDERS)


def _recoveries(snapshot: StatusSnapshot) -> tuple[RenderableType, int]:
    table = _table("recovery", "of", "outcome", "took s", "why")
    newest = (snapshot.recoveries or ())[:MAX_RECOVERIES]
    for recovery in newest:
        table.add_row(
            f"{recovery.began_at:%H:%M:%S} {recovery.kind.value}",
            _plain(recovery.subject),
            Text(outcome_text(recovery.outcome), OUTCOME_STYLES[recovery.outcome]),
            _number(recovery.duration_seconds),
            _plain(recovery.trigger),
        )
    return table, len(newest)


def _table(*names: str) -> Table:
    table = Table(box=None, expand=True, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold dim")
    for name in names:
        is_flexible = name in ("last error", "why")
        is_figure = name.split(" ")[-1] in (
            "s",
            "ms",
            "MB",
            "%",
            "procs",
            "pid",
            "peak",
            "err/min",
            "fails",
            "polling",
            "queued",
        )
        table.add_column(
            name,
            # Rich shrinks the columns that may wrap first: subjects and reasons rather than figures and times.
            no_wrap=name not in _SHRINKABLE,
            overflow="ellipsis",
            ratio=1 if is_flexible else None,
            justify="right" if is_figure else "left",
        )
    return table


def _age(record: MonitoringRecord, now: Moment) -> float:
    """Return the age of the data; infinite before the first poll."""
    age = record.age_at(now)
    return float("inf") if age is None else age


def _age_style(record: MonitoringRecord, age: float) -> str:
    if record.status not in IN_PLAY or record.is_on_hold:
        return "dim"
    return "green" if age <= FRESH_SECONDS else "yellow" if age <= OLD_SECONDS else "bold red"


def _lag(seconds: float | None) -> Text:
    if seconds is None:
        return Text("-")
    return Text(f"{seconds * 1000:.0f}", "red" if seconds > LATE_SECONDS else "")


def _megabytes(count: int | None) -> str:
    return "-" if count is None else f"{count / _MEGABYTE:.0f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}".removesuffix(".0")


def _line(text: str, style: str) -> Text:
    return Text(printable(text), style, no_wrap=True, overflow="ellipsis")


def _plain(text: str) -> Text:
    """Return a cell that shows text from a site literally, and may be shortened."""
    return Text(printable(text), no_wrap=True, overflow="ellipsis")
