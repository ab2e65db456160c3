"""Verbs that read the data: token, matches, events."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from longstop.api.match_documents import event_entry, match_entry
from longstop.cli.match_health_and_error_tables import matches_table
from longstop.cli.options_and_data_access import Data, Json, Match, existing_data, existing_directory, find_match
from longstop.cli.output import TextConsole, plain, say, say_json
from longstop.clock import Moment, SystemClock
from longstop.model.event import StoredEvent
from longstop.sports.registry import sport_named
from longstop.storage.base import MatchFilter, MatchReader
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader
from longstop.storage.sqlite.matches import SqliteMatchReader


def token(
    data: Data = None,
    subject: Annotated[str, typer.Option(help="Who the token is for; recorded with each command.")] = "cli",
    is_admin: Annotated[bool, typer.Option("--admin", help="Also allow sending commands to the scraper.")] = False,
) -> None:
    """Print a token for the API."""
    from longstop.api.tokens import make_token

    say(make_token(existing_directory(data), subject, is_admin=is_admin))


def matches(data: Data = None, as_json: Json = False) -> None:
    """List the matches with the age of their data."""
    entries, paused = asyncio.run(_entries(existing_data(data)))
    if as_json:
        say_json(json.dumps(entries, ensure_ascii=False))
        return
    console = TextConsole()
    console.print(matches_table(entries, paused, console.width))


def events(match: Match, data: Data = None, as_json: Json = False) -> None:
    """Print every stored version of every event of a match, ordered by sequence number."""
    asyncio.run(_print_events(existing_data(data), match, as_json=as_json))


VERBS = (token, matches, events)


async def _entries(data: Path) -> tuple[list[dict[str, Any]], set[int]]:
    """Return every match as the API lists it, and the numbers of the paused ones."""
    async with (
        aclosing(SqliteMatchReader(data / "matches.db")) as reader,
        aclosing(SqliteHotReader(data / "hot.db")) as hot,
    ):
        entries, now, after = [], Moment.of(SystemClock()), 0
        records = {record.match_id: record for record in await hot.records()}
        while page := await reader.matches(MatchFilter(after_id=after)):
            incomplete = await reader.with_open_findings(page[0].match_id, page[-1].match_id)
            entries += [
                match_entry(match, records.get(match.match_id), now, has_findings=match.match_id in incomplete)
                for match in page
            ]
            after = page[-1].match_id
        return entries, {match_id for match_id, record in records.items() if record.is_paused}


async def _print_events(data: Path, match_id: str, *, as_json: bool) -> None:
    async with aclosing(SqliteMatchReader(data / "matches.db")) as reader:
        match = await find_match(reader, match_id)
        stored = _all_events(reader, match.match_id)
        if as_json:
            async for each in stored:
                say_json(json.dumps(event_entry(each, match), ensure_ascii=False))
            return
        table = Table("seq", "key", "rev", "op", "what")
        describe = sport_named(match.sport).describe
        async for each in stored:
            event = each.event
            table.add_row(str(each.seq), str(event.key), str(event.rev), event.op.value, plain(describe(event)))
    console = TextConsole()
    # Not the title of the table: that would wrap at the width of a narrow table.
    console.print(plain(f"{match.title} ({match.ref})"))
    console.print(table)


async def _all_events(reader: MatchReader, match_id: int) -> AsyncIterator[StoredEvent]:
    after = 0
    while page := await reader.events_after(match_id, after, 500):
        for each in page:
            yield each
        after = page[-1].seq
