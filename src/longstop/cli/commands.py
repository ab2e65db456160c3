"""Verbs that send a command to a running scraper: watch, unwatch, pause, resume, recycle.

They write the command into the data directory and wait for its reply. Access to that directory is the permission; no
token is needed.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated

import typer

from longstop.cli.options import Data, Match, existing_data, unknown_match
from longstop.clock import Clock, Moment, SystemClock
from longstop.errors import StorageError
from longstop.model.command import LOST_AFTER_SECONDS, Command, CommandKind, CommandState, Reply
from longstop.model.match import parse_match_id
from longstop.settings import Settings
from longstop.storage.base import CommandRequest

if TYPE_CHECKING:
    from longstop.storage.base import MatchRow, NodeBeat
    from longstop.storage.directory import DataDirectory

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
    settings = existing_data(data)
    _send(settings, CommandKind.UNWATCH, _ref(settings, match))


def pause(what: MatchOrSource, data: Data = None) -> None:
    """Stop polling a match or a source until it is resumed."""
    settings = existing_data(data)
    if _SOURCE.fullmatch(what):
        _send(settings, CommandKind.PAUSE_SOURCE, what)
    _send(settings, CommandKind.PAUSE_MATCH, _ref(settings, what))


def resume(what: MatchOrSource, data: Data = None) -> None:
    """Resume a paused match or source."""
    settings = existing_data(data)
    if _SOURCE.fullmatch(what):
        _send(settings, CommandKind.RESUME_SOURCE, what)
    _send(settings, CommandKind.RESUME_MATCH, _ref(settings, what))


def recycle(data: Data = None) -> None:
    """Restart all connections, browsers and watches."""
    _send(existing_data(data), CommandKind.RECYCLE, "")


VERBS = (watch, unwatch, pause, resume, recycle)


def _ref(settings: Settings, text: str) -> str:
    match = asyncio.run(_find(settings, text))
    if match is None:
        raise unknown_match(text)
    return str(match.ref)


async def _find(settings: Settings, text: str) -> MatchRow | None:
    from longstop.storage.directory import DataDirectory
    from longstop.storage.sqlite.matches import SqliteMatchReader

    name = parse_match_id(text)
    async with aclosing(SqliteMatchReader(DataDirectory.open(settings.data).matches_db)) as reader:
        return await (reader.match(name) if isinstance(name, int) else reader.find(name))


def _send(settings: Settings, kind: CommandKind, argument: str) -> None:
    """Send a command, print its reply, and exit with the code of its state."""
    from longstop.storage.directory import DataDirectory

    directory = DataDirectory.open(settings.data)
    if not _is_scraper_running(directory):
        print(
            f"No scraper is running on {directory.path}. Start one with `longstop up`, then try again.",
            file=sys.stderr,
        )
        raise typer.Exit(EXIT_CODES[CommandState.EXPIRED])
    reply = asyncio.run(_reply(directory, CommandRequest(kind=kind, argument=argument, asked_by=user_name())))
    is_done = reply.state is CommandState.DONE
    print(reply.answer, file=sys.stdout if is_done else sys.stderr)
    raise typer.Exit(EXIT_CODES[reply.state])


async def _reply(directory: DataDirectory, request: CommandRequest) -> Reply:
    from longstop.storage.sqlite.ops import SqliteCommands

    clock = SystemClock()
    async with aclosing(SqliteCommands(directory.ops_db, clock)) as commands:
        return await wait_for_reply(await commands.place(request), commands.find, clock)


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
    from longstop.doctor.holders import lock_holder
    from longstop.storage.sqlite.hot import SqliteHotReader
    from longstop.supervision.health_verdict import live_beats

    if any(lock_holder(directory.path / f"{role}.lock") for role in ("scraper", "supervisor")):
        return True

    async def beats() -> Sequence[NodeBeat]:
        async with aclosing(SqliteHotReader(directory.hot_db)) as reader:
            return await reader.beats()

    return bool(live_beats(asyncio.run(beats()), Moment.of(SystemClock())))


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
            print("waiting for a scraper to take this command …", file=sys.stderr)
            is_reported = True
        await sleep(POLL_EVERY_SECONDS)
        try:
            command, why = await find(command.id) or command, ""
        except StorageError as error:
            why = f" ({error})"
    return Reply(state=command.state, answer=command.answer or "", refusal=command.refusal)
