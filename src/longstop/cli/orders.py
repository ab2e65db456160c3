"""Verbs that tell a running scraper what to do: watch, unwatch, pause, resume, recycle.

They write a command into the data directory and wait for its answer; whoever may read that directory needs no token.
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

from longstop.cli.options import Data, existing_data
from longstop.clock import Clock, Moment, SystemClock
from longstop.errors import StorageError, UsageError
from longstop.model.command import LOST_AFTER_SECONDS, Command, CommandKind, CommandState, Reply
from longstop.model.match import parse_match_id
from longstop.settings import Settings
from longstop.storage.base import CommandRequest

if TYPE_CHECKING:
    from longstop.storage.base import MatchRow, NodeBeat
    from longstop.storage.directory import DataDirectory

LOOK_EVERY_SECONDS = 0.1
#: After this long without anybody who takes it, a person wants to know what is waited for.
SILENT_SECONDS = 3.0
#: By then every command that can be seen is answered.
GIVES_UP_SECONDS = LOST_AFTER_SECONDS + 5.0
#: What a shell is told.
EXITS = {CommandState.DONE: 0, CommandState.REFUSED: 1, CommandState.FAILED: 2, CommandState.EXPIRED: 3}

_SOURCE = re.compile(r"[a-z][a-z0-9]{0,31}")

What = Annotated[
    str, typer.Argument(metavar="WHAT", help="A match's number, source_id as in crex_11HD, or a source as in crex.")
]
Match = Annotated[str, typer.Argument(metavar="ID", help="A match's number, or source_id as in crex_11HD.")]


def watch(
    url: Annotated[str, typer.Argument(metavar="URL", help="The address of the match's page at its site.")],
    data: Data = None,
) -> None:
    """Watch a match from now on, whether its site lists it or not."""
    _order(existing_data(data), CommandKind.WATCH, url)


def unwatch(match: Match, data: Data = None) -> None:
    """Let go of a match for good: no listing and no restart brings it back."""
    settings = existing_data(data)
    _order(settings, CommandKind.UNWATCH, _ref(settings, match))


def pause(what: What, data: Data = None) -> None:
    """Leave a match, or a whole source, alone until it is resumed."""
    settings = existing_data(data)
    if _SOURCE.fullmatch(what):
        _order(settings, CommandKind.PAUSE_SOURCE, what)
    _order(settings, CommandKind.PAUSE_MATCH, _ref(settings, what))


def resume(what: What, data: Data = None) -> None:
    """Go on with a match or a source that was paused."""
    settings = existing_data(data)
    if _SOURCE.fullmatch(what):
        _order(settings, CommandKind.RESUME_SOURCE, what)
    _order(settings, CommandKind.RESUME_MATCH, _ref(settings, what))


def recycle(data: Data = None) -> None:
    """Have connections and browsers made afresh, and all watches begin anew."""
    _order(existing_data(data), CommandKind.RECYCLE, "")


VERBS = (watch, unwatch, pause, resume, recycle)


def _ref(settings: Settings, text: str) -> str:
    match = asyncio.run(_find(settings, text))
    if match is None:
        raise UsageError(f"there is no match {text}: `longstop matches` lists those that are there")
    return str(match.ref)


async def _find(settings: Settings, text: str) -> MatchRow | None:
    from longstop.storage.directory import DataDirectory
    from longstop.storage.sqlite.matches import SqliteMatchReader

    name = parse_match_id(text)
    async with aclosing(SqliteMatchReader(DataDirectory.open(settings.data).matches_db)) as reader:
        return await (reader.match(name) if isinstance(name, int) else reader.find(name))


def _order(settings: Settings, kind: CommandKind, argument: str) -> None:
    """Ask, wait, say what came of it, and end with a code that says so too."""
    from longstop.storage.directory import DataDirectory

    directory = DataDirectory.open(settings.data)
    if not _lives_anybody(directory):
        print(f"Nobody is heard: no scraper runs on {directory.path}. Start one and ask again.", file=sys.stderr)
        raise typer.Exit(EXITS[CommandState.EXPIRED])
    reply = asyncio.run(_reply(directory, CommandRequest(kind=kind, argument=argument, asked_by=asker())))
    is_done = reply.state is CommandState.DONE
    print(reply.answer, file=sys.stdout if is_done else sys.stderr)
    raise typer.Exit(EXITS[reply.state])


async def _reply(directory: DataDirectory, request: CommandRequest) -> Reply:
    from longstop.storage.sqlite.ops import SqliteCommands

    clock = SystemClock()
    async with aclosing(SqliteCommands(directory.ops_db, clock)) as commands:
        return await answer_to(await commands.place(request), commands.find, clock)


def asker() -> str:
    """Return who gives the order; in a container a user may have a number only."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"uid {os.getuid()}"
    return f"cli: {name}"[:100]


def _lives_anybody(directory: DataDirectory) -> bool:
    """Return whether there is a scraper that could take an order, or a supervisor that is about to start one.

    In another container it holds a lock that we cannot see, and is heard all the same.
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


async def answer_to(
    command: Command,
    find: Callable[[int], Awaitable[Command | None]],
    clock: Clock,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Reply:
    """Return what came of a command; one that nobody takes is answered too, after a minute.

    It may be done while its file cannot be read: that is no answer, and nor is what nobody can tell.
    """
    began, has_told, why = clock.monotonic(), False, ""
    while not command.is_answered:
        waited = clock.monotonic() - began
        if waited > GIVES_UP_SECONDS:
            answer = f"What came of this cannot be seen{why}: look how things are, and ask again."
            return Reply(state=CommandState.FAILED, answer=answer)
        if command.state is CommandState.PENDING and waited > SILENT_SECONDS and not has_told:
            print("waiting for a scraper to take this …", file=sys.stderr)
            has_told = True
        await sleep(LOOK_EVERY_SECONDS)
        try:
            command, why = await find(command.id) or command, ""
        except StorageError as error:
            why = f" ({error})"
    return Reply(state=command.state, answer=command.answer or "", refusal=command.refusal)
