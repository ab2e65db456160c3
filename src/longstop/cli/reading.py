"""Verbs that read: token, matches, events, parse."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from longstop.cli.options import Data, Json, existing_data, settings_for
from longstop.clock import Moment, SystemClock
from longstop.errors import UsageError
from longstop.model.event import StoredEvent
from longstop.model.match import parse_match_id
from longstop.model.observation import LIST, LIVE, Query
from longstop.settings import Settings
from longstop.sports.registry import sport_named
from longstop.storage.base import MatchFilter, MatchReader, MatchRow

#: A recorded body larger than what the fetcher would take is not worth reading.
MAX_FILE_BYTES = 5_000_000


def token(
    data: Data = None,
    subject: Annotated[str, typer.Option(help="Who the token is for; shown in the API's records.")] = "cli",
    is_admin: Annotated[bool, typer.Option("--admin", help="It may also give the scraper orders.")] = False,
) -> None:
    """Print a token for the API's data routes."""
    from longstop.app.api import make_token

    print(make_token(settings_for(data), subject, is_admin=is_admin))


def matches(data: Data = None, as_json: Json = False) -> None:
    """List the matches in a data directory, with the age of what is known."""
    settings = existing_data(data)
    entries = asyncio.run(_entries(settings))
    if as_json:
        print(json.dumps(entries, ensure_ascii=False))
        return
    table = Table("id", "match", "title", "status", "phase", "sync", "age, s")
    for entry in entries:
        table.add_row(*(_cell(entry[name]) for name in _COLUMNS))
    Console().print(table)


_COLUMNS = ("matchId", "match_id", "title", "status", "phase", "sync", "data_age_seconds")


def events(
    match_id: Annotated[str, typer.Argument(metavar="ID", help="A match's number, or source_id as in crex_11HD.")],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Print every stored event version of a match, in the order of its sequence numbers."""
    asyncio.run(_print_events(existing_data(data), match_id, as_json=as_json))


def parse(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The source, as in crex.")],
    kind: Annotated[str, typer.Argument(help="What the body is: list, live, or another resource of the sport.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recorded body.")],
    match: Annotated[
        str | None, typer.Option(metavar="KEY", help="The match it should be of; by default its own.")
    ] = None,
) -> None:
    """Read a recorded body offline and print what the source makes of it, as JSON."""
    from longstop.sources.parsing import read_body
    from longstop.sources.registry import source_for_parsing

    reader = source_for_parsing(source, settings_for(None).sources)
    known = (LIST, LIVE, *sport_named(reader.sport).resources)
    if kind not in known:
        raise typer.BadParameter(f"{kind!r} is not one of {', '.join(known)}.", param_hint="KIND")
    view = read_body(reader, Query(resource=kind, source_id=match or ""), _read_body(file))
    try:
        printable = msgspec.to_builtins(view)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{source} returned a view that is not a msgspec Struct of its sport: {error}") from error
    print(json.dumps(printable, ensure_ascii=False, indent=2))


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
        table = Table("seq", "key", "rev", "op", "what", title=Text(match.title))
        describe = sport_named(match.sport).describe
        async for each in stored:
            event = each.event
            table.add_row(str(each.seq), str(event.key), str(event.rev), event.op.value, Text(describe(event)))
    Console().print(table)


def _cell(value: object) -> Text:
    """Return a cell that shows names as they are: no markup, no control characters that move the cursor."""
    shown = "-" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value)
    return Text("".join(letter for letter in shown if letter.isprintable()))


def _reader(settings: Settings) -> MatchReader:
    from longstop.storage.directory import DataDirectory
    from longstop.storage.sqlite.matches import SqliteMatchReader

    return SqliteMatchReader(DataDirectory.open(settings.data).matches_db)


async def _find(reader: MatchReader, text: str) -> MatchRow:
    name = parse_match_id(text)
    match = await (reader.match(name) if isinstance(name, int) else reader.find(name))
    if match is None:
        raise UsageError(f"there is no match {text}: `longstop matches` lists those that are there")
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
            raise UsageError(f"{file} is larger than the {MAX_FILE_BYTES:,} bytes that one body may have")
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
