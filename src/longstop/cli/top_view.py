"""What `longstop top` shows. Pure: a picture and the height of a terminal come in, a screen goes out."""

from collections.abc import Collection, Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from longstop.cli.picture import Picture
from longstop.clock import Moment
from longstop.model.match import IN_PLAY, MatchStatus, MonitoringRecord, Phase
from longstop.model.recovery import RecoveryOutcome
from longstop.storage.base import NodeBeat
from longstop.supervision.health_verdict import is_silent

#: Ages up to here are what a poll every 2.5 s gives; beyond the second limit somebody should look.
FRESH_SECONDS, OLD_SECONDS = 10.0, 60.0
#: A loop that is late by so much is busy with something it should not do.
LATE_SECONDS = 0.25
MOST_REASONS, MOST_NOTES, MOST_BREAKERS, MOST_RECOVERIES, MOST_ORDERS = 4, 3, 4, 3, 3
#: However small the terminal, some matches are shown.
FEWEST_MATCHES = 3
#: Below this width, some columns are left out rather than all of them cut.
WIDE = 100
_ONLY_WIDE = frozenset({"pss MB", "peak", "pid", "every s", "pace"})
_NODE_COLUMNS = (
    *("scraper", "grade", "pid", "procs", "rss MB", "pss MB", "peak"),
    *("cpu %", "lag ms", "err/min", "queue"),
)
_MATCH_COLUMNS = ("match", "status", "phase", "sync", "age s", "every s", "pace", "fails", "last error")
_PHASES = {Phase.PAUSED: "yellow"}
_MEGABYTE = 1 << 20
_GRADES = {"healthy": "bold green", "degraded": "bold yellow", "recovering": "bold cyan", "failing": "bold red"}
_OUTCOMES = {RecoveryOutcome.RECOVERED: "green", RecoveryOutcome.NOT_RECOVERED: "red", RecoveryOutcome.PENDING: "cyan"}
_RANK = {MatchStatus.LIVE: 0, MatchStatus.BREAK: 0, MatchStatus.UPCOMING: 1, MatchStatus.COMPLETED: 2}


def screen(picture: Picture, width: int, height: int) -> RenderableType:
    """Return the whole screen, no higher than the terminal."""
    hidden = _ONLY_WIDE if width < WIDE else frozenset()
    sentences = _sentences(picture)
    parts = [_heading(picture), *sentences, Text(), _nodes(picture.beats, picture.taken_at, hidden)]
    used = 5 + len(picture.beats) + len(sentences)
    below: list[RenderableType] = []
    for block, lines in (_breakers(picture), _orders(picture), _recoveries(picture)):
        if lines:
            below += [Text(), block]
            used += lines + 2
    rows = max(FEWEST_MATCHES, height - used - 3)
    return Group(*parts, Text(), _matches(picture, rows, hidden), *below)


def _heading(picture: Picture) -> RenderableType:
    judged = picture.judged
    in_play = [record for record in picture.records if record.status in IN_PLAY]
    paused = sum(record.phase is Phase.PAUSED for record in picture.records)
    said = Text.assemble(
        ("longstop  ", "bold"),
        (judged.status.value.upper(), _GRADES.get(judged.status.value, "bold red")),
        judged.aside,
        f"   {len(picture.records)} matches, {len(in_play)} in play, {paused} paused",
    )
    line = Table.grid(expand=True)
    line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    line.add_column(justify="right", no_wrap=True)
    line.add_row(said, Text(f"{picture.taken_at.wall:%H:%M:%S} UTC", style="dim"))
    return line


def _sentences(picture: Picture) -> list[RenderableType]:
    """Return why it is so, and what is good to know beside."""
    judged = picture.judged
    return [*_some(judged.reasons, MOST_REASONS, "yellow"), *_some(judged.notes, MOST_NOTES, "")]


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
        table.add_row(Text("none was ever heard", "dim"))
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
        f"{_number(beat.looking)}+{_number(beat.waiting)}",
    )


def _matches(picture: Picture, rows: int, hidden: Collection[str]) -> Table:
    """Return the matches, those in play first, the longest unread before the others."""
    table = _table(*(name for name in _MATCH_COLUMNS if name not in hidden))
    ordered = sorted(picture.records, key=lambda record: (_RANK[record.status], -_age(record, picture.taken_at)))
    is_cut = len(ordered) > rows
    for record in ordered[: rows - 1 if is_cut else rows]:
        cells = dict(zip(_MATCH_COLUMNS, _match(record, picture.taken_at), strict=True))
        table.add_row(*(cell for name, cell in cells.items() if name not in hidden))
    if is_cut:
        table.add_row(Text(f"{len(ordered) - rows + 1} more", "dim"))
    return table


def _match(record: MonitoringRecord, now: Moment) -> tuple[Text | str, ...]:
    age = _age(record, now)
    return (
        _plain(str(record.ref)),
        record.status.value,
        Text("on hold" if record.is_on_hold else record.phase.value, _PHASES.get(record.phase, "")),
        record.sync.value,
        Text("-" if record.last_poll_at is None else f"{age:.1f}", _age_style(record, age)),
        _number(record.interval_seconds),
        record.tempo or "-",
        Text(str(record.consecutive_failures), "red" if record.consecutive_failures else ""),
        _plain(record.last_error or ""),
    )


def _breakers(picture: Picture) -> tuple[RenderableType, int]:
    notes = [(note, beat.silence_at(picture.taken_at)) for beat in picture.beats for note in beat.breakers]
    table = _table("left alone", "what", "state", "for s", "why")
    for note, told_ago in notes[:MOST_BREAKERS]:
        left = None if note.left_seconds is None else max(0.0, note.left_seconds - told_ago)
        table.add_row(_plain(note.subject), note.scope, Text(note.state, "red"), _number(left), _plain(note.reason))
    return table, min(len(notes), MOST_BREAKERS)


def _orders(picture: Picture) -> tuple[RenderableType, int]:
    table = _table("ordered", "what", "since", "by")
    for order in picture.standing[:MOST_ORDERS]:
        table.add_row(_plain(order.subject), order.kind.value, f"{order.since:%m-%d %H:%M:%S}", _plain(order.asked_by))
    return table, min(len(picture.standing), MOST_ORDERS)


def _recoveries(picture: Picture) -> tuple[RenderableType, int]:
    table = _table("mended", "of", "outcome", "took s", "why")
    newest = (picture.recoveries or ())[:MOST_RECOVERIES]
    for recovery in newest:
        table.add_row(
            f"{recovery.began_at:%H:%M:%S} {recovery.kind.value}",
            _plain(recovery.subject),
            Text(recovery.outcome.value, _OUTCOMES[recovery.outcome]),
            _number(recovery.duration_seconds),
            _plain(recovery.trigger),
        )
    return table, len(newest)


def _table(*names: str) -> Table:
    table = Table(box=None, expand=True, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold dim")
    for name in names:
        is_free = name in ("last error", "why")
        is_figure = name.split(" ")[-1] in ("s", "ms", "MB", "%", "procs", "pid", "peak", "err/min", "fails", "queue")
        table.add_column(
            name,
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if is_free else None,
            justify="right" if is_figure else "left",
        )
    return table


def _age(record: MonitoringRecord, now: Moment) -> float:
    """Return the age of what is known; nothing known is older than everything."""
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
    return Text("".join(_printable(text)), style, no_wrap=True, overflow="ellipsis")


def _plain(text: str) -> Text:
    """Return a cell that shows a site's words as they are: no markup, no characters that move the cursor."""
    return Text("".join(_printable(text)))


def _printable(text: str) -> Iterable[str]:
    return (letter for letter in text if letter.isprintable())
