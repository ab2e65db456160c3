"""Verbs that read the data or a recorded body: token, matches, events, parse."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from longstop.api.serialisers import event_entry, match_entry
from longstop.cli.options import Data, Json, Match, existing_data, existing_directory, find_match, settings_for
from longstop.cli.tables import matches_table, plain
from longstop.clock import Moment, SystemClock
from longstop.errors import UsageError
from longstop.model.event import StoredEvent
from longstop.model.observation import LIST, LIVE, Query
from longstop.sports.registry import sport_named
from longstop.storage.base import MatchFilter, MatchReader
from longstop.storage.sqlite.hot import SqliteHotReader
from longstop.storage.sqlite.matches import SqliteMatchReader

#: The fetcher rejects larger bodies, too.
MAX_FILE_BYTES = 5_000_000


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
    entries = asyncio.run(_entries(existing_data(data)))
    if as_json:
        print(json.dumps(entries, ensure_ascii=False))
        return
    console = Console()
    console.print(matches_table(entries, console.width))


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
    from longstop.sources.load_sources import source_for_parsing
    from longstop.sources.parsing import read_body

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


async def _entries(data: Path) -> list[dict[str, Any]]:
    """Return every match as the API lists it."""
    async with (
        aclosing(SqliteMatchReader(data / "matches.db")) as reader,
        aclosing(SqliteHotReader(data / "hot.db")) as hot,
    ):
        entries, now, after = [], Moment.of(SystemClock()), 0
        records = {record.match_id: record for record in await hot.records()}
        while page := await reader.matches(MatchFilter(after_id=after)):
            entries += [match_entry(match, records.get(match.match_id), now) for match in page]
            after = page[-1].match_id
        return entries


async def _print_events(data: Path, match_id: str, *, as_json: bool) -> None:
    async with aclosing(SqliteMatchReader(data / "matches.db")) as reader:
        match = await find_match(reader, match_id)
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
    console.print(plain(f"{match.title} ({match.ref})"))
    console.print(table)


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
