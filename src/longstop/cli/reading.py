"""Verbs that read the data or a recorded body: token, matches, events, parse."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from longstop.cli.health_tables import printable
from longstop.cli.options import Data, Json, Match, existing_data, existing_directory, settings_for, unknown_match
from longstop.clock import Moment, SystemClock
from longstop.errors import UsageError
from longstop.model.event import StoredEvent
from longstop.model.match import parse_match_id
from longstop.model.observation import LIST, LIVE, Query
from longstop.settings import Settings
from longstop.sports.registry import sport_named
from longstop.storage.base import MatchFilter, MatchReader, MatchRow

#: The fetcher rejects larger bodies, too.
MAX_FILE_BYTES = 5_000_000
#: Narrower terminals get fewer columns.
WIDE = 100


def token(
    data: Data = None,
    subject: Annotated[str, typer.Option(help="Who the token is for; recorded with each command.")] = "cli",
    is_admin: Annotated[bool, typer.Option("--admin", help="Also allow sending commands to the scraper.")] = False,
) -> None:
    """Print a token for the API."""
    from longstop.app.api import make_token

    print(make_token(existing_directory(data), subject, is_admin=is_admin))


def matches(data: Data = None, as_json: Json = False) -> None:
    """List the matches with the age of their data."""
    settings = existing_data(data)
    entries = asyncio.run(_entries(settings))
    if as_json:
        print(json.dumps(entries, ensure_ascii=False))
        return
    console = Console()
    console.print(_matches_table(entries, console.width))


def events(
    match: Match,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Print every stored version of every event of a match, ordered by sequence number."""
    asyncio.run(_print_events(existing_data(data), match, as_json=as_json))


def parse(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The source, such as crex.")],
    kind: Annotated[str, typer.Argument(help="What the body is: list, live, or another resource of the sport.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recorded body.")],
    match: Annotated[
        str | None, typer.Option(metavar="KEY", help="The match that the body must be about; by default any.")
    ] = None,
) -> None:
    """Parse a recorded body offline and print the result as JSON."""
    from longstop.sources.parsing import read_body
    from longstop.sources.registry import source_for_parsing

    parser = source_for_parsing(source, settings_for(None).sources)
    known = (LIST, LIVE, *sport_named(parser.sport).resources)
    if kind not in known:
        raise UsageError(f"{source} has no bodies of kind {kind}: the kinds are {', '.join(known)}")
    view = read_body(parser, Query(resource=kind, source_id=match or ""), _read_body(file))
    try:
        shown = msgspec.to_builtins(view)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{source} returned a view that is not a msgspec Struct of its sport: {error}") from error
    print(json.dumps(shown, ensure_ascii=False, indent=2))


VERBS = (token, matches, events, parse)


async def _entries(settings: Settings) -> list[dict[str, Any]]:
    """Return every match as the API lists it."""
    from longstop.api.serialisers import match_entry
    from longstop.storage.directory import DataDirectory
    from longstop.storage.sqlite.hot import SqliteHotReader

    async with AsyncExitStack() as stack:
        reader = await stack.enter_async_context(aclosing(_reader(settings)))
        hot = await stack.enter_async_context(aclosing(SqliteHotReader(DataDirectory.open(settings.data).hot_db)))
        entries, now, after = [], Moment.of(SystemClock()), 0
        while page := await reader.matches(MatchFilter(after_id=after)):
            for match in page:
                row = await hot.row(match.match_id)
                entries.append(match_entry(match, row.record if row else None, now))
            after = page[-1].match_id
        return entries


async def _print_events(settings: Settings, match_id: str, *, as_json: bool) -> None:
    from longstop.api.serialisers import event_entry

    async with aclosing(_reader(settings)) as reader:
        match = await _find(reader, match_id)
        stored = _all_events(reader, match.match_id)
        if as_json:
            async for each in stored:
                print(json.dumps(event_entry(each, match), ensure_ascii=False))
            return
        table = Table("seq", "key", "rev", "op", "what")
        describe = sport_named(match.sport).describe
        async for each in stored:
            event = each.event
            table.add_row(str(each.seq), str(event.key), str(event.rev), event.op.value, Text(describe(event)))
    console = Console()
    # Not the title of the table: that would wrap at the width of a narrow table.
    console.print(Text(printable(f"{match.title} ({match.ref})")))
    console.print(table)


def _matches_table(entries: Sequence[dict[str, Any]], width: int) -> Table:
    """Return the matches. A narrow terminal shows fewer columns and shortens titles, but never the ids."""
    columns = {
        "id": "matchId",
        "match": "match_id",
        "title": "title",
        "status": "status",
        "phase": "phase",
        "sync": "sync",
        "age, s": "data_age_seconds",
    }
    if width < WIDE:
        del columns["phase"]
    table = Table()
    for heading in columns:
        # Rich only shrinks columns that may wrap.
        table.add_column(heading, no_wrap=heading != "title")
    for entry in entries:
        table.add_row(*(_cell(entry[name]) for name in columns.values()))
    return table


def _cell(value: object) -> Text:
    shown = "-" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value)
    return Text(printable(shown), no_wrap=True, overflow="ellipsis")


def _reader(settings: Settings) -> MatchReader:
    from longstop.storage.directory import DataDirectory
    from longstop.storage.sqlite.matches import SqliteMatchReader

    return SqliteMatchReader(DataDirectory.open(settings.data).matches_db)


async def _find(reader: MatchReader, text: str) -> MatchRow:
    name = parse_match_id(text)
    match = await (reader.match(name) if isinstance(name, int) else reader.find(name))
    if match is None:
        raise unknown_match(text)
    return match


async def _all_events(reader: MatchReader, match_id: int) -> AsyncIterator[StoredEvent]:
    after = 0
    while page := await reader.events_after(match_id, after, 500):
        for each in page:
            yield each
        after = page[-1].seq


def _read_body(file: Path) -> bytes:
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{file} is larger than {MAX_FILE_BYTES:,} bytes, the limit of one body")
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
