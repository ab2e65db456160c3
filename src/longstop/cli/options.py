"""Options that several verbs share, and the settings and data directory that they select."""

import os
from pathlib import Path
from typing import Annotated

import typer

from longstop.errors import StorageError, UsageError
from longstop.settings import Settings, read_settings

Data = Annotated[
    Path | None,
    # Not `readable`: Typer would report an unreadable directory as a usage error.
    typer.Option(
        "--data", metavar="DIR", readable=False, help="The data directory; by default LONGSTOP_DATA, else ./data."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Match = Annotated[str, typer.Argument(metavar="ID", help="The number of a match, or source_id as in crex_11HD.")]

Kinds = Annotated[
    str | None,
    typer.Option(
        metavar="KINDS", help="Kinds in turn, comma-separated: t20, t20-rain, odi, test, football, football-cup."
    ),
]


def settings_for(data: Path | None, **more: str) -> Settings:
    """Return the settings of the environment, overridden by the command line."""
    environ = dict(os.environ)
    if data is not None:
        environ["LONGSTOP_DATA"] = str(data)
    return read_settings({**environ, **more})


def existing_directory(data: Path | None) -> Settings:
    """Return the settings if their data directory exists. Only verbs that run a process may create one."""
    settings = settings_for(data)
    if not _exists(settings.data, settings.data):
        raise UsageError(
            f"the data directory {settings.data} does not exist: give another one with --data DIR,"
            " or create it by running longstop up"
        )
    return settings


def existing_data(data: Path | None) -> Settings:
    """Return the settings if their data directory has a match store."""
    settings = existing_directory(data)
    if not _exists(settings.data / "matches.db", settings.data):
        raise UsageError(f"there are no matches in {settings.data}: give the data directory with --data DIR")
    return settings


def unknown_match(text: str) -> UsageError:
    return UsageError(f"there is no match {text}: `longstop matches` lists all")


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
