"""The verb about what went wrong: errors."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from longstop.cli.options import Data, Json, existing_data
from longstop.clock import SystemClock, to_iso
from longstop.errors import UsageError
from longstop.model.episode import StoredError
from longstop.model.match import MatchRef, parse_match_id


def errors(
    data: Data = None,
    match: Annotated[
        str | None, typer.Option(metavar="ID", help="Only of this match: its number, or source_id as in crex_11HD.")
    ] = None,
    is_open: Annotated[bool, typer.Option("--open", help="Only those that are not resolved.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="How many, the newest first.")] = 20,
    resolve: Annotated[
        int | None, typer.Option(metavar="ID", min=1, help="Mark this error as dealt with, and list nothing.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List what went wrong, the newest first, or mark one as dealt with."""
    from longstop.storage.directory import DataDirectory

    path = DataDirectory.open(existing_data(data).data).ops_db
    if resolve is not None:
        _resolve(path, resolve)
        return
    found = asyncio.run(_read(path, match, is_open, limit))
    if as_json:
        print(json.dumps([_entry(error) for error in found], ensure_ascii=False))
    elif found:
        Console().print(_table(found))
    else:
        print("No such errors are recorded." if match or is_open else "No errors are recorded.")


VERBS = (errors,)


async def _read(path: Path, match: str | None, is_open: bool, limit: int) -> list[StoredError]:
    from longstop.storage.base import ErrorFilter
    from longstop.storage.sqlite.ops import SqliteErrors

    name = None if match is None else parse_match_id(match)
    wanted = ErrorFilter(
        match_id=name if isinstance(name, int) else None,
        ref=str(name) if isinstance(name, MatchRef) else None,
        is_open=is_open,
        limit=limit,
    )
    async with aclosing(SqliteErrors(path)) as store:
        return await store.recent(wanted)


def _resolve(path: Path, error_id: int) -> None:
    # Marking an error must not make a file for it.
    if not (path.exists() and asyncio.run(_mark(path, error_id))):
        raise UsageError(f"there is no open error {error_id}: `longstop errors --open` lists those that are")
    print(f"Error {error_id} is resolved.")


async def _mark(path: Path, error_id: int) -> bool:
    from longstop.storage.sqlite.ops import SqliteErrors

    async with aclosing(SqliteErrors(path)) as store:
        return await store.resolve(error_id, SystemClock().now())


def _entry(error: StoredError) -> dict[str, Any]:
    over = error.resolution
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
        "resolved": over is not None,
        "resolution_time": to_iso(over.at) if over else None,
        "resolution_method": over.method.value if over else None,
    }


def _table(found: list[StoredError]) -> Table:
    table = Table("id", "last seen", "times", "of", "error", "state")
    for error in found:
        state = Text("open", style="red") if error.resolution is None else Text(error.resolution.method.value)
        seen, words = f"{error.last_seen:%m-%d %H:%M:%S}", _plain(f"{error.error_class}: {_reason(error)}")
        table.add_row(str(error.id), seen, str(error.count), _plain(error.episode.ref), words, state)
    return table


def _reason(error: StoredError) -> str:
    """Return the message without the request, which fills lines; `--json` has it."""
    return error.error_message.partition(f"{error.url}: ")[2] or error.error_message


def _plain(text: str) -> Text:
    """Return a cell that shows a site's words as they are: no markup, no characters that move the cursor."""
    return Text("".join(letter for letter in text if letter.isprintable()))
