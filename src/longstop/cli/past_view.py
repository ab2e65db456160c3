"""How it went, as a table for people. Pure: the same rows give the same table."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from longstop.storage.base import HealthRow

_STYLES = {"healthy": "green", "degraded": "yellow", "recovering": "cyan", "failing": "red"}


def table(rows: Iterable[HealthRow]) -> Table:
    """Return the rows as they come; what was not measured is left empty."""
    shown = Table("at", "of", "was", "errors", "memory MB", "CPU %", "latency ms", "age s")
    for row in rows:
        shown.add_row(
            f"{row.timestamp:%m-%d %H:%M:%S}",
            Text(row.ref or row.scraper_id),
            Text(row.health_status, style=_STYLES.get(row.health_status, "")),
            str(row.error_count),
            _number(row.memory_mb),
            _number(row.cpu_percent),
            _number(row.update_latency_ms),
            _number(row.last_update_age_seconds),
        )
    return shown


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
