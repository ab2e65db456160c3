"""Verbs that send a command to a running scraper: watch, unwatch, pause, resume, recycle.

They write the command into the data directory and wait for its reply. Access to that directory is the permission; no
token is needed.
"""

import asyncio
import getpass
import os
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer

from longstop.cli.options_and_data_access import Data, Match, ask, existing_data, find_match
from longstop.cli.output import say
from longstop.clock import Clock, Moment, SystemClock
from longstop.doctor.holders import lock_holder
from longstop.errors import StorageError, UsageError
from longstop.model.command_and_standing_order import (
    LOST_AFTER_SECONDS,
    Command,
    CommandKind,
    CommandState,
    Refusal,
    Reply,
)
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader
from longstop.storage.sqlite.matches import SqliteMatchReader
from longstop.storage.sqlite.operations_tables import SqliteCommands
from longstop.supervision.health_verdict import live_beats
from longstop.text import printable

POLL_EVERY_SECONDS = 0.1
#: When no scraper has taken a command for this long, print what the verb waits for.
SILENT_SECONDS = 3.0
#: By then every command has a reply, unless its file cannot be read.
GIVE_UP_SECONDS = LOST_AFTER_SECONDS + 5.0
EXIT_CODES = {CommandState.DONE: 0, CommandState.REFUSED: 1, CommandState.FAILED: 2, CommandState.EXPIRED: 3}

_SOURCE = re.compile(r"[a-z][a-z0-9]{0,31}")

MatchOrSource = Annotated[
    str,
    typer.Argument(metavar="WHAT", help="The number of a match, source_id as in crex_11HD, or a source as in crex."),
]


def watch(
    url: Annotated[str, typer.Argument(metavar="URL", help="The URL of the match page.")],
    data: Data = None,
) -> None:
    """Poll a match from now on, whether its site lists it or not."""
    _send(existing_data(data), CommandKind.WATCH, url)


def unwatch(match: Match, data: Data = None) -> None:
    """Stop polling a match for good; no listing or restart brings it back."""
    path = existing_data(data)
    _send(path, CommandKind.UNWATCH, _ref(path, match))


def pause(what: MatchOrSource, data: Data = None) -> None:
    """Stop polling a match or a source until it is resumed."""
    _send_about(existing_data(data), what, CommandKind.PAUSE_MATCH, CommandKind.PAUSE_SOURCE)


def resume(what: MatchOrSource, data: Data = None) -> None:
    """Resume a paused match or source."""
    _send_about(existing_data(data), what, CommandKind.RESUME_MATCH, CommandKind.RESUME_SOURCE)


def recycle(data: Data = None) -> None:
    """Restart all connections, browsers and watches."""
    _send(existing_data(data), CommandKind.RECYCLE, "")


VERBS = (watch, unwatch, pause, resume, recycle)


def _send_about(data: Path, what: str, of_match: CommandKind, of_source: CommandKind) -> None:
    if _SOURCE.fullmatch(what):
        _send(data, of_source, what)
    else:
        _send(data, of_match, _ref(data, what))


def _ref(data: Path, text: str) -> str:
    return str(ask(SqliteMatchReader(data / "matches.db"), lambda reader: find_match(reader, text)).ref)


def _send(data: Path, kind: CommandKind, argument: str) -> None:
    """Send a command, print its reply, and exit with the code of its state."""
    directory = DataDirectory.open(data)
    if not _is_scraper_running(directory):
        say(
            f"longstop: no scraper is running on {directory.path}: start one with `longstop up`, or keep"
            " `longstop demo` running, then try again",
            sys.stderr,
        )
        raise typer.Exit(EXIT_CODES[CommandState.EXPIRED])
    clock = SystemClock()

    async def reply_of(commands: SqliteCommands) -> Reply:
        return await wait_for_reply(await commands.place(kind, argument, user_name()), commands.find, clock)

    reply = ask(SqliteCommands(directory.ops_db, clock), reply_of)
    if reply.refusal is Refusal.NOT_KNOWN:
        raise UsageError(reply.answer)
    say(printable(reply.answer), sys.stdout if reply.state is CommandState.DONE else sys.stderr)
    raise typer.Exit(EXIT_CODES[reply.state])


def user_name() -> str:
    """Return who sends the command; a user in a container may have a number only."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"uid {os.getuid()}"
    return f"cli: {name}"[:100]


def _is_scraper_running(directory: DataDirectory) -> bool:
    """Return whether a scraper runs, or a supervisor that will start one.

    The lock of one in another container is not visible here, but its heartbeat is.
    """
    if any(lock_holder(directory.path / f"{role}.lock") for role in ("scraper", "supervisor")):
        return True
    beats = ask(SqliteHotReader(directory.hot_db), SqliteHotReader.beats)
    return bool(live_beats(beats, Moment.of(SystemClock())))


async def wait_for_reply(
    command: Command,
    find: Callable[[int], Awaitable[Command | None]],
    clock: Clock,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Reply:
    """Return the reply to a command. One that no scraper takes expires after a minute.

    A file that cannot be read is not a reply: the command may have been carried out meanwhile.
    """
    started, is_reported, why = clock.monotonic(), False, ""
    while not command.is_answered:
        waited = clock.monotonic() - started
        if waited > GIVE_UP_SECONDS:
            answer = f"The outcome of this command is unknown{why}: check `longstop top` before sending it again."
            return Reply(state=CommandState.FAILED, answer=answer)
        if command.state is CommandState.PENDING and waited > SILENT_SECONDS and not is_reported:
            say("waiting for a scraper to take this command …", sys.stderr)
            is_reported = True
        await sleep(POLL_EVERY_SECONDS)
        try:
            command, why = await find(command.id) or command, ""
        except StorageError as error:
            why = f" ({error})"
    return Reply(state=command.state, answer=command.answer or "", refusal=command.refusal)
