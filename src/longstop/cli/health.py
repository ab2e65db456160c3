"""Verbs about the health of a node: health, errors, recoveries."""

import asyncio
import json
import sys
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec.structs import replace
from rich.console import Console

from longstop.cli.health_tables import errors_table, health_table, printable, recoveries_table
from longstop.cli.options import Data, Json, existing_data, unknown_match
from longstop.cli.status_snapshot import StatusReader, StatusSnapshot
from longstop.clock import SystemClock, to_iso
from longstop.errors import LongstopError, UsageError
from longstop.model.episode import StoredError
from longstop.model.match import MatchRef, parse_match_id
from longstop.model.recovery import Recovery
from longstop.storage.base import HealthRow
from longstop.supervision.health import Grade
from longstop.supervision.health_verdict import HealthStatus, HealthVerdict

#: The exit code of `health` when the data directory cannot be read.
UNKNOWN = 3


def health(
    data: Data = None,
    history: Annotated[bool, typer.Option("--history", help="Print the health log instead.")] = False,
    match: Annotated[str | None, typer.Option(metavar="REF", help="With --history: only this match.")] = None,
    hours: Annotated[float, typer.Option(metavar="N", min=0.01, max=720, help="With --history: how far back.")] = 1.0,
    as_json: Json = False,
) -> None:
    """Print the health; exit with 0 healthy, 1 degraded, 2 failing or down, 3 unknown."""
    try:
        path = existing_data(data).data
        if history or match is not None:
            _print_history(path, match, hours, as_json=as_json)
            return
        snapshot = asyncio.run(_snapshot(path))
    except LongstopError as error:
        print(f"longstop: health unknown: {error}", file=sys.stderr)
        raise typer.Exit(UNKNOWN) from None
    print(msgspec.json.encode(snapshot.document()).decode() if as_json else _text(snapshot.verdict))
    raise typer.Exit(exit_code(snapshot.verdict))


def errors(
    data: Data = None,
    match: Annotated[
        str | None, typer.Option(metavar="ID", help="Only of this match: its number, or source_id as in crex_11HD.")
    ] = None,
    is_open: Annotated[bool, typer.Option("--open", help="Only unresolved errors.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="How many, newest first.")] = 20,
    resolve: Annotated[
        int | None, typer.Option(metavar="ID", min=1, help="Mark this error as resolved instead of listing.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List errors, newest first, or mark one as resolved."""
    path = existing_data(data).data
    if resolve is not None:
        # The file must not be created just to mark an error in it.
        if not ((path / "ops.db").exists() and asyncio.run(_resolve(path, resolve))):
            raise UsageError(f"there is no open error {resolve}: `longstop errors --open` lists all")
        print(f"Error {resolve} is resolved.")
        return
    found = asyncio.run(_errors(path, match, is_open, limit))
    if as_json:
        print(json.dumps([_error_entry(error) for error in found], ensure_ascii=False))
    elif found:
        Console().print(errors_table(found))
    else:
        print("No matching errors are recorded." if match or is_open else "No errors are recorded.")


def recoveries(
    data: Data = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="How many, newest first.")] = 20,
    as_json: Json = False,
) -> None:
    """List automatic recoveries, their triggers and outcomes."""
    from longstop.api.health_documents import recovery_entry

    found = asyncio.run(_recoveries(existing_data(data).data, limit))
    if as_json:
        print(json.dumps([recovery_entry(each) for each in found], ensure_ascii=False))
    elif found:
        Console().print(recoveries_table(found))
    else:
        print("No recoveries are recorded.")


VERBS = (health, errors, recoveries)


def exit_code(verdict: HealthVerdict) -> int:
    """Return the exit code of `health`."""
    if verdict.status is HealthStatus.DOWN or verdict.grade is Grade.FAILING:
        return 2
    return 1 if verdict.status is HealthStatus.DEGRADED else 0


async def _snapshot(data: Path) -> StatusSnapshot:
    async with aclosing(StatusReader(data, SystemClock())) as reader:
        return await reader.read()


def _text(verdict: HealthVerdict) -> str:
    lines = [f"{verdict.status}{verdict.aside}", *(f"  {each}" for each in (*verdict.reasons, *verdict.notes))]
    return "\n".join(printable(line) for line in lines)


def _print_history(data: Path, match: str | None, hours: float, *, as_json: bool) -> None:
    from longstop.api.health_documents import health_log_entry

    found = asyncio.run(_history(data, match, hours))
    if as_json:
        print(msgspec.json.encode([health_log_entry(each) for each in found]).decode())
    elif found:
        Console().print(health_table(found))
    else:
        print("The health log has no rows for that time.")


async def _history(data: Path, match: str | None, hours: float) -> list[HealthRow]:
    from longstop.api.health_routes import MAX_ROWS_SHOWN, health_log_rows
    from longstop.storage.sqlite.ops import SqliteHealthLog

    since = SystemClock().now() - timedelta(hours=hours)
    async with aclosing(SqliteHealthLog(data / "ops.db")) as log:
        return await health_log_rows(log, match, since, MAX_ROWS_SHOWN)


async def _errors(data: Path, match: str | None, is_open: bool, limit: int) -> list[StoredError]:
    from longstop.storage.base import ErrorFilter
    from longstop.storage.sqlite.matches import SqliteMatchReader
    from longstop.storage.sqlite.ops import SqliteErrors

    name = None if match is None else parse_match_id(match)
    wanted = ErrorFilter(
        match_id=name if isinstance(name, int) else None,
        ref=str(name) if isinstance(name, MatchRef) else None,
        is_open=is_open,
        limit=limit,
    )
    async with (
        aclosing(SqliteErrors(data / "ops.db")) as store,
        aclosing(SqliteMatchReader(data / "matches.db")) as reader,
    ):
        found = await store.recent(wanted)
        # A match that was never stored is known by its errors, too.
        if match is None or name is None or found or await store.recent(replace(wanted, is_open=False, limit=1)):
            return found
        if await (reader.match(name) if isinstance(name, int) else reader.find(name)) is None:
            raise unknown_match(match)
        return found


async def _resolve(data: Path, error_id: int) -> bool:
    from longstop.storage.sqlite.ops import SqliteErrors

    async with aclosing(SqliteErrors(data / "ops.db")) as store:
        return await store.resolve(error_id, SystemClock().now())


async def _recoveries(data: Path, limit: int) -> list[Recovery]:
    from longstop.storage.sqlite.ops import SqliteAudit

    async with aclosing(SqliteAudit(data / "ops.db")) as audit:
        return await audit.recent(limit)


def _error_entry(error: StoredError) -> dict[str, Any]:
    resolution = error.resolution
    return {
        "id": error.id,
        "scraper_id": error.scraper_id,
        "match_id": error.match_id,
        "ref": error.episode.ref,
        "source": error.source,
        "timestamp": to_iso(error.timestamp),
        "last_seen": to_iso(error.last_seen),
        "count": error.count,
        "error_type": error.error_type.value,
        "error_class": error.error_class,
        "error_message": error.error_message,
        "signature": error.episode.signature,
        "stack_trace": error.stack_trace,
        "url": error.url,
        "operation": error.operation,
        "retry_attempt": error.retry_attempt,
        "snapshot": error.snapshot,
        "resolved": resolution is not None,
        "resolution_time": to_iso(resolution.at) if resolution else None,
        "resolution_method": resolution.method.value if resolution else None,
    }
