"""Verbs that read: token, matches, events, parse."""

import json
from collections.abc import Iterator
from enum import StrEnum
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
from longstop.model.cricket import Delivery, InferredBalls, InningsSummary, OverSummary, Result
from longstop.model.event import StoredEvent
from longstop.model.football import (
    Card,
    FootballResult,
    Goal,
    Kick,
    MissedPenalty,
    PeriodEnd,
    Substitution,
    Timed,
    VarDecision,
)
from longstop.model.match import parse_match_id
from longstop.settings import Settings
from longstop.sources.base import Ask, Resource
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
    entries = list(_entries(settings))
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
    from longstop.api.shapes import event_entry

    reader = _reader(existing_data(data))
    match = _find(reader, match_id)
    stored = _all_events(reader, match.match_id)
    if as_json:
        for each in stored:
            print(json.dumps(event_entry(each, match.ref.source), ensure_ascii=False))
        return
    table = Table("seq", "key", "rev", "op", "what", title=Text(match.title))
    for each in stored:
        event = each.event
        table.add_row(str(each.seq), str(event.key), str(event.rev), event.op.value, Text(_describe(each)))
    Console().print(table)


class ParseKind(StrEnum):
    LIVE = "live"
    SCORECARD = "scorecard"
    BALLS = "balls"
    LIST = "list"
    NAMES = "names"
    INCIDENTS = "incidents"
    LINEUPS = "lineups"
    STATISTICS = "statistics"


def parse(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The source, as in crex.")],
    kind: Annotated[ParseKind, typer.Argument(help="What the body is.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recorded body.")],
    match: Annotated[
        str | None, typer.Option(metavar="KEY", help="The match it should be of; by default its own.")
    ] = None,
) -> None:
    """Read a recorded body offline and print what the source makes of it, as JSON."""
    from longstop.sources.registry import offline_source

    body = _read_body(file)
    ask = Ask(resource=Resource(kind.value), source_id=match or "")
    reading = offline_source(source).parse(ask, body)
    print(json.dumps(msgspec.to_builtins(reading), ensure_ascii=False, indent=2))


VERBS = (token, matches, events, parse)


def _entries(settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield every match as the API lists it."""
    from longstop.api.shapes import match_entry
    from longstop.storage.directory import DataDirectory
    from longstop.storage.sqlite.hot import SqliteHotReader

    reader, hot = _reader(settings), SqliteHotReader(DataDirectory.open(settings.data).hot_db)
    now = Moment.of(SystemClock())
    after = 0
    while page := reader.matches(MatchFilter(after_id=after)):
        for match in page:
            row = hot.row(match.match_id)
            yield match_entry(match, row.record if row else None, now)
        after = page[-1].match_id


def _cell(value: object) -> Text:
    """Return a cell that shows names as they are: no markup, no control characters that move the cursor."""
    shown = "-" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value)
    return Text("".join(letter for letter in shown if letter.isprintable()))


def _reader(settings: Settings) -> MatchReader:
    from longstop.storage.directory import DataDirectory
    from longstop.storage.sqlite.matches import SqliteMatchReader

    return SqliteMatchReader(DataDirectory.open(settings.data).matches_db)


def _find(reader: MatchReader, text: str) -> MatchRow:
    name = parse_match_id(text)
    match = reader.match(name) if isinstance(name, int) else reader.find(name)
    if match is None:
        raise UsageError(f"there is no match {text}: `longstop matches` lists those that are there")
    return match


def _all_events(reader: MatchReader, match_id: int) -> Iterator[StoredEvent]:
    after = 0
    while page := reader.events_after(match_id, after, 500):
        yield from page
        after = page[-1].seq


def _describe(stored: StoredEvent) -> str:
    match stored.event.content:
        case Delivery(label=label, runs=runs, wickets=wickets):
            fallen = "".join(f", {wicket.player_out} {wicket.kind}" for wicket in wickets)
            return f"{label}: {runs.total}{fallen}"
        case InferredBalls() as unseen:
            return f"not shown: {unseen.balls} balls, {unseen.runs} runs, {unseen.wickets} wickets"
        case OverSummary(runs=over_runs, score=score):
            return f"over: {over_runs} runs, {score.runs}/{score.wickets}"
        case InningsSummary(runs=total, wickets=gone, overs=overs):
            return f"innings: {total}/{gone} in {overs}"
        case Result(text=text) | FootballResult(text=text):
            return text
        case Kick(sequence=sequence, is_scored=is_scored, home=home, away=away):
            return f"kick {sequence}: {'scored' if is_scored else 'missed'}, {home}-{away}"
        case PeriodEnd(period=period, home=home, away=away):
            return f"{period}: {home}-{away}"
        case timed:
            minute = "-" if timed.minute is None else f"{timed.minute}'"
            return f"{minute}{f'+{timed.added}' if timed.added else ''}: {_what(timed)}"


def _what(content: Timed) -> str:
    match content:
        case Goal(how=how, home=home, away=away):
            return f"{how} goal, {home}-{away}"
        case Card(card=card):
            return f"{card} card"
        case VarDecision(decision=decision):
            return decision
        case Substitution():
            return "substitution"
        case MissedPenalty():
            return "penalty missed"


def _read_body(file: Path) -> bytes:
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{file} is larger than the {MAX_FILE_BYTES:,} bytes that one body may have")
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
