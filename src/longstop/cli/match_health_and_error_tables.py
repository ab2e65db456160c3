"""Tables for a terminal. They print nothing.

Names and reasons wrap, so that a narrow terminal cuts nothing. Below `WIDE` columns they share a cell with the id.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from longstop.cli.output import plain
from longstop.model.episode import StoredError
from longstop.model.match import IN_PLAY, MatchStatus
from longstop.model.polling_status import SyncState
from longstop.model.recovery import Recovery, RecoveryOutcome
from longstop.storage.base import HealthRow
from longstop.supervision.health_grade_and_recovery import OLD_SECONDS

#: Narrower terminals get fewer columns.
WIDE = 100
GRADE_STYLES = {"healthy": "green", "degraded": "yellow", "recovering": "cyan", "failing": "red", "down": "red"}
OUTCOME_STYLES = {
    RecoveryOutcome.PENDING: "cyan",
    RecoveryOutcome.RECOVERED: "green",
    RecoveryOutcome.NOT_RECOVERED: "red",
}
_WRAPPED = frozenset({"match", "title", "of", "error", "trigger", "outcome"})


def number(value: float | None, missing: str = "-") -> str:
    return missing if value is None else f"{value:.1f}".removesuffix(".0")


def outcome_text(outcome: RecoveryOutcome) -> str:
    return outcome.value.replace("_", " ")


def shown_sync(sync: SyncState, status: MatchStatus, age_seconds: float | None) -> str:
    """Return the sync state, but `stale` for a match in play whose data are old: once in sync is not up to date."""
    is_old = status in IN_PLAY and (age_seconds is None or age_seconds > OLD_SECONDS)
    return "stale" if is_old and sync is SyncState.IN_SYNC else sync.value


def matches_table(entries: Sequence[dict[str, Any]], paused: Collection[int], width: int) -> Table:
    """Return the matches as the API lists them; `paused` has the numbers of those that are."""
    table = _table(*(("id", "match", "title") if width >= WIDE else ("id", "match")), "status", "sync", "age, s")
    for entry in entries:
        age, is_paused = entry["data_age_seconds"], entry["matchId"] in paused
        table.add_row(
            str(entry["matchId"]),
            *_name_and_text(entry["match_id"], entry["title"], width),
            entry["status"],
            "paused" if is_paused else shown_sync(SyncState(entry["sync"]), MatchStatus(entry["status"]), age),
            "-" if age is None else f"{age:.1f}",
        )
    return table


def health_log_table(rows: Iterable[HealthRow], width: int) -> Table:
    """Return the rows of the health log. What was not measured is empty; `--json` has all columns."""
    more = ("CPU %", "latency ms") if width >= WIDE else ()
    table = _table("at", "of", "was", "errors", "memory MB", "age s", *more)
    for row in rows:
        figures = (row.memory_mb, row.last_update_age_seconds, row.cpu_percent, row.update_latency_ms)[: 2 + len(more)]
        table.add_row(
            f"{row.timestamp:%m-%d %H:%M:%S}",
            plain(row.ref or row.scraper_id),
            Text(row.health_status, GRADE_STYLES.get(row.health_status, "")),
            str(row.error_count),
            *(number(figure, missing="") for figure in figures),
        )
    return table


def errors_table(errors: Iterable[StoredError], width: int) -> Table:
    table = _table("id", "last seen", "times", *(("of", "error") if width >= WIDE else ("error",)), "state")
    for error in errors:
        # The URL fills lines; `--json` has it.
        message = error.error_message.partition(f"{error.url}: ")[2] or error.error_message
        table.add_row(
            str(error.id),
            f"{error.last_seen:%m-%d %H:%M:%S}",
            str(error.count),
            *_name_and_text(error.episode.ref, f"{error.error_class}: {message}", width),
            Text("open", style="red") if error.resolution is None else error.resolution.method.value,
        )
    return table


def recoveries_table(recoveries: Iterable[Recovery]) -> Table:
    table = _table("started", "action", "of", "trigger", "took", "outcome")
    for each in recoveries:
        outcome = outcome_text(each.outcome) + (f": {each.observed}" if each.observed else "")
        table.add_row(
            f"{each.began_at:%m-%d %H:%M:%S}",
            each.kind.value,
            plain(each.subject),
            plain(each.trigger + (f" (and {each.count - 1} older)" if each.count > 1 else "")),
            "" if each.duration_seconds is None else f"{each.duration_seconds:.1f} s",
            plain(outcome, OUTCOME_STYLES[each.outcome]),
        )
    return table


def _table(*columns: str) -> Table:
    table = Table()
    for column in columns:
        # Rich shrinks only columns that may wrap.
        table.add_column(column, no_wrap=column not in _WRAPPED, overflow="fold")
    return table


def _name_and_text(name: str, text: str, width: int) -> tuple[Text, ...]:
    """Return two cells, or one with both on a narrow terminal."""
    if width >= WIDE:
        return plain(name), plain(text)
    return (Text.assemble(plain(text), "\n", plain(name, "dim")),)
