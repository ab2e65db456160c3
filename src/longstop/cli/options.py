"""Options that several verbs share, and the settings they change."""

import os
from pathlib import Path
from typing import Annotated

import typer

from longstop.errors import UsageError
from longstop.settings import Settings, read_settings

Data = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="The data directory; LONGSTOP_DATA, else ./data.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table for people.")]

Kinds = Annotated[
    str | None,
    typer.Option(metavar="KINDS", help="Kinds in turn, with commas: t20, t20-rain, odi, test, football, football-cup."),
]


def settings_for(data: Path | None, **more: str) -> Settings:
    """Return the settings of the environment, changed by what the command line says."""
    environ = dict(os.environ)
    if data is not None:
        environ["LONGSTOP_DATA"] = str(data)
    return read_settings({**environ, **more})


def existing_data(data: Path | None) -> Settings:
    """Return the settings when their data directory is there; a verb that only reads must not make one."""
    settings = settings_for(data)
    if not settings.data.exists():
        raise UsageError(f"the directory {settings.data} does not exist: give the data directory with --data DIR")
    if not (settings.data / "matches.db").exists():
        raise UsageError(f"there are no matches in {settings.data}: give the directory with --data DIR")
    return settings
