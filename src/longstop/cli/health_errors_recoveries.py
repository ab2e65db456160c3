"""Verbs about the health of a node: health, errors, recoveries."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec.structs import replace

from longstop.api.health_cache_and_pollers import DISK_FULL
from longstop.api.health_documents import (
    StatusSnapshot,
    health_log_entry,
    read_live_view,
    recovery_entry,
    status_document,
)
from longstop.cli.match_health_and_error_tables import (
    errors_table,
    health_log_table,
    recoveries_table,
)
from longstop.cli.options_and_data_access import Data, Json, ask, existing_data, find_match
from longstop.cli.output import TextConsole, say, say_error, say_json
from longstop.clock import SystemClock, to_iso
from longstop.errors import LongstopError, StorageError, StoreDamaged, UsageError
from longstop.model.episode import StoredError
from longstop.model.match import MatchRef, parse_match_id
from longstop.storage.base import ErrorFilter, HealthRow
from longstop.storage.directory import is_disk_full
from longstop.storage.sqlite.connection import columns_of
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader
from longstop.storage.sqlite.matches import SqliteMatchReader
from longstop.storage.sqlite.operations_tables import (
    SqliteAudit,
    SqliteCommands,
    SqliteErrors,
    SqliteHealthLog,
)
from longstop.supervision.health_grade_and_recovery import Grade
from longstop.supervision.health_verdict import (
    NEVER_RAN,
    HealthStatus,
    HealthVerdict,
    start_failure,
    with_reasons,
    with_store_problems,
)
from longstop.text import printable

#: The exit code of `health` when the data directory cannot be read.
UNKNOWN = 3


def health(
    data: Data = None,
    history: Annotated[bool, typer.Option("--history", help="Print the health log instead.")] = False,
    match: Annotated[
        str | None, typer.Option(metavar="ID", help="Only of this match: its number, or crex_11HD. Implies --history.")
    ] = None,
    hours: Annotated[
        float | None,
        typer.Option(metavar="N", min=0.01, max=720, help="How far back, by default 1. Implies --history."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the health; exit with 0 healthy, 1 degraded, 2 failing or down, 3 unknown."""
    wants_history = history or match is not None or hours is not None
    try:
        path = existing_data(data)
        if wants_history:
            rows = _history(path, match, hours or 1.0)
        else:
            snapshot = ask(StatusReader(path), StatusReader.read)
    except LongstopError as error:
        say_error(error, "longstop: health unknown: ")
        raise typer.Exit(UNKNOWN) from None
    if wants_history:
        if match is not None and not rows:
            ask(SqliteMatchReader(path / "matches.db"), lambda reader: find_match(reader, match))
        _print_history(rows, as_json=as_json)
        return
    verdict = snapshot.verdict
    if as_json:
        say_json(msgspec.json.encode(status_document(snapshot, config={})).decode())
    else:
        for line in (verdict.summary, *(f"  {each}" for each in (*verdict.reasons, *verdict.notes))):
            say(printable(line), hanging=4)
    raise typer.Exit(exit_code(verdict))


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
    path = existing_data(data)
    if resolve is not None:
        # The file must not be created just to mark an error in it.
        now, file = SystemClock().now(), path / "ops.db"
        is_possible = resolve < 2**63 and file.exists()  # SQLite has no larger ids
        if not (is_possible and ask(SqliteErrors(file), lambda store: store.resolve(resolve, now))):
            raise UsageError(f"there is no open error {resolve}: `longstop errors --open` lists all")
        say(f"Error {resolve} is resolved.")
        return
    found = asyncio.run(_errors(path, match, is_open, limit))
    if as_json:
        say_json(json.dumps([_error_entry(error) for error in found], ensure_ascii=False))
    elif found:
        console = TextConsole()
        console.print(errors_table(found, console.width))
    else:
        say("No matching errors are recorded." if match or is_open else "No errors are recorded.")


def recoveries(
    data: Data = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="How many, newest first.")] = 20,
    as_json: Json = False,
) -> None:
    """List automatic recoveries, their triggers and outcomes."""
    found = ask(SqliteAudit(existing_data(data) / "ops.db"), lambda audit: audit.recent(limit))
    if as_json:
        say_json(json.dumps([recovery_entry(each) for each in found], ensure_ascii=False))
    elif found:
        TextConsole().print(recoveries_table(found))
    else:
        say("No recoveries are recorded.")


VERBS = (health, errors, recoveries)


def exit_code(verdict: HealthVerdict) -> int:
    if verdict.status is HealthStatus.DOWN or verdict.grade is Grade.FAILING:
        return 2
    return 1 if verdict.status is HealthStatus.DEGRADED else 0


class StatusReader:
    """Reads the status of a data directory. Keeps its files open, and writes nothing."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._hot = SqliteHotReader(data / "hot.db")
        self._matches = SqliteMatchReader(data / "matches.db")
        self._audit = SqliteAudit(data / "ops.db")
        self._commands = SqliteCommands(data / "ops.db", SystemClock())

    async def read(self) -> StatusSnapshot:
        """Return the current status; raise `StorageError` when the live view cannot be read."""
        live = await read_live_view(self._hot, SystemClock())
        problems = [DISK_FULL] if is_disk_full(self._data) else []
        try:
            await self._matches.match(0)  # no row: a damaged one concerns its match only
        except StorageError as error:
            problems.append(f"the store cannot be read: {error}")
        verdict = with_store_problems(live.verdict, tuple(problems))
        try:
            recoveries, standing = await self._audit.recent(), await self._commands.standing()
        except StoreDamaged as error:
            return replace(live, verdict=with_reasons(verdict, (*verdict.reasons, f"orders and audit: {error}")))
        except StorageError:  # the verdict does not depend on it
            return replace(live, verdict=verdict)
        # An API that keeps failing at start could not report it itself.
        starts = tuple(
            filter(None, (start_failure(each, recoveries, live.taken_at.wall) for each in ("scraper", "api")))
        )
        if starts:
            verdict = with_reasons(verdict, (*starts, *(each for each in verdict.reasons if each != NEVER_RAN)))
        return replace(live, verdict=verdict, recoveries=recoveries, standing=standing)

    async def aclose(self) -> None:
        for file in (self._hot, self._matches, self._audit, self._commands):
            await file.aclose()


def _history(data: Path, match: str | None, hours: float) -> list[HealthRow]:
    # Only this verb needs it: the routes load FastAPI.
    from longstop.api.health_and_recovery_routes import MAX_ROWS_SHOWN, health_log_rows

    since = SystemClock().now() - timedelta(hours=hours)
    return ask(SqliteHealthLog(data / "ops.db"), lambda log: health_log_rows(log, match, since, MAX_ROWS_SHOWN))


def _print_history(rows: Sequence[HealthRow], *, as_json: bool) -> None:
    if as_json:
        say_json(msgspec.json.encode([health_log_entry(each) for each in rows]).decode())
    elif rows:
        console = TextConsole()
        console.print(health_log_table(rows, console.width))
    else:
        say("The health log has no rows for that time.")


async def _errors(data: Path, match: str | None, is_open: bool, limit: int) -> list[StoredError]:
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
        if match is not None and not found and not await store.recent(replace(wanted, is_open=False, limit=1)):
            await find_match(reader, match)
        return found


def _error_entry(error: StoredError) -> dict[str, Any]:
    entry, resolution = columns_of(error) | columns_of(error.episode), error.resolution
    del entry["episode"], entry["resolution"]
    return entry | {
        "resolved": resolution is not None,
        "resolution_time": to_iso(resolution.at) if resolution else None,
        "resolution_method": resolution.method.value if resolution else None,
    }
