"""Options that several verbs share, and the settings and data directory that they select."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

import typer

from longstop.errors import StorageError, UsageError
from longstop.model.match import MatchRow, parse_match_id
from longstop.settings import Settings, read_settings
from longstop.storage.base import MatchReader
from longstop.storage.directory import refuse_file

T = TypeVar("T")


class _Closable(Protocol):
    def aclose(self) -> Awaitable[Any]: ...


Closing = TypeVar("Closing", bound=_Closable)

Data = Annotated[
    Path | None,
    # Not `readable`: Typer would report an unreadable directory as a usage error.
    typer.Option(
        "--data", metavar="DIR", readable=False, help="The data directory; by default LONGSTOP_DATA, else ./data."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Match = Annotated[str, typer.Argument(metavar="ID", help="The number of a match, or source_id as in crex_11HD.")]


def settings_for(data: Path | None, **more: str) -> Settings:
    """Return the settings of the environment, overridden by the command line."""
    environ = dict(os.environ)
    if data is not None:
        environ["LONGSTOP_DATA"] = str(data)
    return read_settings({**environ, **more})


def existing_directory(data: Path | None, **more: str) -> Settings:
    """Return the settings if their data directory exists. Only verbs that scrape may create one."""
    settings = settings_for(data, **more)
    if not _exists(settings.data, settings.data):
        raise UsageError(
            f"the data directory {settings.data} does not exist: {_start_there(data, settings.data, 'create it')}"
        )
    refuse_file(settings.data)
    return settings


def existing_data(data: Path | None) -> Path:
    """Return the data directory if it has a match store."""
    path = existing_directory(data).data
    # One that has had a store and lost it is read, and reports that.
    if not (_exists(path / "matches.db", path) or _exists(path / "databases", path)):
        raise UsageError(f"nothing has run in {path} yet: {_start_there(data, path, 'start scraping there')}")
    return path


def ask(store: Closing, question: Callable[[Closing], Awaitable[T]]) -> T:
    """Return the answer of a store to one question, and close it."""

    async def run() -> T:
        async with aclosing(store):
            return await question(store)

    return asyncio.run(run())


async def find_match(reader: MatchReader, text: str) -> MatchRow:
    """Return the match with this number or reference."""
    name = parse_match_id(text)
    match = await (reader.match(name) if isinstance(name, int) else reader.find(name))
    if match is None:
        raise UsageError(f"there is no match {text}: `longstop matches` lists all")
    return match


def _start_there(data: Path | None, path: Path, purpose: str) -> str:
    """Return what to do; an option that was given is not asked for."""
    demo = f"`longstop demo --keep {path}`"
    if data is not None:
        return f"check the path, or {purpose} with `longstop up --data {data}` or {demo}"
    return f"{purpose} with `longstop up` or {demo}, or give another data directory with --data DIR"


def _exists(path: Path, directory: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StorageError(
            f"cannot read the data directory {directory}: {error.strerror}; run as its owner, or give another"
            " directory with --data DIR"
        ) from error
    return True
