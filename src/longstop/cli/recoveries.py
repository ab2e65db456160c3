"""The verb about what was done without a person: recoveries."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from longstop.cli.options import Data, Json, existing_data
from longstop.model.recovery import Recovery, RecoveryOutcome

_STYLES = {
    RecoveryOutcome.PENDING: "yellow",
    RecoveryOutcome.RECOVERED: "green",
    RecoveryOutcome.NOT_RECOVERED: "red",
}


def recoveries(
    data: Data = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="How many, the newest first.")] = 20,
    as_json: Json = False,
) -> None:
    """List what was done without a person, why, and what was seen to come of it."""
    from longstop.api.health_documents import recovery_entry

    found = asyncio.run(_read(existing_data(data).data, limit))
    if as_json:
        print(json.dumps([recovery_entry(each) for each in found], ensure_ascii=False))
    elif found:
        Console().print(_table(found))
    else:
        print("Nothing had to be done.")


VERBS = (recoveries,)


async def _read(data: Path, limit: int) -> list[Recovery]:
    from longstop.storage.directory import DataDirectory
    from longstop.storage.sqlite.ops import SqliteAudit

    async with aclosing(SqliteAudit(DataDirectory.open(data).ops_db)) as audit:
        return await audit.recent(limit)


def _table(found: list[Recovery]) -> Table:
    table = Table("began", "what", "of", "why", "took", "outcome")
    for each in found:
        took = "" if each.duration_seconds is None else f"{each.duration_seconds:.1f} s"
        outcome = Text(each.observed or each.outcome.value, style=_STYLES[each.outcome])
        why = each.trigger + (f" (and {each.count - 1} older)" if each.count > 1 else "")
        table.add_row(f"{each.began_at:%m-%d %H:%M:%S}", each.kind.value, Text(each.subject), Text(why), took, outcome)
    return table
