"""The verb that says how it goes: health."""

import asyncio
import sys
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from longstop.cli.options import Data, Json, existing_data
from longstop.cli.picture import Camera, Picture
from longstop.clock import SystemClock
from longstop.errors import LongstopError
from longstop.storage.base import HealthRow
from longstop.supervision.health import Grade
from longstop.supervision.health_verdict import HealthStatus, HealthVerdict

CANNOT_TELL = 3


def health(
    data: Data = None,
    history: Annotated[bool, typer.Option("--history", help="Say how it went instead, from the health log.")] = False,
    match: Annotated[str | None, typer.Option(metavar="REF", help="Of the history: one match.")] = None,
    hours: Annotated[float, typer.Option(metavar="N", min=0.01, max=720, help="Of the history: how far back.")] = 1.0,
    as_json: Json = False,
) -> None:
    """Say how it goes; exit 0 when healthy, 1 degraded, 2 failing or down, 3 when nobody can tell."""
    if history or match is not None:
        _tell_history(existing_data(data).data, match, hours, as_json=as_json)
        return
    try:
        picture = asyncio.run(_picture(existing_data(data).data))
    except LongstopError as error:
        print(f"longstop: nobody can tell: {error}", file=sys.stderr)
        raise typer.Exit(CANNOT_TELL) from None
    print(msgspec.json.encode(picture.document()).decode() if as_json else _words(picture))
    raise typer.Exit(exit_code(picture.judged))


VERBS = (health,)


async def _picture(data: Path) -> Picture:
    async with aclosing(Camera(data, SystemClock())) as camera:
        return await camera.take()


def _tell_history(data: Path, match: str | None, hours: float, *, as_json: bool) -> None:
    from longstop.api.health_documents import health_log_entry
    from longstop.cli.past_view import table

    found = asyncio.run(_history(data, match, hours))
    if as_json:
        print(msgspec.json.encode([health_log_entry(each) for each in found]).decode())
    elif found:
        Console().print(table(found))
    else:
        print("Nothing was written down in that time.")


async def _history(data: Path, match: str | None, hours: float) -> list[HealthRow]:
    from longstop.api.health_routes import MAX_ROWS_SHOWN, health_log_rows
    from longstop.storage.sqlite.ops import SqliteHealthLog

    since = SystemClock().now() - timedelta(hours=hours)
    async with aclosing(SqliteHealthLog(data / "ops.db")) as log:
        return await health_log_rows(log, match, since, MAX_ROWS_SHOWN)


def exit_code(judged: HealthVerdict) -> int:
    """Return what a shell is told."""
    if judged.status is HealthStatus.DOWN or judged.grade is Grade.FAILING:
        return 2
    return 1 if judged.status is HealthStatus.DEGRADED else 0


def _words(picture: Picture) -> str:
    judged = picture.judged
    lines = [f"{judged.status}{judged.aside}", *(f"  {each}" for each in (*judged.reasons, *judged.notes))]
    return "\n".join("".join(letter for letter in line if letter.isprintable()) for line in lines)
