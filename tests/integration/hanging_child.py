"""Serves a data directory whose `ops.db` hangs when it is opened, as on a disk that no longer responds."""

import sys
from pathlib import Path
from threading import Event
from unittest.mock import patch

import apsw

from longstop.cli.main import command_line
from longstop.storage.sqlite.connection import open_readable


def hang(*_: object) -> apsw.Connection:
    while True:
        Event().wait()


def open_or_hang(path: Path, patience_ms: int | None = None) -> apsw.Connection:
    return hang() if path.name == "ops.db" else open_readable(path, patience_ms)


with (
    patch("longstop.storage.sqlite.connection.open_readable", open_or_hang),
    patch("longstop.storage.sqlite.connection.open_writable", hang),
):
    command_line()(["api", "--data", sys.argv[1], "--port", "0"])
