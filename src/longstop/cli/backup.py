"""Verbs that keep a copy: backup, restore."""

from pathlib import Path
from typing import Annotated

import typer

from longstop.cli.options import Data, existing_data, settings_for
from longstop.clock import SystemClock, to_iso


def backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to; a directory that is not there yet.")],
    data: Data = None,
) -> None:
    """Copy what a node cannot build again, while everything runs."""
    from longstop.storage.backup import back_up
    from longstop.storage.directory import DataDirectory

    manifest = back_up(DataDirectory.open(existing_data(data).data), folder, SystemClock())
    size = sum(kept.size for kept in manifest.files)
    print(f"{len(manifest.files)} files of {manifest.node}, {size / 1e6:.1f} MB, are in {folder}.")


def restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The backup.")],
    data: Data = None,
    force: Annotated[bool, typer.Option("--force", help="Move aside what the data directory holds.")] = False,
) -> None:
    """Put a backup back into a data directory that nobody uses."""
    from longstop.storage.restore import restore as put_back

    path = settings_for(data).data
    done = put_back(folder, path, SystemClock(), force=force)
    print(f"{path} is as {done.manifest.node} was at {to_iso(done.manifest.created_at)}.")
    if done.aside is not None:
        print(f"What it held before is in {done.aside}.")


VERBS = (backup, restore)
