"""The contents of the files of a data directory, by table and column."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw

#: The columns of each table that are golden, by file; rows are ordered by the first ones.
TABLES = {
    "matches.db": {
        "matches": """match_id source source_id sport phase status title start_at owner epoch seq created_at updated_at
            completed_at""",
        "match_external_refs": "source source_id match_id",
        "event_versions": """match_id seq key rev op kind position source_event_id content content_hash epoch
            captured_at""",
        "events": "match_id key rev",
        "snapshots": """match_id sequence checksum payload provenance created_at scraper_id update_latency_ms
            data_source""",
        "findings": "match_id kind place detail opened_at closed_at",
        "names": "match_id kind key name",
    },
    "ops.db": {
        "scraper_errors": """id scraper_id match_id timestamp error_type error_class error_message stack_trace signature
            source ref url operation retry_attempt snapshot count last_seen resolved resolution_time
            resolution_method""",
        "recoveries": """id kind trigger subject process began_at duration_seconds pids_before pids_after outcome
            observed count""",
        "scraper_health_log": """id scraper_id match_id ref timestamp health_status error_count memory_mb cpu_percent
            update_latency_ms polling_interval_seconds uptime_seconds last_update_age_seconds""",
        "commands": "id kind argument asked_by asked_at state refusal answer answered_at",
        "standing_orders": "kind subject since asked_by",
    },
}
Tables = dict[str, list[dict[str, Any]]]
#: Columns with JSON.
_JSON = frozenset({"content", "provenance", "pids_before", "pids_after"})


def dump(directory: Path) -> Tables:
    """Return every row of every table; a missing file has none."""
    return {
        table: _rows(directory / file, table, columns.split()) if (directory / file).exists() else []
        for file, tables in TABLES.items()
        for table, columns in tables.items()
    }


def _rows(path: Path, table: str, names: list[str]) -> list[dict[str, Any]]:
    order = ", ".join(str(place) for place, _ in enumerate(names, start=1))
    statement = f"SELECT {', '.join(names)} FROM {table} ORDER BY {order}"  # noqa: S608, our own names
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return [_row(names, values) for values in connection.execute(statement)]
    finally:
        connection.close()


def _row(names: list[str], values: tuple[Any, ...]) -> dict[str, Any]:
    return {name: _value(name, value) for name, value in zip(names, values, strict=True)}


def _value(name: str, value: Any) -> Any:
    """Return a column as JSON; of a payload, the checksum of its bytes."""
    if isinstance(value, bytes):
        return sha256(value).hexdigest()
    return json.loads(value) if name in _JSON and value is not None else value
