"""Tables of health, errors and recoveries for a terminal. Pure functions."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from longstop.model.episode import StoredError
from longstop.model.recovery import Recovery, RecoveryOutcome
from longstop.storage.base import HealthRow

GRADE_STYLES = {"healthy": "green", "degraded": "yellow", "recovering": "cyan", "failing": "red"}
OUTCOME_STYLES = {
    RecoveryOutcome.PENDING: "cyan",
    RecoveryOutcome.RECOVERED: "green",
    RecoveryOutcome.NOT_RECOVERED: "red",
}


def plain(text: str, style: str = "") -> Text:
    """Return a cell that shows text from a site literally: no markup, no control characters."""
    return Text(printable(text), style)


def printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())


def outcome_text(outcome: RecoveryOutcome) -> str:
    return outcome.value.replace("_", " ")


def health_table(rows: Iterable[HealthRow]) -> Table:
    """Return the rows of the health log. What was not measured is empty."""
    table = Table("at", "of", "was", "errors", "memory MB", "CPU %", "latency ms", "age s")
    for row in rows:
        table.add_row(
            f"{row.timestamp:%m-%d %H:%M:%S}",
            Text(row.ref or row.scraper_id),
            Text(row.health_status, style=GRADE_STYLES.get(row.health_status, "")),
            str(row.error_count),
            _number(row.memory_mb),
            _number(row.cpu_percent),
            _number(row.update_latency_ms),
            _number(row.last_update_age_seconds),
        )
    return table


def errors_table(errors: Iterable[StoredError]) -> Table:
    table = Table("id", "last seen", "times", "of", "error", "state")
    for error in errors:
        state = Text("open", style="red") if error.resolution is None else Text(error.resolution.method.value)
        # The URL fills lines; `--json` has it.
        message = error.error_message.partition(f"{error.url}: ")[2] or error.error_message
        table.add_row(
            str(error.id),
            f"{error.last_seen:%m-%d %H:%M:%S}",
            str(error.count),
            plain(error.episode.ref),
            plain(f"{error.error_class}: {message}"),
            state,
        )
    return table


def recoveries_table(recoveries: Iterable[Recovery]) -> Table:
    table = Table("started", "action", "of", "trigger", "took", "outcome")
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


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
